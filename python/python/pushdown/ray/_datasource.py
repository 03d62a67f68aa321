"""A data source of Ray Data whose tasks are stretches of a reader's data set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from .._kinds import Kind
from .._rank import Place, Rank
from .._settings import SourceKind
from .._stretches import Stretch, count_tasks
from ..batch import Batch
from ..errors import ConfigError
from ..iterator import ReaderIterator
from ..reader import Reader
from ._blocks import Layout, to_block
from ._cluster_pickle import ClusterPickle

if TYPE_CHECKING:
    from ray.data.context import DataContext

__all__ = ["SampleDatasource"]

# Of a sample whose size is unknown, as in a list of URLs.
_SAMPLE_BYTES = 100_000


class SampleDatasource(Datasource):
    """The samples of a reader that counts them all: with `tail="short"`, as one rank."""

    def __init__(self, reader: Reader, layout: Layout) -> None:
        """Raises `ConfigError` if there is no sample."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._pickle, self._layout = ClusterPickle(reader), layout
        stretches = self._kind.divide(1)
        if not stretches:
            raise ConfigError("no samples in the data set: expected at least one row that satisfies `where`, found none")
        (self._whole,) = stretches

    @property
    def _kind(self) -> Kind[Batch]:
        return _task_reader(self._pickle).reader._kind

    def count_tasks(self, cpus: float) -> int:
        """The number of tasks for a cluster with this number of CPUs."""
        if self._kind.source is SourceKind.SHARDS:
            return len(self._whole.objects)
        return count_tasks(self._whole.stored_bytes or (self._whole.samples or 0) * _SAMPLE_BYTES, cpus)

    def get_name(self) -> str:
        return "Pushdown"

    def estimate_inmemory_data_size(self) -> int | None:
        return self._value_bytes(self._whole)

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: DataContext | None = None,
    ) -> list[ReadTask]:
        return [
            ReadTask(
                partial(_read, self._pickle, stretch, self._layout),
                self._metadata(stretch),
                per_task_row_limit=per_task_row_limit,
            )
            for stretch in self._kind.divide(parallelism)
        ]

    def _metadata(self, stretch: Stretch) -> BlockMetadata:
        return BlockMetadata(
            num_rows=None if self._layout.leaves_out else stretch.samples,
            size_bytes=self._value_bytes(stretch) or stretch.stored_bytes or None,
            input_files=None,
            exec_stats=None,
        )

    def _value_bytes(self, stretch: Stretch) -> int | None:
        """Bytes of the values of a stretch, as far as they are known."""
        value_bytes = self._layout.value_bytes
        return None if value_bytes is None or stretch.samples is None else value_bytes * stretch.samples


class _TaskReader:
    """A reader in the process of tasks. What its planner observes in one task helps the next one."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._known: Any = None

    def read(self, stretch: Stretch) -> Iterator[Batch]:
        """The batches of a stretch. Its threads end with the iterator."""
        kind, start = self.reader._kind.of_stretch(stretch)
        iteration = kind.iterate(start, Place(Rank()), self._known, 0)
        with ReaderIterator(iteration, lambda: None) as batches:
            yield from batches
        self._known = iteration.observations or self._known


_last: dict[str, _TaskReader] = {}
"""The reader of the last task of this process. Processes run many tasks of one data set, one after the other."""


def _task_reader(pickled: ClusterPickle[Reader]) -> _TaskReader:
    found = _last.get(pickled.id)
    if found is None:
        found = _TaskReader(pickled.open())
        _last.clear()
        _last[pickled.id] = found
    return found


def _read(pickled: ClusterPickle[Reader], stretch: Stretch, layout: Layout) -> Iterator[pa.Table]:
    """The blocks of a stretch: the same ones each time."""
    for batch in _task_reader(pickled).read(stretch):
        yield to_block(batch, layout, stretch.first_index)
