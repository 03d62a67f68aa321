"""Processes that tests start, end and wait for."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path


def wait(what: str, done: Callable[[], bool]) -> None:
    """Until it is so, a minute at most."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def alive(process: int) -> bool:
    """Whether it runs: one that has ended and was not asked for does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def descendants(process: int) -> dict[int, str]:
    """All processes below one, with their command lines."""
    found = {}
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        # Each may end at any time.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, task.read_text(encoding="ascii").split()):
                found[child] = ""
                found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found |= descendants(child)
    return found
