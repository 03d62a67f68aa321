"""The iterators of a data set: without workers, or in one of several workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._rank import Worker
from ..errors import ConfigError
from ..reader import Reader
from ._convert import TorchBatch, to_torch

if TYPE_CHECKING:
    from ..iterator import ReaderIterator


class DatasetIterator(Iterator[TorchBatch], ABC):
    """The batches of one worker, with a state for `StatefulDataLoader`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._delivered = 0
        self._batches: ReaderIterator | None = None

    def __next__(self) -> TorchBatch:
        if self._batches is None:
            # A state may have been loaded since the iterator was made.
            self._batches = self._open()
        batch = self._batches.advance(to_torch)
        self._delivered += 1
        return batch

    @property
    @abstractmethod
    def epoch(self) -> int:
        """The epoch of the iteration."""

    @abstractmethod
    def _open(self) -> ReaderIterator:
        """Begins to read."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is in the epoch; in a worker, where this worker is."""

    @abstractmethod
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state of this worker. Raises `StateError`, and `ConfigError` if the number of workers differs."""

    @abstractmethod
    def dataset_state(self) -> dict[str, Any]:
        """The state of the data set in this worker."""

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once."""
        if self._batches is not None:
            self._batches.close()
            self._batches = None


class IndexedIterator(DatasetIterator):
    """Of objects, and of members with an index: workers share the batches of a rank."""

    def __init__(self, reader: Reader, worker: Worker, *, is_worker: bool) -> None:
        super().__init__(worker)
        self._reader = reader
        self._is_worker = is_worker
        self._start = reader.state_dict() if is_worker else {}
        """In a worker: the state in which the iteration started."""

    @property
    def epoch(self) -> int:
        return int(self._start["epoch"])

    def _open(self) -> ReaderIterator:
        # Batches are numbered over all workers.
        start_batch = self._delivered * self._worker.count
        return self._reader.iterate(self._worker, start_batch=start_batch)

    def state_dict(self) -> dict[str, Any]:
        """Without workers: where the consumer is in the epoch.

        In a worker: where the iteration started, the number of batches that this worker has delivered since
        then (`batches`), and the number of `workers`.
        """
        if not self._is_worker:
            # Without a batch yet, it is where this iterator begins: another one may have read since it was made.
            reader = self._reader if self._delivered else self._reader._unread()
            return reader.state_dict()
        return {**self._start, "batches": self._delivered, "workers": self._worker.count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        start = dict(state_dict)
        delivered, workers = start.pop("batches", 0), start.pop("workers", self._worker.count)
        if workers != self._worker.count:
            raise ConfigError(
                f"cannot load the state of a worker: expected a state of {self._worker.count} workers, "
                f"found one of {workers}; use num_workers={workers}, or resume with a state of "
                "`pushdown.torch.Loader`, which has no workers"
            )
        self.close()
        self._reader.load_state_dict(start)
        self._delivered = delivered
        self._start = start

    def dataset_state(self) -> dict[str, Any]:
        return dict(self._start)


class ShardIterator(DatasetIterator):
    """Of shards without an index: each worker has shards and a state of its own."""

    def __init__(self, reader: Reader, worker: Worker, *, is_worker: bool) -> None:
        super().__init__(worker)
        self._reader = reader
        self._is_worker = is_worker
        self._epoch = reader.epoch

    @property
    def epoch(self) -> int:
        return self._epoch

    def _open(self) -> ReaderIterator:
        return self._reader.iterate(self._worker)

    def state_dict(self) -> dict[str, Any]:
        """The state of the reader in this process. In a worker it stays in the epoch of the iteration, also at its end."""
        if self._batches is None and self._is_worker:
            # The reader learns which worker it is when it begins.
            self._batches = self._open()
        # Without workers and without a batch, another iterator may have read since this one was made.
        reader = self._reader if self._is_worker or self._delivered else self._reader._unread()
        state = reader.state_dict()
        if self._is_worker and state["epoch"] > self._epoch:
            # A loader that resumes while other workers are in this epoch asks this one, too: it has nothing left.
            state |= {"epoch": self._epoch, "shards_read": state.pop("ended")}
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.close()
        self._reader.load_state_dict(state_dict)
        self._epoch = self._reader.epoch

    def dataset_state(self) -> dict[str, Any]:
        return self.state_dict()


def worker_iterator(reader: Reader, worker: Worker | None = None) -> DatasetIterator:
    """The iterator of one worker, or without workers."""
    is_worker = worker is not None
    if reader._kind.promises.shared_by_workers == "shards":
        return ShardIterator(reader, worker or Worker(), is_worker=is_worker)
    return IndexedIterator(reader, worker or Worker(), is_worker=is_worker)
