"""One pass over an epoch: its native reader while it runs, what is known about it afterwards, and the iterators over its batches."""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar

from . import _native
from ._fork import Handle
from ._function_pool import FunctionPool
from .batch import Batch, TableBatch
from .errors import ClosedError, Error, native_errors
from .stats import Stats

__all__ = ["BatchIterator", "Iteration", "ReaderIterator", "Recipe", "Report", "Start", "TableIterator"]

Made = TypeVar("Made")
Result = TypeVar("Result")

# Batches whose functions run while the consumer has an earlier one.
_LOOK_AHEAD = 2
_CLOSED = "the iterator is closed: iterate over the reader again"


class NativeReader(Protocol):
    """What all native readers have."""

    @property
    def mode(self) -> str: ...
    def next(self) -> Any: ...
    def stats_json(self) -> str: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Start:
    """Where an iteration starts."""

    epoch: int
    read: Any = None
    """What is read of the epoch, in the form of the kind of source; `None` at the beginning."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is known about an iteration, while it runs and after it was closed."""

    stats: Stats = field(default_factory=Stats)
    plan: str | None = None
    """The text of the plan; `None` before the first plan, without `mode="auto"`, and for readers that have none."""
    mode: str | None = None
    """The mode in force; `None` before the first batch."""


@dataclass(frozen=True, slots=True)
class Recipe(Generic[Made]):
    """How the batches of an iteration are made."""

    open: Callable[[], NativeReader]
    pool: Callable[[], FunctionPool | None]
    make: Callable[[Iteration[Made], Any], Callable[[], Made] | None]
    """Begins to make a batch of a native one, and returns how it is finished; `None` for a batch that is left out."""
    pipeline: str
    forget: Callable[[], None]
    """Called if the iteration fails."""
    others: tuple[Callable[[], None], ...] = ()
    """Called at the end."""


class Iteration(ABC, Generic[Made]):
    """One pass over an epoch, until its end or until it is closed. A reader keeps the last one for its state and its stats."""

    def __init__(self, start: Start, recipe: Recipe[Made]) -> None:
        self.start = start
        self.recipe = recipe
        self.batches = 0
        """Batches that the consumer has."""
        self.has_ended = False
        """Whether the consumer has seen the end of the epoch."""
        self.refused = 0
        """Samples that arrived with a value and an invalid column or label."""
        self.pool: FunctionPool | None = None
        self.observations: _native.Observations | None = None
        """What the planner knew when the iteration was closed."""
        self._handle: Handle[NativeReader] | None = None
        self._is_closed = False
        self._started = 0.0
        self._closed_report = Report()

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether the consumer has every batch, even if it did not ask for one more."""

    @property
    @abstractmethod
    def left(self) -> Start:
        """Where the samples start that the consumer does not have yet."""

    @property
    def next_epoch(self) -> Start:
        """Where the next epoch starts, for a consumer that has every batch."""
        return Start(self.start.epoch + 1)

    def deliver(self, batch: Made) -> None:
        """Counts a batch that the consumer receives."""
        self.batches += 1

    def begin(self) -> None:
        """Begins to read, unless it has begun. Raises `ClosedError` after `close`."""
        if self._handle is None:
            if self._is_closed:
                raise ClosedError(_CLOSED)
            self._handle = Handle(self.recipe.open())
            self.pool = self.recipe.pool()
            self._started = time.perf_counter()

    def native(self) -> Any:
        """The native reader. Raises `ForkedReaderError` in a forked child, and `ClosedError` after `close`."""
        # In a forked child the handle raises `ForkedReaderError`, also if the parent closed the iterator later.
        if self._handle is None:
            raise ClosedError(_CLOSED)
        return self._handle.native()

    def close(self) -> None:
        """Ends all threads and waits for them; a step or function that runs is finished first. Keeps the final stats."""
        self._is_closed = True
        if self._handle is None or not self._handle.is_open:
            return
        with ExitStack() as ends:
            ends.callback(self._handle.close)
            if self.pool is not None:
                ends.callback(self.pool.close)
            for other in self.recipe.others:
                ends.callback(other)
            native = self._handle.native()
            self._closed_report = self._report(native)
            # One of shards without an index has no planner.
            if isinstance(native, (_native.Reader, _native.TableReader)):
                with native_errors():
                    self.observations = native.observations()

    @property
    def report(self) -> Report:
        """What is known now, or at the end."""
        if self._handle is None or not self._handle.is_open:
            return self._closed_report
        return self._report(self._handle.native())

    def _report(self, native: NativeReader) -> Report:
        plan = None
        with native_errors():
            # One of shards without an index has no planner.
            if isinstance(native, (_native.Reader, _native.TableReader)):
                plan = native.plan()
            mode = native.mode
            stats = Stats.from_json(native.stats_json(), time.perf_counter() - self._started, plan)
        counted = replace(stats, samples=stats.samples - self.refused, errors=stats.errors + self.refused)
        return Report(counted, plan, mode)


class BatchIterator(Iterator[Made]):
    """Batches of an epoch, in order. Reading starts with the first `next()`.

    Its threads end with the last batch, with an error, with `close`, with the `with` block, or when it is garbage.
    """

    def __init__(self, iteration: Iteration[Made], finish: Callable[[], None]) -> None:
        """`finish` is called once the consumer has seen the end of the epoch."""
        self._iteration = iteration
        self._finish = finish
        self._pending: deque[Callable[[], Made]] = deque()
        self._is_drained = False
        # Refers to the iteration alone: a reference to this iterator would keep it alive.
        weakref.finalize(self, iteration.close)

    def __next__(self) -> Made:
        """The next batch. Waits; Ctrl-C ends the wait and closes the iterator.

        Raises `SampleError` as `on_error` says, what a function raised, `UnavailableError` and other errors of reading,
        `ForkedReaderError` in a process forked since, and `ClosedError` after `close`.
        """
        return self.advance(lambda batch: batch)

    def advance(self, convert: Callable[[Made], Result]) -> Result:
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
            self._iteration.recipe.forget()
            self.close()
            raise
        self._iteration.has_ended = True
        self.close()
        self._finish()
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
        iteration.begin()
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

    def _pull(self, native: NativeReader) -> None:
        recipe = self._iteration.recipe
        with native_errors(recipe.pipeline):
            batch = native.next()
        if batch is None:
            self._is_drained = True
            return
        # Refers to no method of this iterator, which would keep it alive until the garbage collector runs.
        making = recipe.make(self._iteration, batch)
        if making is not None:
            self._pending.append(making)


class ReaderIterator(BatchIterator[Batch]):
    """Batches of samples of an epoch, in order. Reading starts with the first `next()`.

    Its threads end with the last batch, with an error, with `close`, with the `with` block, or when it is garbage.
    """


class TableIterator(BatchIterator[TableBatch]):
    """Batches of rows of an epoch, in order. Reading starts with the first `next()`.

    Its threads end with the last batch, with an error, with `close`, with the `with` block, or when it is garbage.
    """


def _raise(error: Error) -> NoReturn:
    raise error
