"""The `pushdown` command: a console script that calls the native command line."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from . import _native
from ._onnx import provide_onnx_runtime

__all__ = ["main"]


def main() -> NoReturn:
    """Runs the command line of this process, and exits with its code."""
    # The native command does not return to the interpreter until it has ended, so Ctrl-C must end the process itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    provide_onnx_runtime()
    sys.exit(_native.run_command(sys.argv))
