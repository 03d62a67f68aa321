"""Python functions after the pipeline (`Pipeline.then`), in threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, TypeAlias

from . import _native
from .errors import native_errors

__all__ = ["FunctionPool", "apply_functions"]

Function: TypeAlias = Callable[[Any], Any]
_THREADS = "pushdown-then"
# Rows that a thread takes at once: few enough to balance, enough to make handing over cheap.
_CHUNK_ROWS = 16


def apply_functions(functions: Sequence[Function], values: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The values of the samples `names` after all functions, in order; `None` where a sample has no value.

    An exception of a function is raised as it is, with a note that names the function and the sample.
    """
    results = []
    for value, sample in zip(values, names, strict=True):
        for function in functions if value is not None else ():
            try:
                value = function(value)
            except Exception as error:
                name = getattr(function, "__qualname__", type(function).__name__)
                note = f"in `{name}`, which `then` applies, for the sample `{sample}`"
                error.add_note(_native.escape(note))
                raise
        results.append(value)
    return results


class FunctionPool:
    """Threads that apply functions to the values of batches."""

    __slots__ = ("_executor", "_functions")

    def __init__(self, functions: Sequence[Function], threads: int | None, local_ranks: int) -> None:
        self._functions = functions
        workers = threads or max(1, _cpus() // local_ranks)
        self._executor = ThreadPoolExecutor(workers, _THREADS)

    @classmethod
    def make(
        cls, functions: Sequence[Function], threads: int | None, local_ranks: int
    ) -> FunctionPool | None:
        """A pool, unless there are no functions."""
        return cls(functions, threads, local_ranks) if functions else None

    def submit(self, batch: _native.Batch) -> Callable[[], list[Any]]:
        """Starts to apply the functions to a batch. The result waits for the values."""
        with native_errors():
            values, names = batch.values(), batch.names
        tasks: list[Future[list[Any]]] = []
        for start in range(0, len(names), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            tasks.append(self._executor.submit(apply_functions, self._functions, values[rows], names[rows]))
        return lambda: list(chain.from_iterable(task.result() for task in tasks))

    def close(self) -> None:
        """Cancels what has not begun, and waits for the functions that run."""
        # If the garbage collector closes the pool in one of its threads, that thread cannot wait for itself.
        is_inside = threading.current_thread().name.startswith(_THREADS)
        self._executor.shutdown(wait=not is_inside, cancel_futures=True)


def _cpus() -> int:
    """CPUs that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
