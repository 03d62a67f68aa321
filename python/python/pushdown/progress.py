"""Progress of what takes long: a line on the terminal or in a notebook, otherwise a log line every 10 s. Nothing in the first second."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType
from typing import TextIO

from . import _native

__all__ = ["Progress"]

_log = logging.getLogger("pushdown")

_QUIET_SECONDS = 1.0
_LINE_SECONDS = 0.1
_LOG_SECONDS = 10.0


class Progress:
    """Shows how far something is, while a `with` block runs. Call it with the counts so far.

    `what` says what is done, `counts` is a format string for the counts. Log lines go to the logger `pushdown` at level INFO.
    """

    __slots__ = ("_counts", "_due", "_end", "_has_line", "_is_terminal", "_stream", "_what")

    def __init__(self, what: str, counts: str, stream: TextIO | None = None) -> None:
        self._what, self._counts = _native.escape(what), counts
        # `sys.stderr` is None in programs without a console.
        self._stream = stream or sys.stderr
        is_notebook = type(self._stream).__module__.startswith("ipykernel.")
        self._is_terminal = self._stream is not None and (self._stream.isatty() or is_notebook)
        # A notebook replaces a line, but does not erase it.
        self._end = "\n" if is_notebook else "\r\x1b[K"
        self._due = time.monotonic() + (_QUIET_SECONDS if self._is_terminal else _LOG_SECONDS)
        self._has_line = False

    def __enter__(self) -> Progress:
        return self

    def __call__(self, *counts: int) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        text = f"{self._what}: {self._counts.format(*counts)} so far"
        if self._is_terminal:
            self._due = now + _LINE_SECONDS
            self._has_line = True
            self._write(f"\r{text}\x1b[K")
        else:
            self._due = now + _LOG_SECONDS
            _log.info(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._has_line:
            self._write(self._end)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
