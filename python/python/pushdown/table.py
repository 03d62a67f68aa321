"""Readers of table rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Unpack

from . import _native
from ._base import ReaderBase
from ._function_pool import FunctionPool
from ._native import Table
from ._settings import SourceKind, shows_options
from ._source import Source
from ._spec import ReaderSpec
from ._table_iterator import TableBatch, TableIteration, TableIterator
from .errors import ConfigError, StateError, native_errors
from .functions import get
from .options import Options, TableOptions
from .pipeline import Pipeline, PipelineLike
from .state import VERSION, check_members, check_origin
from .store import Connection, ConnectionOptions

__all__ = ["RowReaderBase", "TableBatch", "TableIterator", "TableReader", "read_table"]


class RowReaderBase(ReaderBase[TableIteration]):
    """What readers of rows share: iterations, counts, and the state that resumes in any world."""

    def __init__(self, source: Source, pipeline: Pipeline, options: Options) -> None:
        super().__init__(source, pipeline, options)
        self._rows_read: tuple[tuple[int, int], ...] = ()
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}
        self._footers: _native.Footers | None = None
        """What was read of the ends of the objects; `None` before the first native reader."""

    @property
    def plan(self) -> str | None:
        """The plan of the current or last iteration, as text. `None` before the first plan, without `mode="auto"`, and once all rows are
        read plainly since the gateway does not compute them."""
        return None if self._last is None else self._last.report.plan

    def _iterate(self, pool: Callable[[], FunctionPool | None] = lambda: None) -> TableIterator:
        """Starts to read at this reader's epoch and position. Rank and world size are looked up now."""
        self._end_previous()
        # Its planner has measured what the next one needs to know.
        known = None if self._last is None else self._last.observations
        spec = self._rank_spec(rows_read=self._rows_read)
        iteration = TableIteration(self._epoch, self._rows_read, spec.world, self._options.batch_size)
        self._follow(iteration)
        return TableIterator(
            iteration,
            lambda: self._open_table(spec, known),
            pool,
            lambda: self._finish(iteration),
        )

    def _count(self) -> tuple[int, int]:
        """Rows and batches of a whole epoch on this rank."""
        # The numbers of every epoch are those of the first one.
        spec = self._rank_spec(epoch=self._options.epoch)
        place = spec.rank, spec.world
        if place not in self._counts:
            native = self._open_table(spec)
            with native_errors():
                self._counts[place] = len(native), native.batches
                native.close()
        return self._counts[place]

    def _open_table(self, spec: ReaderSpec, known: _native.Observations | None = None) -> _native.TableReader:
        """Makes a native reader, which reads the footers that no earlier one has read."""
        kind = partial(_native.TableReader, observations=known, footers=self._footers)
        native = self._open_native(kind, spec)
        self._footers = native.footers()
        return native

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. The first call reads the footers of all objects."""
        return self._count()[1]

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is: `rows_read` has a pair (world, rows of each rank) for each change of world in the epoch.

        JSON values, the same on every rank. It counts the batches that the consumer has received. After the last batch it is the
        beginning of the next epoch. Call it between batches at any time.
        """
        epoch, rows_read = self._place()
        return {
            "version": VERSION,
            "seed": self._options.seed,
            "epoch": epoch,
            "rows_read": [list(entry) for entry in rows_read],
            "objects": self.objects.digest,
            "pipeline": self._pipeline_digest,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any], *, strict: bool = True) -> None:
        """Makes the next iteration go on from a state, of any world size, rank and batch size. Closes one that runs.

        Raises `StateError` for a state of another data set, pipeline or seed; with `strict=False` it goes on nevertheless.
        """
        check_members(state_dict, numbers=("epoch",))
        if strict:
            check_origin(
                state_dict, seed=self._options.seed, objects=self.objects.digest, pipeline=self._pipeline_digest
            )
        rows_read = state_dict.get("rows_read")
        if not isinstance(rows_read, (list, tuple)):
            raise StateError(
                "the member", "`rows_read`", sorted(state_dict), "is it the state of a TableReader?"
            )
        for entry in rows_read:
            if not _is_entry(entry):
                raise StateError("entries", "[world, rows of each rank]", entry, "was the state edited?")
        self._stop()
        self._epoch = state_dict["epoch"]
        self._rows_read = tuple((world, rows) for world, rows in rows_read)

    def _place(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The epoch of the consumer, and what is read of it."""
        current = self._current
        if current is None:
            return self._epoch, self._rows_read
        return (current.epoch + 1, ()) if current.is_complete else (current.epoch, current.rows_read)

    def _restart(self, epoch: int) -> None:
        self._epoch, self._rows_read = epoch, ()

    def _rank_spec(self, **members: Any) -> ReaderSpec:
        rank = self._rank()
        return self._spec(rank=rank.index, world=rank.world, local_ranks=rank.local_ranks, **members)

    def __getstate__(self) -> dict[str, Any]:
        epoch, rows_read = self._place()
        return {**super().__getstate__(), "_epoch": epoch, "_rows_read": rows_read, "_footers": None}


class TableReader(RowReaderBase):
    """Reads the rows of Parquet objects in batches, through a pipeline of `select` and `each`.

    The options are those of `Reader`, as far as they apply to rows: `batch_size`, `seed`, `epoch`, `shuffle`, `mode`, `store`, `io`,
    `sampling` without an order and `tail="pad"`, and `plan` without `epochs` and `max_expand`. Row groups are shuffled, and rows within
    them; ranks keep contiguous stretches, so that almost every row group is read by one rank.

    A `TableReader` iterates, keeps its state, pickles and survives forks as a `Reader` does. The order of rows depends on the
    world size. Raises `ConfigError`, `PipelineError`, and errors of listing the objects.
    """

    @shows_options(Options, SourceKind.TABLE)
    def __init__(
        self, source: Source, pipeline: PipelineLike, **options: Unpack[TableOptions]
    ) -> None:
        chosen = Options.of(options, SourceKind.TABLE)
        parsed = Pipeline.of(pipeline)
        if parsed.functions:
            raise ConfigError(
                "invalid pipeline of a TableReader: expected no functions, found `then`; apply them to its batches"
            )
        super().__init__(source, parsed, chosen)

    def __iter__(self) -> TableIterator:
        """Starts to read at this reader's epoch and position. Rank and world size are looked up now."""
        return self._iterate()

    def __repr__(self) -> str:
        return f"TableReader({len(self.objects):,} objects of s3://{self.objects.bucket}/{self._data_set.prefix}, {self.pipeline!r})"


def _is_entry(entry: object) -> bool:
    """Whether it is a world and the rows that each of its ranks has read."""
    return (
        isinstance(entry, (list, tuple))
        and len(entry) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) for number in entry)
        and entry[0] >= 1
        and entry[1] >= 0
    )


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
