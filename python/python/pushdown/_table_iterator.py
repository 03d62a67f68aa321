"""Batches of table rows, and the iterator over those of an epoch."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from . import _native
from ._function_pool import FunctionPool
from ._iteration import Iteration
from ._native import Table, Tensor
from .errors import native_errors

__all__ = ["TableBatch", "TableIteration", "TableIterator"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Rows of an epoch, `n` of them. `batch["column"]` is a column. It pickles with its rows."""

    native: _native.TableBatch
    table: Table
    """The rows with `__arrow_c_stream__`, for pyarrow, polars, DuckDB and pandas, without a copy."""
    objects: Tensor
    """int64 `[n]`: index of each row's object."""
    rows: Tensor
    """int64 `[n]`: number of each row in its object."""
    number: int
    """Number of the batch since the start of the iteration, from 0."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.table.column_names

    def __getitem__(self, column: str) -> Tensor | list[object]:
        """A column: numbers, and arrays of one shape, as a tensor `[n, ...]`, all else as a list of Python values. Raises `KeyError`."""
        if column not in self.columns:
            raise KeyError(f"no column `{column}`: expected one of {', '.join(self.columns)}")
        with native_errors():
            values: Tensor | list[object] = self.native.column(column)
        return values

    def to_dict(self) -> dict[str, Tensor | list[object]]:
        """All columns by name."""
        return {column: self[column] for column in self.columns}

    def __len__(self) -> int:
        return len(self.native)

    def __reduce__(self) -> tuple[Callable[..., TableBatch], tuple[_native.TableBatch, Tensor, Tensor]]:
        # The native batch has the table, too, which would be pickled twice.
        return _table_batch, (self.native, self.objects, self.rows)


def _table_batch(
    native: _native.TableBatch, objects: Tensor | None = None, rows: Tensor | None = None
) -> TableBatch:
    """The batch of a native one. `objects` and `rows` replace those of the native batch."""
    with native_errors():
        return TableBatch(
            native,
            native.table,
            native.objects if objects is None else objects,
            native.rows if rows is None else rows,
            native.number,
        )


class TableIteration(Iteration[_native.TableReader]):
    """A pass over the rows of an epoch. `rows_read` is what was read of it before: (world, rows of each rank)."""

    __slots__ = ("_batch_size", "_rows_read", "_total_batches", "_world", "observations")

    def __init__(self, epoch: int, rows_read: Sequence[tuple[int, int]], world: int, batch_size: int) -> None:
        super().__init__(epoch)
        self._rows_read, self._world, self._batch_size = tuple(rows_read), world, batch_size
        self._total_batches: int | None = None
        self.observations: _native.Observations | None = None
        """What the planner knew when the iteration was closed."""

    @property
    def rows_read(self) -> tuple[tuple[int, int], ...]:
        """What was read until now: one entry for each change of the world size."""
        rows = self.batches * self._batch_size
        return tuple(_native.rows_read_after(self._rows_read, self._world, rows))

    def begin(self, native: _native.TableReader, pool: FunctionPool | None) -> None:
        """Begins to read. `pool` ends with the threads of `native`."""
        self.start(native, pool)
        self._total_batches = native.most_batches

    def _keep(self, native: _native.TableReader) -> None:
        with native_errors():
            self.observations = native.observations()

    @property
    def is_complete(self) -> bool:
        """Whether the consumer has every batch, even if it did not ask for one more."""
        # Other ranks may have one batch more, and until they have it the state is that of all ranks.
        return self.has_ended or (self.batches > 0 and self.batches == self._total_batches)


class TableIterator(Iterator[TableBatch]):
    """Batches of rows of an epoch, in order. Reading starts with the first `next()`.

    Its threads end with the last batch, with an error, with `close`, with the `with` block, or when it is garbage.
    """

    def __init__(
        self,
        iteration: TableIteration,
        open_native: Callable[[], _native.TableReader],
        pool: Callable[[], FunctionPool | None],
        finish: Callable[[], None],
    ) -> None:
        self._iteration, self._open, self._pool, self._finish = iteration, open_native, pool, finish
        weakref.finalize(self, iteration.close)

    def __next__(self) -> TableBatch:
        """The next batch. Waits; Ctrl-C ends the wait and closes the iterator.

        Raises errors of reading, `ForkedReaderError` in a process forked since, and `ClosedError` after `close`.
        """
        return self.advance(lambda batch: batch)

    @property
    def iteration(self) -> TableIteration:
        """The pass over the epoch."""
        return self._iteration

    def advance(self, convert: Callable[[TableBatch], Result]) -> Result:
        """As `next()`, with the batch converted. It counts as received once it is converted; if that fails, the iterator is closed."""
        iteration = self._iteration
        if iteration.has_ended:
            raise StopIteration
        try:
            if not iteration.is_started:
                iteration.check_open()
                iteration.begin(self._open(), self._pool())
            native = iteration.native()
            with native_errors():
                batch = native.next()
            if batch is not None:
                converted = convert(_table_batch(batch))
                iteration.batches += 1
                return converted
        except BaseException:
            self.close()
            raise
        iteration.has_ended = True
        self.close()
        self._finish()
        raise StopIteration

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once."""
        self._iteration.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
