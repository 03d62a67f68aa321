"""A data source of Ray Data whose tasks are stretches of a reader's data set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from .._rank import Place, Rank
from .._settings import SourceKind
from .._stretches import Stretch, count_tasks
from ..batch import Batch
from ..iterator import ReaderIterator
from ..reader import Reader
from ._blocks import Layout, to_block
from ._shipped import Shipped

if TYPE_CHECKING:
    from ray.data.context import DataContext

__all__ = ["SampleDatasource"]

# Of a sample whose size is unknown, as in a list of URLs.
_SAMPLE_BYTES = 100_000


class SampleDatasource(Datasource):
    """The samples of a reader that counts them all: with `tail="short"`, as one rank."""

    def __init__(self, reader: Reader, layout: Layout, value_bytes: int | None) -> None:
        """`value_bytes`: of all values together, as far as they are known."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._shipped = Shipped(reader)
        self._layout, self._value_bytes = layout, value_bytes

    def count_tasks(self, cpus: float) -> int:
        """How many tasks suit a cluster with so many CPUs."""
        kind = _opened(self._shipped).reader._kind
        if kind.source is SourceKind.SHARDS:
            return len(kind.objects)
        (whole,) = kind.divide(1)
        stored_bytes = whole.stored_bytes or (whole.samples or 0) * _SAMPLE_BYTES
        return count_tasks(stored_bytes, cpus)

    def get_name(self) -> str:
        return "Pushdown"

    def estimate_inmemory_data_size(self) -> int | None:
        return self._value_bytes

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: DataContext | None = None,
    ) -> list[ReadTask]:
        stretches = _opened(self._shipped).reader._kind.divide(parallelism)
        return [
            ReadTask(
                partial(_read, self._shipped, stretch, self._layout),
                self._metadata(stretch),
                per_task_row_limit=per_task_row_limit,
            )
            for stretch in stretches
        ]

    def _metadata(self, stretch: Stretch) -> BlockMetadata:
        size = stretch.stored_bytes or None
        if self._layout.value_bytes is not None and stretch.samples is not None:
            size = self._layout.value_bytes * stretch.samples
        return BlockMetadata(
            num_rows=None if self._layout.leaves_out else stretch.samples,
            size_bytes=size,
            input_files=None,
            exec_stats=None,
        )


class _Opened:
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


_last: dict[str, _Opened] = {}
"""The reader of the last task of this process. Processes run many tasks of one data set, one after the other."""


def _opened(shipped: Shipped[Reader]) -> _Opened:
    opened = _last.get(shipped.digest)
    if opened is None:
        opened = _Opened(shipped.open())
        _last.clear()
        _last[shipped.digest] = opened
    return opened


def _read(shipped: Shipped[Reader], stretch: Stretch, layout: Layout) -> Iterator[pa.Table]:
    """The blocks of a stretch: the same ones each time."""
    for batch in _opened(shipped).read(stretch):
        yield to_block(batch, layout, stretch.first_index)
