"""Two processes watch over each other, so that nothing of a run is left behind however it ends.

The one that was started waits. The other one does the work, in a process group of its own and with a folder of its own: when it
is gone, for whatever reason, the first one ends what is left of the group, takes away its namespaces and its folder, and gives
back the network device that it has shaped. If the first is killed, the kernel tells the second, which ends as if it had been
asked to. What neither could do, the next run does.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import links
from stack import forget_sockets

PARENT_DEATH_SIGNAL = 1
PREFIX = "pushdown-e2e-"
FOLDER = "PUSHDOWN_E2E_FOLDER"


def watched(command: list[str]) -> int:
    """Runs a command, and clears up behind it. Its status."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    run = subprocess.Popen(command, env=os.environ | {FOLDER: str(folder), "TMPDIR": str(folder)}, preexec_fn=leave)
    # Asked to end, it asks the run to, and goes on waiting.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: run.poll() is None and run.send_signal(number))
    try:
        return run.wait()
    finally:
        end_group(run.pid)
        links.remove(run.pid)
        for stack in folder.glob("*/"):
            forget_sockets(stack)
        shutil.rmtree(folder, ignore_errors=True)


def leave() -> None:
    """A group of its own, and the kernel's word when the one that waits is gone."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def folder() -> Path:
    """Where the run keeps its files."""
    return Path(os.environ[FOLDER])


def clear() -> None:
    """Takes the folder away: the run does so, too, since the one that waits may be gone."""
    shutil.rmtree(folder(), ignore_errors=True)


def end_group(group: int) -> None:
    """Ends what is left of a process group, and waits until nothing is."""
    deadline = time.monotonic() + 10
    try:
        while time.monotonic() < deadline:
            os.killpg(group, signal.SIGKILL)
            time.sleep(0.05)
    except ProcessLookupError:
        return
    print(f"e2e: process group {group} does not end", file=sys.stderr)


def sweep() -> None:
    """Takes away folders of runs whose two processes were both killed at once; what `links` has made goes there."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            os.kill(int(left.name.removeprefix(PREFIX).partition("-")[0]), signal.SIG_DFL)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except (ValueError, PermissionError):
            continue
