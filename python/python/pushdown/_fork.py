"""Native readers and `fork`: their threads exist only in the process that started them.

Before a fork, idle readers are closed, and made anew on their next use. Others are unusable in the child, where they are never
dropped: that would wait for threads that do not exist.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Generic, Protocol, TypeVar

from .errors import ClosedError, ForkedReaderError, native_errors

__all__ = ["Handle"]


class _Closable(Protocol):
    def close(self) -> None: ...


Native = TypeVar("Native", bound=_Closable)


class Handle(Generic[Native]):
    """Owns a live native object. `lock` is held while it is in use, if `closes_at_fork`."""

    __slots__ = ("__weakref__", "_is_forked", "_native", "closes_at_fork", "lock")

    def __init__(self, native: Native, *, closes_at_fork: bool = False) -> None:
        self._native: Native | None = native
        self._is_forked = False
        self.closes_at_fork = closes_at_fork
        self.lock = threading.Lock()
        _handles.add(self)

    def native(self) -> Native:
        """The native object. Raises `ForkedReaderError` in a forked child, and `ClosedError` after `close`."""
        if self._native is not None:
            return self._native
        if self._is_forked:
            raise ForkedReaderError(
                f"this iterator was live when process {os.getppid()} forked, and its threads do not run in process {os.getpid()}: "
                "iterate over the reader again"
            )
        raise ClosedError("the iterator is closed: iterate over the reader again")

    @property
    def is_open(self) -> bool:
        """Whether the native object can be used in this process."""
        return self._native is not None

    def close(self) -> None:
        """Ends the threads of the native object and waits for them. Does nothing the second time, and in a forked child."""
        native, self._native = self._native, None
        if native is not None:
            with native_errors():
                native.close()

    def _close_if_idle(self) -> None:
        if self.closes_at_fork and self.lock.acquire(blocking=False):
            try:
                self.close()
            finally:
                self.lock.release()

    def _enter_child(self) -> None:
        # Another thread of the parent may hold the lock, and does not exist here.
        self.lock = threading.Lock()
        if self._native is not None:
            _inherited.append(self._native)
            self._native = None
            self._is_forked = True


_handles: weakref.WeakSet[Handle[Any]] = weakref.WeakSet()
# What a child inherited, kept forever so that it is never dropped.
_inherited: list[_Closable] = []


def _before_fork() -> None:
    for handle in list(_handles):
        handle._close_if_idle()


def _after_fork_in_child() -> None:
    for handle in list(_handles):
        handle._enter_child()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
