"""The iterator over the batches of an epoch."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from . import _native
from ._function_pool import FunctionPool
from ._labels import LabelSet
from ._policy import ErrorPolicy
from ._sample_columns import ColumnReader, ColumnValues
from ._sample_iteration import SampleIteration
from .batch import Batch, make_batch
from .errors import Error, native_errors

__all__ = ["ReaderIterator", "Recipe"]

Result = TypeVar("Result")

# Batches whose functions run while the consumer has an earlier one.
_LOOK_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a reader's iterators make batches."""

    open: Callable[[], _native.Reader | _native.ShardReader]
    pool: Callable[[], FunctionPool | None]
    labels: LabelSet
    columns: ColumnReader
    policy: ErrorPolicy
    pipeline: str
    finish: Callable[[], None]
    """Called once the consumer has seen the end of the epoch."""


class ReaderIterator(Iterator[Batch]):
    """Batches of an epoch, in order. Reading starts with the first `next()`.

    Its threads end with the last batch, with an error, with `close`, with the `with` block, or when it is garbage.
    """

    def __init__(self, iteration: SampleIteration[Any], recipe: Recipe) -> None:
        self._iteration = iteration
        self._recipe = recipe
        self._pending: deque[Callable[[], Batch]] = deque()
        self._is_drained = False
        # Refers to the iteration alone: a reference to this iterator would keep it alive.
        weakref.finalize(self, iteration.close)

    def __next__(self) -> Batch:
        """The next batch. Waits; Ctrl-C ends the wait and closes the iterator.

        Raises `SampleError` as `on_error` says, what a function raised, `UnavailableError` and other errors of reading,
        `ForkedReaderError` in a process forked since, and `ClosedError` after `close`.
        """
        return self.advance(lambda batch: batch)

    def advance(self, convert: Callable[[Batch], Result]) -> Result:
        """As `next()`, with the batch converted. It counts as received once it is converted; if that fails, the iterator is closed."""
        if self._iteration.has_ended:
            raise StopIteration
        try:
            self._fill()
            if self._pending:
                batch = self._pending.popleft()()
                converted = convert(batch)
                self._iteration.deliver(batch)
                return converted
        except BaseException:
            self.close()
            raise
        self._iteration.has_ended = True
        self.close()
        self._recipe.finish()
        raise StopIteration

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once."""
        self._iteration.close()
        self._pending.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _fill(self) -> None:
        """Takes batches from the native reader: one, or a few more if there are functions to run meanwhile."""
        iteration = self._iteration
        if not iteration.is_started:
            iteration.check_open()
            iteration.start(self._recipe.open(), self._recipe.pool(), self._recipe.labels.close)
        native = iteration.native()
        # The look-ahead grows by one per batch, so that the first batch does not wait for others.
        wanted = 1 if iteration.pool is None else 1 + min(iteration.batches, _LOOK_AHEAD)
        while len(self._pending) < wanted and not self._is_drained:
            try:
                self._pull(native)
            except Error as error:
                # It belongs to a later batch: those before it come first.
                self._is_drained = True
                self._pending.append(partial(_raise, error))

    def _pull(self, native: _native.Reader | _native.ShardReader) -> None:
        with native_errors(self._recipe.pipeline):
            batch = native.next()
        if batch is None:
            self._is_drained = True
            return
        columns = self._recipe.columns.read(batch)
        self._iteration.refused += len(columns.errors)
        batch, columns = self._recipe.policy.apply(batch, columns)
        if len(batch) == 0:
            return
        pool = self._iteration.pool
        values = None if pool is None else pool.submit(batch)
        # Refers to no method of this iterator, which would keep it alive until the garbage collector runs.
        self._pending.append(partial(_make, self._recipe.labels, batch, columns, values))


def _make(
    labels: LabelSet,
    batch: _native.Batch,
    columns: ColumnValues,
    values: Callable[[], list[Any]] | None,
) -> Batch:
    return make_batch(batch, labels.get(), columns, None if values is None else values())


def _raise(error: Error) -> Batch:
    raise error
