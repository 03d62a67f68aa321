"""An iterable data set of whole batches, for `DataLoader` with worker processes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset, get_worker_info

from .._rank import Worker
from .._settings import shows_options
from ..errors import ConfigError
from ..options import Options
from ..reader import Reader
from ._convert import TorchBatch
from ._worker import DatasetIterator, worker_iterator

if TYPE_CHECKING:
    from typing import Unpack

    from .._source import Source
    from ..objects import Objects
    from ..options import ReaderOptions
    from ..pipeline import PipelineLike


class Dataset(IterableDataset[TorchBatch]):
    """Yields whole batches: `DataLoader(Dataset(...), batch_size=None, num_workers=k)`.

    `source`, `pipeline` and the options are those of `pushdown.Reader`, but for rows of Parquet objects. Worker w of k
    reads batches w, w + k, .., so that the `DataLoader` delivers the same batches in the same order for every k. Tar
    shards without an `index` are dealt out to workers as a whole, and so the order depends on k; `len()` raises
    `TypeError` for them. Workers pay off only for slow Python functions in the pipeline (`Pipeline.then`): all other
    steps run in threads, with `num_workers=0` as well.

    Works with the start methods fork, forkserver and spawn: a worker receives a description without
    credentials, threads or connections. Batches that this process has looked at are not missing there: workers
    begin where that pass began, or with the next epoch if it was complete. With workers, call `set_epoch` before
    each epoch: this process does not see how far they are. Workers with `persistent_workers=True` do not see
    that call, and go on to the next epoch with each loop. Raises `ConfigError`, `PipelineError` and errors of
    listing the objects.
    """

    @shows_options(Options)
    def __init__(
        self, source: Source, pipeline: PipelineLike | None = None, **options: Unpack[ReaderOptions]
    ) -> None:
        super().__init__()
        self._reader = Reader(source, pipeline, **options)
        kind = self._reader._kind
        if kind.promises.shared_by_workers is None:
            raise ConfigError(
                f"{kind.source.value} are not shared by workers: expected pushdown.torch.Loader, found Dataset"
            )
        self._has_functions = bool(self._reader.pipeline.functions)
        self._first_epoch = options.get("epoch", 0)
        self._live: DatasetIterator | None = None
        """In a worker: its latest iteration."""

    def __iter__(self) -> DatasetIterator:
        """The batches of this worker. The first `next()` looks up rank and world size, and starts to read."""
        worker = get_worker_info()
        # Batches of an earlier pass, also in the parent of this worker, are read again.
        self._reader._begin_again()
        if worker is None:
            # Not kept here: its threads end when the consumer drops it.
            return worker_iterator(self._reader)
        if self._live is not None:
            # After a loop that ended early, workers have read differently far: all go on to the same epoch.
            self._reader.set_epoch(self._live.epoch + 1)
        if worker.id == 0 and self._reader.epoch == self._first_epoch and not self._has_functions:
            _warn_about_workers()
        self._live = worker_iterator(self._reader, Worker(worker.id, worker.num_workers))
        return self._live

    def __len__(self) -> int:
        """Batches of an epoch on this rank, over all workers. Raises `TypeError` for shards without an index."""
        return len(self._reader)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start with the first sample of `epoch`, from 0."""
        self._live = None
        self._reader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Without workers: where the consumer is in the epoch. In a worker: where the iteration started.

        Of shards without an index: where this worker is.
        """
        return self._reader.state_dict() if self._live is None else self._live.dataset_state()

    def load_state_dict(
        self, state_dict: dict[str, Any] | Sequence[dict[str, Any]], *, strict: bool = True
    ) -> None:
        """Makes the next iteration start at a state of a data set, loader or reader.

        For shards without an index, workers need the states of all ranks, as a list. Raises `StateError` if another seed, data set or pipeline saved it, unless `strict` is False.
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
        return {**self.__dict__, "_live": None, "_reader": self._reader._unread()}


@functools.cache
def _warn_about_workers() -> None:
    warnings.warn(
        "num_workers > 0 only costs memory: the pipeline has no Python functions, and its steps run in "
        "threads; use num_workers=0, or pushdown.torch.Loader",
        UserWarning,
        stacklevel=3,
    )
