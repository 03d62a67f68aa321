"""Samples by index, with a native reader that is kept from call to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import _native
from ._fork import Handle
from .errors import native_errors

__all__ = ["SampleLookup"]


class SampleLookup:
    """Takes samples by index. Its native reader is made at the first use, after `close`, and after a fork."""

    __slots__ = ("_epoch", "_handle", "_open")

    def __init__(self, open_native: Callable[[int], _native.Reader]) -> None:
        self._open = open_native
        self._epoch = 0
        self._handle: Handle[_native.Reader] | None = None

    def take(self, indices: Sequence[int], epoch: int) -> _native.Batch:
        """The objects with these indices in the data set, in this order, as random steps draw them in `epoch`."""
        while True:
            handle = self._handle
            if handle is None or not handle.is_open:
                handle = self._handle = Handle(self._open(epoch), closes_at_fork=True)
                self._epoch = epoch
            with handle.lock:
                # A fork in another thread may have closed it a moment ago.
                if not handle.is_open:
                    continue
                with native_errors():
                    native = handle.native()
                    if epoch != self._epoch:
                        native.set_epoch(epoch)
                        self._epoch = epoch
                    return native.take(indices)

    def close(self) -> None:
        """Ends all threads."""
        if self._handle is not None:
            self._handle.close()
