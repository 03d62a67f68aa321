"""One pass over an epoch: its native reader while it runs, and what is known about it afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from . import _native
from ._fork import Handle
from ._function_pool import FunctionPool
from .errors import ClosedError, native_errors
from .stats import Stats

__all__ = ["Iteration", "Report"]

Native = TypeVar("Native", _native.Reader, _native.TableReader, _native.ShardReader)


_CLOSED = "the iterator is closed: iterate over the reader again"


@dataclass(frozen=True, slots=True)
class Report:
    """What is known about an iteration, while it runs and after it was closed."""

    stats: Stats = field(default_factory=Stats)
    plan: str | None = None
    """The text of the plan; `None` before the first plan, without `mode="auto"`, and for readers that have none."""
    mode: str | None = None
    """The mode in force; `None` before the first batch, and for readers that have none."""


class Iteration(Generic[Native]):
    """One pass over an epoch, until its end or until it is closed. A reader keeps the last one for its state and its stats."""

    __slots__ = (
        "_closed_report",
        "_handle",
        "_is_closed",
        "_others",
        "_started",
        "batches",
        "epoch",
        "has_ended",
        "pool",
        "refused",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches = 0
        """Batches that the consumer has."""
        self.has_ended = False
        """Whether the consumer has seen the end of the epoch."""
        self.refused = 0
        """Samples that arrived with a value and an invalid column or label."""
        self.pool: FunctionPool | None = None
        self._handle: Handle[Native] | None = None
        self._others: tuple[Callable[[], None], ...] = ()
        self._is_closed = False
        self._started = 0.0
        self._closed_report = Report()

    @property
    def is_complete(self) -> bool:
        """Whether the consumer has every batch, even if it did not ask for one more."""
        return self.has_ended

    @property
    def is_started(self) -> bool:
        """Whether there is or was a native reader."""
        return self._handle is not None

    def start(self, native: Native, pool: FunctionPool | None = None, *others: Callable[[], None]) -> None:
        """Begins to read. `close` ends the threads of `native` and `pool`, and calls `others`."""
        self._handle = Handle(native)
        self.pool = pool
        self._others = others
        self._started = time.perf_counter()

    def native(self) -> Native:
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
            for other in self._others:
                ends.callback(other)
            self._closed_report = self._report(self._handle)
            self._keep(self._handle.native())

    def check_open(self) -> None:
        """Raises `ClosedError` after `close`."""
        if self._is_closed:
            raise ClosedError(_CLOSED)

    @property
    def report(self) -> Report:
        """What is known now, or at the end."""
        if self._handle is None or not self._handle.is_open:
            return self._closed_report
        return self._report(self._handle)

    def _keep(self, native: Native) -> None:
        """Takes what the next iteration needs from a native reader that is about to be closed."""

    def _report(self, handle: Handle[Native]) -> Report:
        native, plan, mode = handle.native(), None, None
        with native_errors():
            if not isinstance(native, _native.ShardReader):
                plan = native.plan()
            if isinstance(native, _native.Reader):
                mode = native.mode
            stats = Stats.from_json(native.stats_json(), time.perf_counter() - self._started, plan)
        counted = replace(stats, samples=stats.samples - self.refused, errors=stats.errors + self.refused)
        return Report(counted, plan, mode)
