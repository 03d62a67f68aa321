"""Readers of objects: a data set and a pipeline in, batches out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from . import _native
from ._base import ReaderBase
from ._function_pool import FunctionPool, apply_functions
from ._iterator import ReaderIterator, Recipe
from ._labels import LabelSet
from ._policy import ErrorPolicy
from ._rank import Worker
from ._sample_columns import ColumnReader, split_columns
from ._sample_iteration import ObjectIteration
from ._sample_lookup import SampleLookup
from ._settings import SourceKind, does_not_apply, shows_options
from ._share import TailCounts, log_tail
from ._source import Selection, Source, without_suffix
from ._spec import ReaderSpec
from .batch import Batch, make_batch
from .errors import native_errors
from .labels import Column, Sidecar
from .options import Options, ReaderOptions
from .pipeline import Pipeline, PipelineLike
from .state import State

__all__ = ["Reader", "ReaderIterator"]

_ONLY_WORKER = Worker()


class Reader(ReaderBase[ObjectIteration]):
    """Reads the objects of a data set, or the members of its shards, in batches, through a pipeline.

        photos = pushdown.Reader("s3://photos/train/", "decode | resize(224, 224)", labels="dir", seed=7)
        shards = pushdown.Reader(
            "s3://photos/train-{000000..000999}.tar",
            index="train.parquet",
            columns={"jpg": "decode | resize(224, 224)", "json": "json"},
            labels=pushdown.Column("cls"),
            seed=7,
        )

    `source`: `s3://bucket/prefix`, a list of such URLs, `Objects`, or a `Manifest`. A prefix is listed once, here. With an `index`, a
    pattern of shards, a URL that ends in `/` and means all shards under it, or a list of these; or a `ShardIndex`.
    `pipeline`: text, or steps of `pushdown.ops`. Functions of `Pipeline.then` run in threads.

    - `index`: a `ShardIndex`, or the path of a saved one: the samples are members of shards. `column`: extension of the members that the
      pipeline reads, by default the first of jpg, jpeg, png and webp that a sample has.
    - `columns`: extensions of further members of samples, which batches have in `columns` as bytes. A dict says what to make of each:
      "bytes", "text" (UTF-8), "json" or "int" (an int64 tensor); or the pipeline, in place of the arguments `pipeline` and `column`. A
      content that is invalid is an error of its sample, with the code `InvalidColumn`.
    - `batch_size`: samples per batch and rank. Default: 64.
    - `seed`: of the epoch's order and of random steps. Without one, samples are in the order of the data set. `shuffle`: whether a seed
      shuffles; with False it is for random steps alone. Default: True.
    - `epoch`: of the first iteration, from 0.
    - `labels`: "dir", a regular expression, a function of the key, a dict, a sequence, a `Manifest`, a `Sidecar`, or a `Column` of samples in
      shards, whose keys are the names of the members.
    - `mode`: "auto" plans where steps run, and reads plainly from an endpoint that is no gateway; "pushdown"; "plain".
    - `on_error`: "raise" a `SampleError` for the first sample that fails; "report" it in `Batch.errors` and keep its row; "skip"
      its row. `max_errors`: end at more errors in an iteration; a whole number, or a fraction of its samples.
    - `store`: a `Store`: endpoint, region, profile, credentials, retries, timeouts; by default as in the AWS tools.
    - `sampling`: a `Sampling`: order, tail, rank and world, limit, hidden objects. `plan`: a `Plan`: split, epochs, compression, models.
      `io`: an `IO`: prefetch, requests and reads in flight, threads.
    - `value_cache`: folder of the values stored for later epochs, or a `ValueCache`, which has a size, too. Default: none.

    A reader starts nothing: threads live while an iterator does. It pickles in a few KB, without credentials. One iteration
    runs at a time: a second `iter()` closes the first. Each complete pass goes to the next epoch, and so to another order,
    unless `set_epoch` says otherwise; a pass that was left early starts again where it began.

    Raises `ConfigError`, `PipelineError`, and errors of listing the objects.
    """

    @shows_options(Options, SourceKind.OBJECTS)
    def __init__(
        self, source: Source, pipeline: PipelineLike | None = None, **options: Unpack[ReaderOptions]
    ) -> None:
        chosen = Options.of(options, SourceKind.OBJECTS)
        labels = chosen.labels
        pipeline, column, kinds = split_columns(pipeline, chosen.column, chosen.columns)
        ErrorPolicy(chosen.on_error, chosen.max_errors, 0)
        further = [*kinds, labels.name] if isinstance(labels, Column) else [*kinds]
        is_selected = isinstance(source, _native.Objects)
        selection = Selection(chosen.index, column, () if is_selected else tuple(dict.fromkeys(further)))
        super().__init__(source, Pipeline.of(pipeline), chosen, selection)
        if is_selected and chosen.columns is None:
            kinds = dict.fromkeys(self.objects.columns, "bytes")
        if chosen.sampling.order == "shards" and not self.objects.has_members:
            raise does_not_apply(
                "order",
                "shards",
                "whole objects",
                '"global"; tar shards without an index are read by pushdown.ShardReader',
            )
        if isinstance(labels, Sidecar) and isinstance(source, str) and not self.objects.has_members:
            self._data_set = without_suffix(self._data_set, labels.suffix)
        self._kinds = kinds
        self._position = 0
        self._labels = LabelSet(labels, self._data_set, chosen.connection)
        # Objects without a label are found now rather than in the middle of an epoch.
        self._labels.check()
        self._column_reader()
        self._lookup: SampleLookup | None = None

    def __iter__(self) -> ReaderIterator:
        """Starts to read at this reader's epoch and position. Rank and world size are looked up now."""
        return self.iterate()

    def iterate(self, worker: Worker = _ONLY_WORKER, *, start_batch: int = 0) -> ReaderIterator:
        """As `iter()`, for one of the workers that share the batches of this rank, such as worker processes.

        It reads the batches `start_batch + worker.index`, `start_batch + worker.index + worker.count`, and so on. With several
        workers the state stays where the iteration began, since this reader does not know how far the others are.
        """
        self._end_previous()
        # Its planner has measured what the next one needs to know.
        known = None if self._last is None else self._last.observations
        rank = self._rank()
        options = self._options
        spec = self._spec(
            epochs=self._epochs_left(),
            start_position=self._position,
            start_batch=start_batch,
            worker=worker,
            rank=rank.index,
            world=rank.world,
            local_ranks=rank.local_ranks * worker.count,  # The workers share the CPUs of one rank.
        )
        share = self._share_of(spec)
        iteration = ObjectIteration(self._epoch, share)
        log_tail(share, spec, len(self.objects))
        recipe = Recipe(
            open=lambda: self._open_native(partial(_native.Reader, observations=known), spec),
            pool=lambda: FunctionPool.make(self.pipeline.functions, options.io.threads, spec.local_ranks),
            labels=self._labels,
            columns=self._column_reader(),
            policy=ErrorPolicy(options.on_error, options.max_errors, share.samples),
            pipeline=spec.pipeline,
            finish=lambda: self._finish(iteration),
        )
        self._follow(iteration)
        return ReaderIterator(iteration, recipe)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        return self._epoch_share().batches

    @property
    def samples(self) -> int:
        """Samples of a whole epoch on this rank, padding included."""
        return self._epoch_share().samples

    @property
    def tail_counts(self) -> TailCounts:
        """Samples that the tail policy drops or repeats in a whole epoch, over all ranks."""
        return TailCounts(*self._epoch_share().tail_counts)

    @property
    def classes(self) -> list[str]:
        """Names of the classes: label `i` is `classes[i]`. Empty if labels are no names of classes."""
        return self._labels.get_classes()

    @property
    def plan(self) -> str | None:
        """The plan of the current or last iteration, as text. `None` before the first plan, and without `mode="auto"`."""
        return None if self._last is None else self._last.report.plan

    @property
    def mode(self) -> str:
        """The mode in force: of an iteration with `mode="auto"`, "plain" if the endpoint is no gateway."""
        return (None if self._last is None else self._last.report.mode) or self._options.mode

    def take(self, indices: Sequence[int]) -> Batch:
        """The samples with these indices in the data set, in this order, by one request.

        Random steps draw as in the reader's epoch. The threads live until `close`. Raises as an iterator does.
        """
        if self._lookup is None:
            self._lookup = SampleLookup(
                lambda epoch: self._open_native(_native.Reader, self._spec(epoch=epoch))
            )
        batch = self._lookup.take(indices, self._epoch)
        columns = self._column_reader().read(batch)
        policy = ErrorPolicy(self._options.on_error, self._options.max_errors, len(indices))
        batch, columns = policy.apply(batch, columns)
        functions, values = self.pipeline.functions, None
        if functions:
            with native_errors():
                values = apply_functions(functions, batch.values(), batch.names)
        return make_batch(batch, self._labels.get(), columns, values)

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is: the first `position` samples of the epoch's order, over all ranks, are consumed.

        JSON values, less than 300 bytes, the same on every rank. It counts the batches that the consumer has received, not
        those that are prefetched; a sample that was skipped counts. After the last batch it is the beginning of the next epoch.
        Call it between batches at any time.
        """
        epoch, position = self._next_place(*self._place())
        seed, order = self._options.seed, self._options.sampling.order_text
        return State(seed, epoch, position, self.objects.digest, self._pipeline_digest, order).to_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any], *, strict: bool = True) -> None:
        """Makes the next iteration go on from a state, of any world size, rank and batch size. Closes one that runs.

        What is left of the epoch is dealt out anew: no sample twice, none lost. A state at the end of an epoch goes on at the
        beginning of the next one. Raises `StateError` for a state of another data set, pipeline, seed or order; with `strict=False`
        it goes on at the same position nevertheless.
        """
        state = State.from_dict(state_dict)
        if strict:
            state.check(
                seed=self._options.seed,
                objects=self.objects.digest,
                pipeline=self._pipeline_digest,
                order=self._options.sampling.order_text,
            )
        self._stop()
        self._epoch, self._position = self._next_place(state.epoch, state.position)

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once; the reader stays usable."""
        super().close()
        self._labels.close()
        if self._lookup is not None:
            self._lookup.close()

    def __repr__(self) -> str:
        objects = self.objects
        if objects.has_members:
            return f"Reader({len(objects):,} samples in shards of s3://{objects.bucket}, {self.pipeline!r})"
        return f"Reader({len(objects):,} objects of s3://{objects.bucket}/{self._data_set.prefix}, {self.pipeline!r})"

    def _place(self) -> tuple[int, int]:
        """Epoch and position of the consumer."""
        current = self._current
        return (self._epoch, self._position) if current is None else (current.epoch, current.position)

    def _next_place(self, epoch: int, position: int) -> tuple[int, int]:
        """Where an iteration begins that goes on from a place."""
        return (epoch, position) if position < len(self.objects) else (epoch + 1, 0)

    def _restart(self, epoch: int) -> None:
        self._epoch, self._position = epoch, 0

    def _column_reader(self) -> ColumnReader:
        return ColumnReader(self.objects, self.objects.columns, self._kinds, self._labels.column)

    def _epochs_left(self) -> int:
        """Epochs that are still to be read, including the current one; at least 1."""
        done = max(self._epoch - self._options.epoch, 0)
        return max(self._options.plan.epochs - done, 1)

    def _epoch_share(self) -> _native.Share:
        """What this rank reads of a whole epoch."""
        rank = self._rank()
        return self._share_of(self._spec(rank=rank.index, world=rank.world))

    def _share_of(self, spec: ReaderSpec) -> _native.Share:
        """What the native reader with these settings reads."""
        with native_errors():
            return _native.Share(spec.to_json(), len(self.objects))

    def __getstate__(self) -> dict[str, Any]:
        epoch, position = self._next_place(*self._place())
        return {**super().__getstate__(), "_epoch": epoch, "_position": position, "_lookup": None}
