"""Helpers for processes that tests start, end and wait for."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path


def wait(what: str, done: Callable[[], bool]) -> None:
    """Waits for a condition, at most a minute."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, f"did not happen: {what}"
        time.sleep(0.05)


def alive(process: int) -> bool:
    """Whether a process runs. A zombie does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def descendants(process: int) -> dict[int, str]:
    """The descendants of a process, with their command lines."""
    found = {}
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        # A process may end at any time.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, task.read_text(encoding="ascii").split()):
                found[child] = ""
                found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found |= descendants(child)
    return found
