"""Readers of tar shards without an index: whole shards in, batches of samples out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from . import _native
from ._base import ReaderBase
from ._function_pool import FunctionPool
from ._iterator import ReaderIterator, Recipe
from ._labels import LabelSet
from ._policy import ErrorPolicy
from ._rank import Worker
from ._sample_columns import ColumnReader, split_columns
from ._sample_iteration import ShardIteration
from ._settings import SourceKind, shows_options
from ._shard_state import Place, ShardState, resume, shards_read
from ._spec import ReaderSpec
from .batch import Batch
from .errors import ConfigError, StateError, native_errors
from .options import Options, ShardOptions
from .pipeline import Pipeline, PipelineLike
from .shards import list_shards
from .state import VERSION, check_origin

__all__ = ["ShardReader"]

_ONLY_WORKER = Worker()
_UNKNOWN = "the number of samples in shards without an index is unknown"


class ShardReader(ReaderBase[ShardIteration]):
    """Reads the samples of tar shards without an index, also of compressed ones, in shard order.

        shards = pushdown.ShardReader(
            "s3://photos/train-{000000..000999}.tar.gz",
            "decode | random_resized_crop(224) | flip_h | to_float",
            labels=pushdown.Column("cls"),
            seed=7,
        )

    `source`: a pattern of shards, whose keys end in `.tar`, `.tar.gz`, `.tgz` or `.tar.zst`, a URL that ends in `/` and means all shards
    under it, or a list of these. The options are those of `Reader`, as far as they apply: not `index` and `value_cache`, nor
    `Sampling(tail=.., limit=.., include_hidden=..)`, `Plan(split=.., max_expand=.., epochs=.., compression=..)` and `IO(gets=..)`.

    - Each shard is read by one GET, and all steps run on this host. The members of a sample follow each other in the shard.
    - `seed`: shuffles the shards, and their samples by a buffer of `Sampling(buffer=1000)` samples: one reader has the order of a `Reader`
      with an index and `Sampling(order="shards")`. Without one, or with `shuffle=False`, samples are in the order of the shards.
    - `Sampling(rank=.., world=..)`: shards are dealt out to ranks one by one, so that ranks have different numbers of batches. Have several
      times as many shards as ranks.
    - `labels`: a `Column`. `max_errors`: a whole number. "skip" may leave a batch out.
    - `IO(prefetch=..)`: bytes of prefetched batches; a quarter of it is for samples that have arrived. The samples in the buffer come on top
      of it. `IO(requests=..)`: shards that are read at a time.

    It iterates, pickles and survives forks as a `Reader` does. `len()` raises `TypeError`: nobody knows how many samples there are.
    `index` of a batch is the index of each row's shard in `objects`, and `position` the number of the sample among those of this
    reader in the epoch. What is left of a shard that cannot be read further is one row, without a member, that fails.

    A state is that of one reader: in the same world each loads its own, in another one all load a list of the states of all.

    Raises `ConfigError`, `PipelineError`, and errors of listing a prefix.
    """

    @shows_options(Options, SourceKind.SHARDS)
    def __init__(
        self,
        source: str | Sequence[str],
        pipeline: PipelineLike | None = None,
        **options: Unpack[ShardOptions],
    ) -> None:
        chosen = Options.of(options, SourceKind.SHARDS)
        pipeline, column, kinds = split_columns(pipeline, chosen.column, chosen.columns)
        parsed = Pipeline.of(pipeline)
        labels = options.get("labels")
        self._kinds = kinds
        further = [*kinds] if labels is None else [*kinds, labels.name]
        self._further = tuple(dict.fromkeys(further))
        self._columns: Mapping[str, Any] = {"value": column, "further": list(self._further)}
        self._columns_text = f"{column or 'images'} and {', '.join(self._further) or 'no others'}"
        ErrorPolicy(chosen.on_error, chosen.max_errors, None)
        bucket, keys = list_shards(chosen.connection, source)
        with native_errors():
            objects = _native.Objects.from_keys(bucket, keys)
        super().__init__(objects, parsed, chosen)
        self._labels = LabelSet(labels, self._data_set, chosen.connection)
        self._states: tuple[ShardState, ...] = ()
        """Of this epoch, from which the next iteration goes on; none at the beginning."""
        self._ended: Mapping[str, Any] | None = None
        """What this reader has read of the epoch before, if it has seen its end."""
        self._worker = Worker()
        # Settings and keys that are invalid are found now rather than at the first batch.
        self._initial(self._next_spec())

    def __iter__(self) -> ReaderIterator:
        """Starts to read where this reader is in its epoch. Rank and world size are looked up now."""
        return self.iterate()

    def iterate(self, worker: Worker = _ONLY_WORKER) -> ReaderIterator:
        """As `iter()`, for one of the workers that share the shards of this rank, such as worker processes.

        The state is that of this reader alone, as that of a rank is.
        """
        self._end_previous()
        self._worker = worker
        spec = self._next_spec()
        iteration = ShardIteration(spec.epoch, self._initial(spec))
        self._epoch = spec.epoch
        recipe = Recipe(
            open=lambda: self._open_native(_native.ShardReader, spec),
            pool=lambda: FunctionPool.make(self.pipeline.functions, self._options.io.threads, spec.local_ranks),
            labels=self._labels,
            columns=ColumnReader(self.objects, self._further, self._kinds, self._labels.column),
            policy=self._policy(),
            pipeline=spec.pipeline,
            finish=lambda: self._finish(iteration),
        )
        self._follow(iteration)
        return ReaderIterator(iteration, recipe)

    def __len__(self) -> int:
        """Raises `TypeError`."""
        raise TypeError(f"a ShardReader has no len(): {_UNKNOWN}")

    @property
    def samples(self) -> int:
        """Raises `TypeError`."""
        raise TypeError(f"a ShardReader has no number of samples: {_UNKNOWN}")

    @property
    def classes(self) -> list[str]:
        """Names of the classes: label `i` is `classes[i]`. Empty if labels are no names of classes."""
        return self._labels.get_classes()

    @property
    def plan(self) -> str | None:
        """`None`: all steps run on this host."""
        return None

    def take(self, indices: Sequence[int]) -> Batch:
        """Samples cannot be taken by index: raises `ConfigError`."""
        raise ConfigError(
            "shards without an index are read in batches only: expected an iteration, found `take`"
        )

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer of this reader is in the epoch: which of its shards are left, and the samples in the buffer.

        JSON values, about 12 bytes for each sample in the buffer. It counts the batches that the consumer has received, not those that
        are prefetched. After the last batch it is the beginning of the next epoch. Call it between batches at any time.
        """
        current, ended = self._current, self._ended
        if current is None:
            spec = self._next_spec()
            epoch, read = spec.epoch, self._initial(spec)
        elif current.is_complete:
            spec = self._spec_from((), current.epoch + 1)
            epoch, read, ended = spec.epoch, self._initial(spec), _members(current.shards_read)
        else:
            epoch, read = current.epoch, current.shards_read
            ended = None if current.batches > 0 else ended
        state = {
            "version": VERSION,
            "seed": self._options.seed,
            "epoch": epoch,
            "objects": self.objects.digest,
            "pipeline": self._pipeline_digest,
            "columns": self._columns_text,
            "shards_read": _members(read),
        }
        # Other readers may not have seen the end of the epoch before: in another world its states go together.
        return state if ended is None else {**state, "ended": ended}

    def load_state_dict(
        self, state_dict: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, strict: bool = True
    ) -> None:
        """Makes the next iteration go on from a state of this reader, or from a list of the states of all readers. Closes one that runs.

        In the same world the reader goes on exactly where it was, and its own state is enough. In another world, or with another buffer,
        all readers load the same list, of readers that may have stopped at different batches: what is left of the epoch is dealt out
        anew, no sample twice, none lost. A state that is missing is a `ConfigError` when the iteration begins.

        Raises `StateError` for a state of another data set, pipeline or seed, or of other columns; with `strict=False` it goes on
        nevertheless.
        """
        found = [state_dict] if isinstance(state_dict, Mapping) else list(state_dict)
        if not found:
            raise StateError("states of", "at least one reader", "none", "load what the readers have saved")
        states = tuple(map(ShardState.from_dict, found))
        for state in found if strict else ():
            check_origin(
                state,
                seed=self._options.seed,
                objects=self.objects.digest,
                pipeline=self._pipeline_digest,
                columns=self._columns_text,
            )
        self._stop()
        self._states = states
        own, self._epoch = resume(states, self._place())
        self._ended = None if own is None else own.ended

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once; the reader stays usable."""
        super().close()
        self._labels.close()

    def __repr__(self) -> str:
        objects = self.objects
        return f"ShardReader({len(objects):,} shards of s3://{objects.bucket}, {self.pipeline!r})"

    def _place(self) -> Place:
        rank = self._rank()
        return Place(rank.world, rank.index, self._worker)

    def _next_spec(self) -> ReaderSpec:
        """The settings of the native reader that goes on where this one is."""
        return self._spec_from(self._states, self._epoch)

    def _spec_from(self, states: tuple[ShardState, ...], epoch: int) -> ReaderSpec:
        """The settings of the native reader that goes on from these states; from the beginning of an epoch if there are none."""
        place, local_ranks = self._place(), self._rank().local_ranks
        epoch, read = shards_read(states, place) if states else (epoch, ())
        return self._spec(
            epoch=epoch,
            columns=self._columns,
            shards_read=read,
            rank=place.rank,
            world=place.world,
            worker=place.worker,
            local_ranks=local_ranks * place.worker.count,
        )

    def _initial(self, spec: ReaderSpec) -> _native.ShardsRead:
        """What the native reader with these settings has read before its first batch."""
        with native_errors(spec.pipeline):
            return _native.ShardsRead.initial(spec.to_json(), self.objects)

    def _policy(self) -> ErrorPolicy:
        return ErrorPolicy(self._options.on_error, self._options.max_errors, None)

    def _finish(self, iteration: ShardIteration) -> None:
        is_current = self._current is iteration
        super()._finish(iteration)
        if is_current:
            self._ended = _members(iteration.shards_read)

    def _restart(self, epoch: int) -> None:
        self._epoch, self._states, self._ended = epoch, (), None

    def _left(self) -> tuple[tuple[ShardState, ...], Mapping[str, Any] | None]:
        """The states from which an iteration goes on where the consumer is, and what was read of the epoch before."""
        if self._current is None or self._current.batches == 0:
            return self._states, self._ended
        state = ShardState.from_dict(self.state_dict())
        return (state,), state.ended

    def __getstate__(self) -> dict[str, Any]:
        states, ended = self._left()
        return {**super().__getstate__(), "_states": states, "_ended": ended}


def _members(state: _native.ShardsRead) -> dict[str, Any]:
    with native_errors():
        members: dict[str, Any] = json.loads(state.to_json())
    return members
