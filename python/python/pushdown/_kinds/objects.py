"""Objects, and members of shards with an index: known before they are read, in one order in any world."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from .. import _native
from .._function_pool import apply_functions
from .._labels import LabelSet
from .._policy import ErrorPolicy
from .._rank import Place, Rank
from .._sample_columns import ColumnReader, split_columns
from .._sample_lookup import SampleLookup
from .._settings import SourceKind, does_not_apply
from .._share import TailCounts, log_tail
from .._source import Selection, Source, without_suffix
from .._spec import ReaderSpec
from .._stretches import Stretch, divide
from ..batch import Batch, make_batch
from ..errors import native_errors
from ..iterator import Iteration, Recipe, Start
from ..labels import Column, Sidecar
from ..options import Options
from ..pipeline import Pipeline, PipelineLike
from ..state import check_members, check_origin, write_state
from .batches import SampleMaker
from .kind import Count, Kind, Promises

__all__ = ["ObjectKind"]


class ObjectIteration(Iteration[Batch]):
    """A pass through a reader's share of an epoch. `samples`: those of the whole epoch."""

    def __init__(self, start: Start, recipe: Recipe[Batch], share: _native.Share, samples: int) -> None:
        super().__init__(start, recipe)
        self._share, self._samples = share, samples

    @property
    def is_complete(self) -> bool:
        return self.has_ended or self._share.is_complete_after(self.batches)

    @property
    def left(self) -> Start:
        # Of one of several workers it is where the iteration starts.
        return _after(self.start.epoch, self._share.position_after(self.batches), self._samples)


class ObjectKind(Kind[Batch]):
    """Objects, and members of shards with an index. What is read of an epoch is a position: the samples before it, over all ranks."""

    source = SourceKind.OBJECTS
    promises = Promises(has_indices=True, shared_by_workers="batches")

    def __init__(self, source: Source, pipeline: PipelineLike | None, options: Options) -> None:
        labels = options.labels
        pipeline, column, kinds = split_columns(pipeline, options.column, options.columns)
        ErrorPolicy(options.on_error, options.max_errors, 0)
        further = [*kinds, labels.name] if isinstance(labels, Column) else [*kinds]
        is_selected = isinstance(source, _native.Objects)
        columns = () if is_selected else tuple(dict.fromkeys(further))
        super().__init__(options, Pipeline.of(pipeline), source, Selection(options.index, column, columns))
        if is_selected and options.columns is None:
            kinds = dict.fromkeys(self.objects.columns, "bytes")
        if options.sampling.order == "shards" and not self.objects.has_members:
            expected = '"global"; shards without an index are named by URLs'
            raise does_not_apply("order", "shards", "whole objects", expected)
        if isinstance(labels, Sidecar) and isinstance(source, str) and not self.objects.has_members:
            self.data_set = without_suffix(self.data_set, labels.suffix)
        self._kinds = kinds
        self._labels = LabelSet(labels, self.data_set, options.connection)
        # Objects without a label are found now rather than in the middle of an epoch.
        self._labels.check()
        self._column_reader()
        self._lookup: SampleLookup | None = None

    def iterate(
        self, start: Start, place: Place, known: Any, start_batch: int
    ) -> ObjectIteration:
        done = max(start.epoch - self.options.epoch, 0)
        spec = self.spec(
            start.epoch,
            place,
            epochs=max(self.options.plan.epochs - done, 1),
            start_position=start.read or 0,
            start_batch=start_batch,
        )
        share, samples = self._share(spec), len(self.objects)
        log_tail(TailCounts(*share.tail_counts), self.options.sampling.tail, spec.epoch, samples)
        make = SampleMaker(self._labels, self._column_reader(), self.policy(share.samples))
        native = partial(_native.Reader, observations=known)
        return ObjectIteration(start, self.recipe(spec, native, make, self._labels.close), share, samples)

    def state(self, start: Start, place: Place, running: Iteration[Batch] | None) -> dict[str, Any]:
        order = self.options.sampling.order_text
        return write_state(start.epoch, {"position": start.read or 0}, **self.origin(), order=order)

    def load(self, state: Any, place: Place, *, strict: bool) -> Start:
        check_members(state, numbers=("epoch", "position"))
        if strict:
            check_origin(state, **self.origin(), order=self.options.sampling.order_text)
        return _after(state["epoch"], state["position"], len(self.objects))

    def count(self, rank: Rank) -> Count:
        share = self._share(self.spec(self.options.epoch, Place(rank)))
        return Count(share.batches, share.samples, TailCounts(*share.tail_counts))

    def divide(self, count: int) -> list[Stretch]:
        sizes = [self.objects.size(index) or 0 for index in range(len(self.objects))]
        return [
            Stretch(part, len(part), sum(sizes[part.start : part.stop])) for part in divide(sizes, count)
        ]

    def of_stretch(self, stretch: Stretch) -> tuple[Self, Start]:
        # The whole list stays: labels are found by it.
        kind = self._stretch_kind(options=self._limited(stretch.samples), _lookup=None)
        return kind, Start(self.options.epoch, stretch.objects.start)

    def take(self, indices: Sequence[int], epoch: int) -> Batch:
        """The samples with these indices, as random steps draw them in `epoch`. The threads live until `close`."""
        if self._lookup is None:
            self._lookup = SampleLookup(self._open_lookup)
        batch = self._lookup.take(indices, epoch)
        batch, columns = self.policy(len(indices)).apply(batch, self._column_reader().read(batch))
        values = None
        if self.functions:
            with native_errors():
                values = apply_functions(self.functions, batch.values(), batch.names)
        return make_batch(batch, self._labels.get(), columns, values)

    @property
    def classes(self) -> list[str]:
        return self._labels.get_classes()

    def describe(self) -> str:
        objects = self.objects
        if objects.has_members:
            return f"{len(objects):,} samples in shards of s3://{objects.bucket}"
        return super().describe()

    def close(self) -> None:
        self._labels.close()
        if self._lookup is not None:
            self._lookup.close()

    def _open_lookup(self, epoch: int) -> _native.Reader:
        return self.open_native(_native.Reader, self.spec(epoch, Place(Rank())))

    def _column_reader(self) -> ColumnReader:
        return ColumnReader(self.objects, self.objects.columns, self._kinds, self._labels.column)

    def _share(self, spec: ReaderSpec) -> _native.Share:
        """What the native reader with these settings reads."""
        with native_errors():
            return _native.Share(spec.to_json(), len(self.objects))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_lookup": None}


def _after(epoch: int, position: int, samples: int) -> Start:
    """The start after a position in an epoch of `samples` samples. After the last one it is the start of the next epoch."""
    return Start(epoch, position) if position < samples else Start(epoch + 1)
