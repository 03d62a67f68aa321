"""An iterable data set of whole batches, for `DataLoader` with worker processes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset, get_worker_info

from ..errors import ConfigError
from ..reader import Reader
from ._convert import TorchBatch, to_torch

if TYPE_CHECKING:
    from typing import Unpack

    from .._source import Source
    from ..objects import Objects
    from ..pipeline import PipelineLike
    from ..reader import ReaderIterator
    from ._options import ReaderOptions


class Dataset(IterableDataset[TorchBatch]):
    """Yields whole batches: `DataLoader(Dataset(...), batch_size=None, num_workers=k)`.

    `source`, `pipeline` and `options` are the arguments of `pushdown.Reader`. Worker w of k reads batches w,
    w + k, .., so that the `DataLoader` delivers the same batches in the same order for every k. Workers pay
    off only for slow Python functions in the pipeline (`Pipeline.then`): all other steps run in threads, with
    `num_workers=0` as well.

    Works with the start methods fork, forkserver and spawn: a worker receives a description without
    credentials, threads or connections. With workers, call `set_epoch` before each epoch: this process does
    not see how far they are. Workers with `persistent_workers=True` do not see that call, and go on to the
    next epoch with each loop. Raises `ConfigError`, `PipelineError` and errors of listing the objects.
    """

    def __init__(
        self, source: Source, pipeline: PipelineLike | None = None, **options: Unpack[ReaderOptions]
    ) -> None:
        super().__init__()
        self._reader = Reader(source, pipeline, **options)
        self._has_functions = bool(self._reader.pipeline.functions)
        self._first_epoch = options.get("epoch", 0)
        self._live: DatasetIterator | None = None
        """In a worker: its latest iteration."""

    def __iter__(self) -> DatasetIterator:
        """The batches of this worker. The first `next()` looks up rank and world size, and starts to read."""
        worker = get_worker_info()
        if worker is None:
            # Not kept here: its threads end when the consumer drops it.
            return DatasetIterator(self._reader, 1, 0, start=None)
        if self._live is not None and self._live.start is not None:
            # After a loop that ended early, workers have read differently far: all go on to the same epoch.
            self._reader.set_epoch(int(self._live.start["epoch"]) + 1)
        # A forked worker may inherit an iteration of its parent. It goes on there, as a spawned one does.
        self._reader.load_state_dict(self._reader.state_dict())
        start = self._reader.state_dict()
        if worker.id == 0 and start["epoch"] == self._first_epoch and not self._has_functions:
            _warn_about_workers()
        self._live = DatasetIterator(self._reader, worker.num_workers, worker.id, start=start)
        return self._live

    def __len__(self) -> int:
        """Batches of an epoch on this rank, over all workers."""
        return len(self._reader)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start with the first sample of `epoch`, from 0."""
        self._live = None
        self._reader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Without workers: where the consumer is in the epoch. In a worker: where the iteration started."""
        if self._live is not None and self._live.start is not None:
            return dict(self._live.start)
        return self._reader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any], *, strict: bool = True) -> None:
        """Makes the next iteration start at a state of a data set, loader or reader.

        Raises `StateError` if another seed, data set or pipeline saved it, unless `strict` is False.
        """
        self._live = None
        self._reader.load_state_dict(state_dict, strict=strict)

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. It stays usable."""
        self._reader.close()

    @property
    def classes(self) -> list[str]:
        """Names of the classes; the label of a sample is an index in this list."""
        return self._reader.classes

    @property
    def objects(self) -> Objects:
        """The objects of the data set, in order; of shards, the members that are samples."""
        return self._reader.objects

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None}


class DatasetIterator(Iterator[TorchBatch]):
    """The batches of one of `workers` workers that take turns, with a state for `StatefulDataLoader`."""

    def __init__(self, reader: Reader, workers: int, turn: int, *, start: dict[str, Any] | None) -> None:
        self._reader = reader
        self._workers = workers
        self._turn = turn
        self._delivered = 0
        self._batches: ReaderIterator | None = None
        self.start = start
        """In a worker: the state in which the iteration started. `None` without workers."""

    def __next__(self) -> TorchBatch:
        if self._batches is None:
            # A state may have been loaded since the iterator was made. Batches are numbered over all workers.
            self._batches = self._reader.iterate(
                every=self._workers, turn=self._turn, start_batch=self._delivered * self._workers
            )
        batch = self._batches.advance(to_torch)
        self._delivered += 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        """Without workers: where the consumer is in the epoch.

        In a worker: where the iteration started, the number of batches that this worker has delivered since
        then (`batches`), and the number of `workers`.
        """
        if self.start is None:
            return self._reader.state_dict()
        return {**self.start, "batches": self._delivered, "workers": self._workers}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state of this worker.

        Raises `StateError`, and `ConfigError` if the number of workers differs.
        """
        start = dict(state_dict)
        delivered, workers = start.pop("batches", 0), start.pop("workers", self._workers)
        if workers != self._workers:
            raise ConfigError(
                f"cannot load the state of a worker: expected a state of {self._workers} workers, "
                f"found one of {workers}; use num_workers={workers}, or resume with a state of "
                "`pushdown.torch.Loader`, which has no workers"
            )
        self.close()
        self._reader.load_state_dict(start)
        self._delivered = delivered
        if self.start is not None:
            self.start = start

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once."""
        if self._batches is not None:
            self._batches.close()
            self._batches = None


@functools.cache
def _warn_about_workers() -> None:
    warnings.warn(
        "num_workers > 0 only costs memory: the pipeline has no Python functions, and its steps run in "
        "threads; use num_workers=0, or pushdown.torch.Loader",
        UserWarning,
        stacklevel=3,
    )
