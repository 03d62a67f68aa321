"""Readers of samples: a source and a pipeline in, batches out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from ._base import ReaderBase
from ._kinds import open_samples
from ._kinds.kind import Count
from ._rank import ONLY_WORKER, Worker
from ._settings import does_not_apply, shows_options
from ._share import TailCounts
from ._source import Source
from .batch import Batch
from .iterator import ReaderIterator
from .options import Options, ReaderOptions
from .parquet import Parquet
from .pipeline import PipelineLike

__all__ = ["Reader", "ReaderIterator"]


class Reader(ReaderBase[Batch]):
    """Reads the samples of a source in batches, through a pipeline: objects, members of shards, or rows of Parquet objects.

        photos = pushdown.Reader("s3://photos/train/", "decode | resize(224, 224)", labels="dir", seed=7)
        shards = pushdown.Reader(
            "s3://photos/train-{000000..000999}.tar",
            index="train.parquet",
            columns={"jpg": "decode | resize(224, 224)", "json": "json"},
            labels=pushdown.Column("cls"),
            seed=7,
        )
        whole = pushdown.Reader("s3://photos/train-{000000..000999}.tar.gz", "decode", labels=pushdown.Column("cls"), seed=7)
        rows = pushdown.Reader("s3://photos/data/train-*.parquet", "decode | resize(224, 224)", labels="label", seed=7)

    `source`: `s3://bucket/prefix`, a list of URLs, `Objects`, or a `Manifest`. A prefix is listed once, here. With an `index`, a
    pattern of shards, a URL that ends in `/` and means all shards under it, or a list of these; or a `ShardIndex`. `Parquet`.
    `pipeline`: text, or steps of `pushdown.ops`. Functions of `Pipeline.then` run in threads.

    The source says what the samples are:

    - *Rows*: of `Parquet`, and of URLs that end in `.parquet`, unless the pipeline begins with `select` or `sql`, which read whole objects.
    - *Members of shards without an index*: without `index`, of URLs that end in `.tar`, `.tar.gz`, `.tgz` or `.tar.zst` (others need one), and with
      `Sampling(order="shards")` of all shards under a URL that ends in `/`.
    - *Members of shards with an index*: with `index`, of a `ShardIndex`, or of a list of samples.
    - *Objects*: of all other sources.

    Options that do not apply to them are refused.

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
      shards, whose keys are the names of the members. Of shards without an index, a `Column`; of rows, the name of their column.
    - `mode`: "auto" plans where steps run, and reads plainly from an endpoint that is no gateway; "pushdown"; "plain".
    - `on_error`: "raise" a `SampleError` for the first sample that fails; "report" it in `Batch.errors` and keep its row; "skip"
      its row. `max_errors`: end at more errors in an iteration; a whole number, or a fraction of its samples.
    - `store`: a `Store`: endpoint, region, profile, credentials, retries, timeouts; by default as in the AWS tools.
    - `gateway`: URL of the gateway that runs steps next to the store, for samples that are signed for the store; all else is read from the
      store. A sequence of URLs, or a name with several addresses, is a gateway with replicas. By default `PUSHDOWN_GATEWAY_URL`; without
      one the store's endpoint, if that is a gateway. "" is no gateway, whatever the environment has.
    - `sampling`: a `Sampling`: order, tail, rank and world, limit, hidden objects. `plan`: a `Plan`: split, epochs, compression, models.
      `io`: an `IO`: prefetch, requests and reads in flight, threads.
    - `value_cache`: folder of the values stored for later epochs, or a `ValueCache`, which has a size, too. Default: none.

    A reader starts nothing: threads live while an iterator does. It pickles in a few KB, without credentials. One iteration
    runs at a time: a second `iter()` closes the first. Each complete pass goes to the next epoch, and so to another order,
    unless `set_epoch` says otherwise; a pass that was left early starts again where it began.

    Of *shards without an index*:

    - Each shard is read by one GET, and all steps run on this host. The members of a sample follow each other in the shard.
    - `seed` shuffles the shards, and their samples by a buffer of `Sampling(buffer=1000)` samples: one reader has the order of a reader
      with an index and `Sampling(order="shards")`. Without one, or with `shuffle=False`, samples are in the order of the shards.
    - Shards are dealt out to ranks one by one, so that ranks have different numbers of batches. Have several times as many shards as ranks.
    - `max_errors` is a whole number. "skip" may leave a batch out.
    - `IO(prefetch=..)`: bytes of prefetched batches; a quarter of it is for samples that have arrived. The samples in the buffer come on top
      of it. `IO(requests=..)`: shards that are read at a time.
    - `index` of a batch is the index of each row's shard in `objects`, and `position` the number of the sample among those of this
      reader in the epoch. What is left of a shard that cannot be read further is one row, without a member, that fails.

    Of *rows*:

    - `keys` of a batch are those of the objects. `index` is the number of the row in the data set: the rows of all objects in their
      order.
    - Row groups are shuffled, and rows within them. Ranks keep contiguous stretches of that order. The order depends on the world;
      the value of a row does not: random steps draw by seed, epoch, key and row.
    - `y` is an int64 tensor for whole numbers, otherwise a list of Python values: those of pyarrow's `to_pylist`. Categories are their
      values.
    - Objects may differ in columns that are not read, in the order of columns, and in types that one type holds: int32 and int64, string
      and large_string, columns of nulls.

    Raises `ConfigError`, `PipelineError`, and errors of listing the objects.
    """

    @shows_options(Options)
    def __init__(
        self, source: Source | Parquet, pipeline: PipelineLike | None = None, **options: Unpack[ReaderOptions]
    ) -> None:
        super().__init__(open_samples(source, pipeline, Options.of(options)))

    def __iter__(self) -> ReaderIterator:
        """Starts to read at this reader's epoch and position. Rank and world size are looked up now."""
        return self.iterate()

    def iterate(self, worker: Worker = ONLY_WORKER, *, start_batch: int = 0) -> ReaderIterator:
        """As `iter()`, for one of the workers that share the batches of this rank, such as worker processes.

        It reads the batches `start_batch + worker.index`, `start_batch + worker.index + worker.count`, and so on. With several
        workers the state stays where the iteration began, since this reader does not know how far the others are.

        Of shards without an index, workers share the shards of the rank, and the state is that of this reader alone, as that of a rank is.
        Rows have no workers. Raises `ConfigError` for what does not apply.
        """
        shared, source = self._kind.promises.shared_by_workers, self._kind.source.value
        if worker.count > 1 and shared is None:
            raise does_not_apply("worker", worker, source, "one worker")
        if start_batch and shared != "batches":
            raise does_not_apply("start_batch", start_batch, source, "0, the default")
        return self._iterate(ReaderIterator, worker, start_batch)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. Of rows, the first call reads the footers of all objects.

        Raises `TypeError` for shards without an index: nobody knows how many samples there are.
        """
        return self._count("len()").batches

    @property
    def samples(self) -> int:
        """Samples of a whole epoch on this rank, padding included. Raises `TypeError` where `len()` does."""
        return self._count("number of samples").samples

    @property
    def tail_counts(self) -> TailCounts:
        """Samples that the tail policy drops or repeats in a whole epoch, over all ranks. Raises `TypeError` where `len()` does."""
        return self._count("tail counts").tail

    @property
    def classes(self) -> list[str]:
        """Names of the classes: label `i` is `classes[i]`. Empty if labels are no names of classes."""
        return self._kind.classes

    @property
    def mode(self) -> str:
        """The mode in force: of an iteration with `mode="auto"`, "plain" if the endpoint is no gateway."""
        return (None if self._last is None else self._last.report.mode) or self._options.mode

    def take(self, indices: Sequence[int]) -> Batch:
        """The samples with these indices in the data set, in this order, by one request.

        Random steps draw as in the reader's epoch. The threads live until `close`. Raises as an iterator does, and `ConfigError` for rows
        and for shards without an index.
        """
        return self._kind.take(indices, self.epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is: the first `position` samples of the epoch's order, over all ranks, are consumed.

        JSON values, less than 300 bytes, the same on every rank. It counts the batches that the consumer has received, not
        those that are prefetched; a sample that was skipped counts. After the last batch it is the beginning of the next epoch.
        Call it between batches at any time.

        Of rows, `rows_read` has a pair (world, rows of each rank) for each change of world in the epoch. Of shards without an index it is the
        state of this reader: which of its shards are left, and the samples in the buffer, in about 12 bytes for each of them.
        """
        return super().state_dict()

    def load_state_dict(
        self, state_dict: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, strict: bool = True
    ) -> None:
        """Makes the next iteration go on from a state, of any world size, rank and batch size. Closes one that runs.

        What is left of the epoch is dealt out anew: no sample twice, none lost. A state at the end of an epoch goes on at the
        beginning of the next one. Raises `StateError` for a state of another data set, pipeline, seed or order, or of other columns; with
        `strict=False` it goes on at the same position nevertheless.

        Of shards without an index it is a state of this reader, or a list of the states of all readers. In the same world the reader goes on
        exactly where it was, and its own state is enough. In another world, or with another buffer, all readers load the same list, of
        readers that may have stopped at different batches. A state that is missing is a `ConfigError` when the iteration begins.
        """
        super().load_state_dict(state_dict, strict=strict)

    def _count(self, what: str) -> Count:
        count = self._kind.count(self._rank())
        if count is None:
            source = self._kind.source.value
            raise TypeError(f"a reader of {source} has no {what}: the number of samples in {source} is unknown")
        return count
