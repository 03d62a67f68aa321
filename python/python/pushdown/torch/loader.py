"""A data loader whose threads read, decode and stack: no worker processes, no shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._settings import shows_options
from ..options import Options
from ..reader import Reader
from ._convert import TorchBatch, to_torch
from ._pinned import can_pin, to_pinned

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from .._source import Source
    from ..batch import Batch
    from ..iterator import ReaderIterator
    from ..objects import Objects
    from ..options import ReaderOptions
    from ..parquet import Parquet
    from ..pipeline import PipelineLike
    from ..stats import Stats


class Loader:
    """Iterates over the batches of an epoch as `TorchBatch`. It takes the place of `DataLoader`.

        shards = "s3://photos/train-{000000..000999}.tar"
        pt.Loader(shards, pipeline, index="train.parquet", labels=pushdown.Column("cls"), batch_size=256, seed=7)

    `source`, `pipeline` and the options are those of `pushdown.Reader`: a prefix of objects, shards with an `index` or
    without one, such as `s3://photos/train-{000000..000999}.tar.gz`, or rows of `s3://photos/data/train-*.parquet`.
    Values are owned by their tensors, writable, and never copied after they were stacked. `pin_memory`: stack them
    into pinned memory, for copies to a GPU that do not block (`batch.to("cuda", non_blocking=True)`); without CUDA it
    warns once and has no effect.

    Threads live while an iterator does. A new `iter()` closes the previous one. A complete pass goes on to
    the next epoch; one that was left early starts again where it began. A loader can be pickled, without
    credentials, and starts there in the other process, too. Raises `ConfigError`, `PipelineError` and errors of
    listing the objects.
    """

    @shows_options(Options)
    def __init__(
        self,
        source: Source | Parquet,
        pipeline: PipelineLike | None = None,
        *,
        pin_memory: bool = False,
        **options: Unpack[ReaderOptions],
    ) -> None:
        self.pin_memory = pin_memory
        self._reader = Reader(source, pipeline, **options)

    def __iter__(self) -> LoaderIterator:
        """Starts to read at the loader's epoch and position. Rank and world size are looked up now."""
        return LoaderIterator(iter(self._reader), self._conversion())

    def __len__(self) -> int:
        """Batches of an epoch on this rank. Raises `TypeError` for shards without an index."""
        return len(self._reader)

    def take(self, indices: Sequence[int]) -> TorchBatch:
        """The samples with these indices in the data set, in this order, by one request."""
        return self._conversion()(self._reader.take(indices))

    def set_epoch(self, epoch: int) -> None:
        """Makes the next `iter()` start with the first sample of `epoch`, from 0."""
        self._reader.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        """The epoch of the current or next iteration, from 0. A complete pass raises it by one."""
        return self._reader.epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is in the epoch: JSON under 300 bytes, the same on every rank.

        Of shards without an index it is the state of this rank, of about 12 bytes per sample in the buffer.
        """
        return self._reader.state_dict()

    def load_state_dict(
        self, state_dict: dict[str, Any] | Sequence[dict[str, Any]], *, strict: bool = True
    ) -> None:
        """Makes the next `iter()` go on from a state, of any world size, rank and batch size.

        For shards without an index it is the state of this rank, or in another world a list of the states of
        all ranks. Raises `StateError` if another seed, data set or pipeline saved it, unless `strict` is False.
        """
        self._reader.load_state_dict(state_dict, strict=strict)

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. It stays usable."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def classes(self) -> list[str]:
        """Names of the classes; the label of a sample is an index in this list."""
        return self._reader.classes

    @property
    def objects(self) -> Objects:
        """The objects of the data set, in order; of shards, the members that are samples."""
        return self._reader.objects

    @property
    def samples(self) -> int:
        """Samples of an epoch on this rank. Raises `TypeError` for shards without an index."""
        return self._reader.samples

    @property
    def stats(self) -> Stats:
        """Counters since the start of the iteration; `stats.verdict()` names the bottleneck."""
        return self._reader.stats

    @property
    def plan(self) -> str | None:
        """Where the steps run, as text; `None` if there is no plan."""
        return self._reader.plan

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": self._reader._unread()}

    def _conversion(self) -> Callable[[Batch], TorchBatch]:
        return to_pinned if self.pin_memory and can_pin() else to_torch


class LoaderIterator(Iterator[TorchBatch]):
    """The batches that are left of an epoch."""

    def __init__(self, batches: ReaderIterator, convert: Callable[[Batch], TorchBatch]) -> None:
        self._batches = batches
        self._convert = convert

    def __next__(self) -> TorchBatch:
        return self._batches.advance(self._convert)

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once."""
        self._batches.close()
