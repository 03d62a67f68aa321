"""A data set with access by index, for `DataLoader` with samplers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from torch.utils.data import Dataset, default_collate

from .._settings import shows_options
from ..options import Options
from ..reader import Reader
from ._convert import TorchBatch, to_torch

if TYPE_CHECKING:
    from typing import Unpack

    from .._source import Source
    from ..objects import Objects
    from ..options import ReaderOptions
    from ..pipeline import PipelineLike


class Samples(Sequence[tuple[Any, Any]]):
    """The samples (x, y) of one request. They are views of `batch`, which `collate` passes on as it is."""

    def __init__(self, batch: TorchBatch) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return len(self.batch)

    @overload
    def __getitem__(self, index: int) -> tuple[Any, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Any, Any]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Any, Any] | list[tuple[Any, Any]]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        batch = self.batch
        if batch.y is not None:
            return batch.x[index], batch.y[index]
        return batch.x[index], batch.members[index] or batch.keys[index]


class MapDataset(Dataset[tuple[Any, Any]]):
    """Samples (x, y) by index: `DataLoader(MapDataset(...), batch_size=64, collate_fn=collate, sampler=...)`.

    `source`, `pipeline` and the options are those of `pushdown.Reader`, but for rows of Parquet objects and shards
    without an index; the sampler decides about order, rank and batch size. A batch of indices is one request. Without
    `labels`, y is the key of the object, or the name of the member of a shard. `collate` passes on the batch as it was
    stacked; without it, `DataLoader` stacks the samples once more. Random steps draw by key and epoch: call
    `set_epoch` before each epoch. Raises `ConfigError`, `PipelineError` and errors of listing the objects.
    """

    @shows_options(Options)
    def __init__(
        self, source: Source, pipeline: PipelineLike | None = None, **options: Unpack[ReaderOptions]
    ) -> None:
        self._reader = Reader(source, pipeline, **options)
        if not self._reader._kind.promises.has_indices:
            raise self._reader._kind.read_in_batches("pushdown.torch.Loader", "MapDataset")
        self._length = len(self._reader.objects)

    def __len__(self) -> int:
        """Objects of the data set."""
        return self._length

    def __getitem__(self, index: SupportsIndex) -> tuple[Any, Any]:
        """The sample with this index; -1 is the last one. Raises `IndexError` and `SampleError`."""
        number = operator.index(index)
        if not -self._length <= number < self._length:
            raise IndexError(f"invalid index: expected a number below {self._length}, found {number}")
        return self.__getitems__([number])[0]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> Samples:
        """The samples with these indices, by one request. Raises `SampleError` if one of them fails."""
        numbers = [operator.index(index) for index in indices]
        return Samples(
            to_torch(self._reader.take([number + self._length * (number < 0) for number in numbers]))
        )

    def set_epoch(self, epoch: int) -> None:
        """Makes random steps draw as in `epoch`, from 0."""
        self._reader.set_epoch(epoch)

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


def collate(samples: Samples | Sequence[Any]) -> Any:
    """A `collate_fn` that passes on a batch as it was stacked. Other samples go to `default_collate`."""
    return samples.batch if isinstance(samples, Samples) else default_collate(list(samples))
