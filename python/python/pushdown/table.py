"""Tables: readers of their rows, and single tables."""

from __future__ import annotations

from typing import Unpack

from . import _native
from ._base import ReaderBase
from ._kinds import TableKind
from ._native import Table
from ._settings import SourceKind, shows_options
from ._source import Source
from .batch import TableBatch
from .errors import ConfigError
from .functions import get
from .iterator import TableIterator
from .options import Options, TableOptions
from .pipeline import PipelineLike
from .store import Connection, ConnectionOptions

__all__ = ["TableBatch", "TableIterator", "TableReader", "read_table"]


class TableReader(ReaderBase[TableBatch]):
    """Reads the rows of Parquet objects in batches of Arrow tables, through a pipeline of `select` and `each`.

    The options are those of `Reader`, as far as they apply to rows: `batch_size`, `seed`, `epoch`, `shuffle`, `mode`, `store`, `gateway`, `io`,
    `sampling` without an order and `tail="pad"`, and `plan` without `epochs` and `max_expand`. Row groups are shuffled, and rows within
    them; ranks keep contiguous stretches, so that almost every row group is read by one rank.

    A `TableReader` iterates, keeps its state, pickles and survives forks as a `Reader` of rows does. The order of rows depends on the
    world size. Raises `ConfigError`, `PipelineError`, and errors of listing the objects.
    """

    _kind: TableKind

    @shows_options(Options, SourceKind.TABLE)
    def __init__(
        self, source: Source, pipeline: PipelineLike, **options: Unpack[TableOptions]
    ) -> None:
        applied = Options.of(options).applied_to(SourceKind.TABLE)
        super().__init__(TableKind(source, pipeline, applied))

    def __iter__(self) -> TableIterator:
        """Starts to read at this reader's epoch and position. Rank and world size are looked up now."""
        return self._iterate(TableIterator)

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. The first call reads the footers of all objects."""
        return self._kind.count(self._rank()).batches


@shows_options(Connection)
def read_table(
    url: str,
    pipeline: PipelineLike,
    *,
    seed: int | None = None,
    epoch: int | None = None,
    **options: Unpack[ConnectionOptions],
) -> Table:
    """The rows of the table at `s3://bucket/key` after `pipeline`, such as `select(columns=[a, b], where='a > 3')`.

    The result has `__arrow_c_stream__`: `pyarrow.table(t)`, `polars.from_arrow(t)`, and DuckDB and pandas take it without a copy.
    The other arguments are those of `get`. Raises `ConfigError` if the pipeline makes no table, and errors of `get`.
    """
    value = get(url, pipeline, seed=seed, epoch=epoch, **options)
    if not isinstance(value, _native.Table):
        raise ConfigError(
            f"cannot read a table: expected a pipeline that makes a table, found {type(value).__name__}; use `get`"
        )
    return value
