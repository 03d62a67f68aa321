"""Readers of objects: a data set and a pipeline in, batches out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from . import _native
from ._base import ReaderBase, reader_spec
from ._function_pool import FunctionPool, apply_functions
from ._iterator import ReaderIterator, Recipe
from ._labels import LabelSet
from ._policy import ErrorPolicy
from ._rank import Rank, Worker
from ._sample_columns import ColumnReader, Columns, split_columns
from ._sample_iteration import ObjectIteration
from ._sample_lookup import SampleLookup
from ._share import Share, TailCounts
from ._source import Index, Selection, Source, without_suffix
from ._spec import Compression, Credentials, Mode, OnError, Order, Retry, Tail, Timeouts
from .batch import Batch, make_batch
from .errors import ConfigError, native_errors
from .labels import Column, LabelSource, Sidecar
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
    - `include_hidden`: whether the listing of a prefix has `.DS_Store`, `Thumbs.db`, `desktop.ini`, names that begin with `._`, and the empty
      objects that stand for folders. By default they are left out, and one line of the log counts them.
    - `endpoint`, `region`, `profile`, `credentials`, `timeouts`, `retry`: by default as in the AWS tools.
    - `batch_size`: samples per batch and rank.
    - `seed`: of the epoch's order and of random steps. Without one, samples are in the order of the data set.
      `shuffle=False` keeps that order with a seed, too.
    - `order`: "global" shuffles all samples together. "shards" shuffles the shards, and their samples by a buffer of `buffer` samples, so
      that few shards are read at a time.
    - `epoch`: of the first iteration, from 0.
    - `epochs`: how many iterations will follow, from that epoch on. With `mode="auto"` the plan minimises the time of all of them:
      the first one may be slower if later ones find its values in the result cache of the gateway. Other numbers of iterations
      are no error.
    - `rank`, `world`: by default those of `torch.distributed` or of the launcher, looked up at each `iter()`.
    - `tail`: how an epoch ends that does not divide evenly. "even": equal counts on all ranks, fewer than `world` samples are
      dropped; "drop": full batches only; "pad": full batches, repeated samples have `valid` False; "short": each sample once.
    - `limit`: the most samples of this rank in an iteration, from where it starts.
    - `mode`: "auto" plans where steps run, and reads plainly from an endpoint that is no gateway; "pushdown"; "plain".
    - `split`, `compression`, `max_expand`: see the command `pushdown read --help`.
    - `on_error`: "raise" a `SampleError` for the first sample that fails; "report" it in `Batch.errors` and keep its row; "skip"
      its row. `max_errors`: end at more errors in an iteration; a whole number, or a fraction of its samples.
    - `labels`: "dir", a regular expression, a function of the key, a dict, a sequence, a `Manifest`, a `Sidecar`, or a `Column` of samples in
      shards, whose keys are the names of the members.
    - `prefetch`: bytes of prefetched batches, such as "256 MiB". `requests`, `gets`: batches and plain reads in flight.
    - `threads`: that run steps on this host; by default the CPUs divided by the ranks of the host.
    - `value_cache`, `value_cache_bytes`: folder and size of the values stored for later epochs. Where the list has no ETag of an object, as
      for URLs, the store is asked for it once. `models`: folder of models.

    A reader starts nothing: threads live while an iterator does. It pickles in a few KB, without credentials. One iteration
    runs at a time: a second `iter()` closes the first. Each complete pass goes to the next epoch, and so to another order,
    unless `set_epoch` says otherwise; a pass that was left early starts again where it began.

    Raises `ConfigError`, `PipelineError`, and errors of listing the objects.
    """

    def __init__(
        self,
        source: Source,
        pipeline: PipelineLike | None = None,
        *,
        index: Index | None = None,
        column: str | None = None,
        columns: Columns | None = None,
        include_hidden: bool = False,
        endpoint: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        credentials: Credentials | None = None,
        batch_size: int = 64,
        seed: int | None = None,
        shuffle: bool = True,
        order: Order = "global",
        buffer: int = 1000,
        epoch: int = 0,
        epochs: int = 1,
        rank: int | None = None,
        world: int | None = None,
        tail: Tail = "even",
        limit: int | None = None,
        mode: Mode = "auto",
        split: int | str = "smallest",
        compression: Compression = "none",
        max_expand: float = 1.0,
        on_error: OnError = "raise",
        max_errors: int | float | None = None,
        labels: LabelSource | None = None,
        prefetch: int | str = "256 MiB",
        requests: int = 4,
        gets: int = 32,
        threads: int | None = None,
        value_cache: str | os.PathLike[str] | None = None,
        value_cache_bytes: int | str = "10 GiB",
        models: str | os.PathLike[str] | None = None,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
    ) -> None:
        pipeline, column, kinds = split_columns(pipeline, column, columns)
        parsed = Pipeline.of(pipeline)
        spec = reader_spec(
            parsed,
            endpoint=endpoint,
            region=region,
            profile=profile,
            timeouts=timeouts,
            retry=retry,
            split=split,
            prefetch=prefetch,
            models=models,
            value_cache=value_cache,
            value_cache_bytes=value_cache_bytes,
            batch_size=batch_size,
            seed=seed,
            shuffle=shuffle,
            order=order,
            buffer=buffer,
            epoch=epoch,
            epochs=epochs,
            tail=tail,
            limit=limit,
            mode=mode,
            compression=compression,
            max_expand=max_expand,
            requests=requests,
            gets=gets,
            threads=threads,
        )
        self._on_error, self._max_errors = on_error, max_errors
        ErrorPolicy(on_error, max_errors, 0)
        further = [*kinds, labels.name] if isinstance(labels, Column) else [*kinds]
        is_selected = isinstance(source, _native.Objects)
        selection = Selection(index, column, () if is_selected else tuple(dict.fromkeys(further)))
        super().__init__(source, parsed, spec, credentials, rank, world, selection, include_hidden)
        if is_selected and columns is None:
            kinds = dict.fromkeys(self.objects.columns, "bytes")
        if order == "shards" and not self.objects.has_members:
            raise ConfigError(
                'invalid order: expected "global" for whole objects, found "shards"; tar shards without an index are read by '
                "pushdown.ShardReader"
            )
        if isinstance(labels, Sidecar) and isinstance(source, str) and not self.objects.has_members:
            self._data_set = without_suffix(self._data_set, labels.suffix)
        self._kinds = kinds
        self._position = 0
        self._labels = LabelSet(labels, self._data_set, spec.store, credentials)
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
        share = self._share(rank, self._position)
        iteration = ObjectIteration(self._epoch, share, worker, start_batch)
        spec = replace(
            self._spec,
            epoch=self._epoch,
            epochs=self._epochs_left(),
            start_position=self._position,
            start_batch=start_batch,
            worker=worker,
            rank=rank.index,
            world=rank.world,
            local_ranks=rank.local_ranks * worker.count,  # The workers share the CPUs of one rank.
        )
        share.log_tail(self._epoch)
        recipe = Recipe(
            open=lambda: self._open_native(partial(_native.Reader, observations=known), spec),
            pool=lambda: FunctionPool.make(self.pipeline.functions, spec.threads, spec.local_ranks),
            labels=self._labels,
            columns=self._column_reader(),
            policy=ErrorPolicy(self._on_error, self._max_errors, share.samples),
            pipeline=spec.pipeline,
            finish=lambda: self._finish(iteration),
        )
        self._follow(iteration)
        return ReaderIterator(iteration, recipe)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        return self._share(self._rank()).batches

    @property
    def samples(self) -> int:
        """Samples of a whole epoch on this rank, padding included."""
        return self._share(self._rank()).samples

    @property
    def tail_counts(self) -> TailCounts:
        """Samples that the tail policy drops or repeats in a whole epoch, over all ranks."""
        return self._share(self._rank()).tail_counts

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
        return (None if self._last is None else self._last.report.mode) or self._spec.mode

    def take(self, indices: Sequence[int]) -> Batch:
        """The samples with these indices in the data set, in this order, by one request.

        Random steps draw as in the reader's epoch. The threads live until `close`. Raises as an iterator does.
        """
        if self._lookup is None:
            self._lookup = SampleLookup(
                lambda epoch: self._open_native(_native.Reader, replace(self._spec, epoch=epoch))
            )
        batch = self._lookup.take(indices, self._epoch)
        batch, columns = self._column_reader().read(batch)
        batch, columns = ErrorPolicy(self._on_error, self._max_errors, len(indices)).apply(batch, columns)
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
        seed, order = self._spec.seed, self._spec.order_text
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
                seed=self._spec.seed,
                objects=self.objects.digest,
                pipeline=self._pipeline_digest,
                order=self._spec.order_text,
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
        done = max(self._epoch - self._spec.epoch, 0)
        return max(self._spec.epochs - done, 1)

    def _share(self, rank: Rank, start: int = 0) -> Share:
        spec = self._spec
        return Share(len(self.objects), rank.index, rank.world, spec.batch_size, spec.tail, start, spec.limit)

    def __getstate__(self) -> dict[str, Any]:
        epoch, position = self._next_place(*self._place())
        return {**super().__getstate__(), "_epoch": epoch, "_position": position, "_lookup": None}
