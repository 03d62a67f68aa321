"""Two processes that watch each other, so that a run leaves nothing behind however it ends.

The outer process waits. The inner process does the work, in its own process group and with its own folder. When the inner
process ends for any reason, the outer process kills the rest of the group, removes its namespaces, control groups and folder, and
restores the network device that it shaped. If the outer process is killed, the kernel signals the inner one, which ends as if
it had been asked to. If both are killed at once, the next run cleans up.
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
from stack import remove_sockets

from . import cgroups

PARENT_DEATH_SIGNAL = 1
PREFIX = "pushdown-e2e-"
FOLDER = "PUSHDOWN_E2E_FOLDER"


def run_watched(command: list[str]) -> int:
    """Runs a command and cleans up after it. Returns its status."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    run = subprocess.Popen(command, env=os.environ | {FOLDER: str(folder), "TMPDIR": str(folder)}, preexec_fn=detach)
    # A signal is passed on to the run; this process continues to wait.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: run.poll() is None and run.send_signal(number))
    try:
        return run.wait()
    finally:
        end_group(run.pid)
        links.remove(run.pid)
        cgroups.remove(run.pid)
        for stack in folder.glob("*/"):
            remove_sockets(stack)
        shutil.rmtree(folder, ignore_errors=True)


def detach() -> None:
    """Puts the process into its own group, and makes the kernel signal it when the parent dies."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def folder() -> Path:
    """The folder of the run's files."""
    return Path(os.environ[FOLDER])


def remove_folder() -> None:
    """Removes the folder. The inner process does so too, since the outer process may be gone."""
    shutil.rmtree(folder(), ignore_errors=True)


def end_group(group: int) -> None:
    """Kills the rest of a process group and waits until it is empty."""
    deadline = time.monotonic() + 10
    try:
        while time.monotonic() < deadline:
            os.killpg(group, signal.SIGKILL)
            time.sleep(0.05)
    except ProcessLookupError:
        return
    print(f"e2e: process group {group} does not end", file=sys.stderr)


def sweep() -> None:
    """Removes folders and control groups of runs whose two processes were both killed. `links` removes their namespaces and
    devices."""
    cgroups.sweep()
    for leftover in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            os.kill(int(leftover.name.removeprefix(PREFIX).partition("-")[0]), signal.SIG_DFL)
        except ProcessLookupError:
            shutil.rmtree(leftover, ignore_errors=True)
        except (ValueError, PermissionError):
            continue
