"""Shards without an index: dealt out to readers as a whole, in an order and with a state of each reader, and of an unknown count."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

from .. import _native
from .._labels import LabelSet
from .._policy import ErrorPolicy
from .._rank import Place, Rank, detect_rank
from .._sample_columns import ColumnReader, split_columns
from .._settings import SourceKind
from .._shard_state import Before, ShardState, resume, shards_read
from .._source import Source
from .._spec import ReaderSpec
from .._stretches import Stretch, divide
from ..batch import Batch
from ..errors import StateError, native_errors
from ..iterator import Iteration, Recipe, Start
from ..labels import Column
from ..options import Options
from ..pipeline import Pipeline, PipelineLike
from ..shards import list_shards
from ..state import check_origin, write_state
from .batches import SampleMaker
from .kind import Count, Kind, Promises

__all__ = ["ShardKind"]


class ShardIteration(Iteration[Batch]):
    """A pass through the shards that a reader has of an epoch. Only the end says how many batches there are."""

    def __init__(self, start: Start, recipe: Recipe[Batch], read: _native.ShardsRead) -> None:
        super().__init__(start, recipe)
        self._read = read

    @property
    def read(self) -> dict[str, Any]:
        """What is read of the epoch, up to the last batch that the consumer has."""
        return _members(self._read)

    def deliver(self, batch: Batch) -> None:
        super().deliver(batch)
        with native_errors():
            self._read = batch.native.shards_read or self._read

    @property
    def is_complete(self) -> bool:
        return self.has_ended or (self.batches > 0 and self._read.is_complete)

    @property
    def left(self) -> Start:
        if self.is_complete:
            return self.next_epoch
        if self.batches == 0:
            return self.start
        epoch = self.start.epoch
        return Start(epoch, Before((ShardState(epoch, self.read),)))

    @property
    def next_epoch(self) -> Start:
        return Start(self.start.epoch + 1, Before(ended=self.read))


class ShardKind(Kind[Batch]):
    """Tar shards without an index, also compressed ones. What is read of an epoch are the states of readers: `Before`."""

    source = SourceKind.SHARDS
    promises = Promises(has_indices=False, shared_by_workers="shards")

    def __init__(self, source: Source, pipeline: PipelineLike | None, options: Options) -> None:
        labels = cast(Column | None, options.labels)
        pipeline, column, self._kinds = split_columns(pipeline, options.column, options.columns)
        parsed = Pipeline.of(pipeline)
        ErrorPolicy(options.on_error, options.max_errors, None)
        further = [*self._kinds] if labels is None else [*self._kinds, labels.name]
        self._further = tuple(dict.fromkeys(further))
        self._columns: Mapping[str, Any] = {"value": column, "further": list(self._further)}
        self._columns_text = f"{column or 'images'} and {', '.join(self._further) or 'no others'}"
        bucket, keys = list_shards(options.connection, cast(str | Sequence[str], source))
        with native_errors():
            objects = _native.Objects.from_keys(bucket, keys)
        super().__init__(options, parsed, objects)
        self._labels = LabelSet(labels, self.data_set, options.connection)
        # Settings and keys that are invalid are found now rather than at the first batch.
        place = Place(detect_rank(options.sampling.rank, options.sampling.world))
        self._initial(self._spec(Start(options.epoch), place))

    def iterate(
        self, start: Start, place: Place, known: Any, start_batch: int
    ) -> ShardIteration:
        spec = self._spec(start, place)
        columns = ColumnReader(self.objects, self._further, self._kinds, self._labels.column)
        make = SampleMaker(self._labels, columns, self.policy(None))
        recipe = self.recipe(spec, _native.ShardReader, make, self._labels.close)
        return ShardIteration(replace(start, epoch=spec.epoch), recipe, self._initial(spec))

    def state(self, start: Start, place: Place, running: Iteration[Batch] | None) -> dict[str, Any]:
        if isinstance(running, ShardIteration) and not running.is_complete:
            epoch, read = start.epoch, running.read
        else:
            spec = self._spec(start, place)
            epoch, read = spec.epoch, _members(self._initial(spec))
        # Other readers may not have seen the end of the epoch before: in another world its states go together.
        ended = (start.read or Before()).ended
        return write_state(
            epoch, {}, **self.origin(), columns=self._columns_text, shards_read=read, ended=ended
        )

    def load(self, state: Any, place: Place, *, strict: bool) -> Start:
        found = [state] if isinstance(state, Mapping) else list(state)
        if not found:
            raise StateError("states of", "at least one reader", "none", "load what the readers have saved")
        states = tuple(map(ShardState.from_dict, found))
        for one in found if strict else ():
            check_origin(one, **self.origin(), columns=self._columns_text)
        own, epoch = resume(states, place)
        return Start(epoch, Before(states, None if own is None else own.ended))

    def count(self, rank: Rank) -> Count | None:
        return None

    def divide(self, count: int) -> list[Stretch]:
        # A pattern names shards without their sizes.
        return [Stretch(part, None, 0) for part in divide([1] * len(self.objects), count)]

    def of_stretch(self, stretch: Stretch) -> tuple[Self, Start]:
        data_set = replace(self.data_set, objects=self.objects.select(stretch.objects))
        return self._stretch_kind(data_set=data_set), Start(self.options.epoch)

    @property
    def classes(self) -> list[str]:
        return self._labels.get_classes()

    def describe(self) -> str:
        return f"{len(self.objects):,} shards of s3://{self.objects.bucket}"

    def close(self) -> None:
        self._labels.close()

    def _spec(self, start: Start, place: Place) -> ReaderSpec:
        """The settings of the native reader that goes on from a start."""
        states = (start.read or Before()).states
        epoch, read = shards_read(states, place) if states else (start.epoch, ())
        return self.spec(epoch, place, columns=self._columns, shards_read=read)

    def _initial(self, spec: ReaderSpec) -> _native.ShardsRead:
        """What the native reader with these settings has read before its first batch."""
        with native_errors(spec.pipeline):
            return _native.ShardsRead.initial(spec.to_json(), self.objects)


def _members(state: _native.ShardsRead) -> dict[str, Any]:
    with native_errors():
        members: dict[str, Any] = json.loads(state.to_json())
    return members
