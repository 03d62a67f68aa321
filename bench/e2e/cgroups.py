"""Control groups that limit the CPU of programs, in both versions of the kernel's interface.

In version 2 a group is one folder. In version 1 it is a folder in each of the hierarchies `cpu` and `cpuacct`, which may be the same.
"""

import errno
import os
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NAMES = "pushdown-e2e-{process}-{name}"
# A program that has used its quota pauses until the next period. The kernel's default of 100 ms would be a long pause.
PERIOD_MICROSECONDS = 20_000
# The kernel may need a moment to notice that the last process has ended.
REMOVAL_SECONDS = 10


@dataclass(frozen=True)
class Cgroup:
    """A control group with a CPU quota."""

    name: str
    root: Path

    @property
    def has_version_2(self) -> bool:
        """Whether the controllers are in one hierarchy."""
        return (self.root / "cgroup.controllers").exists()

    @property
    def limits(self) -> Path:
        """The folder of its quota."""
        return (self.root if self.has_version_2 else self.root / "cpu") / self.name

    @property
    def accounts(self) -> Path:
        """The folder of its CPU time."""
        return (self.root if self.has_version_2 else self.root / "cpuacct") / self.name

    def create(self, cores: float) -> None:
        """Creates the group with a quota of this number of cores.

        Raises an OSError without the rights, and without a CPU controller."""
        if self.has_version_2:
            enabled = self.root / "cgroup.subtree_control"
            if "cpu" not in enabled.read_text(encoding="ascii").split():
                enabled.write_text("+cpu", encoding="ascii")
        self.limits.mkdir()
        self.accounts.mkdir(exist_ok=True)
        quota_microseconds = round(cores * PERIOD_MICROSECONDS)
        if self.has_version_2:
            (self.limits / "cpu.max").write_text(f"{quota_microseconds} {PERIOD_MICROSECONDS}", encoding="ascii")
        else:
            (self.limits / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS), encoding="ascii")
            (self.limits / "cpu.cfs_quota_us").write_text(str(quota_microseconds), encoding="ascii")

    def command(self, command: list) -> list:
        """The command, run in this group."""
        files = (shlex.quote(str(folder / "cgroup.procs")) for folder in (self.limits, self.accounts))
        joins = " && ".join(f"echo $$ > {file}" for file in files)
        return ["sh", "-c", f'{joins} && exec "$@"', "sh", *command]

    def cpu_seconds(self) -> float:
        """CPU seconds of all of its processes so far."""
        if self.has_version_2:
            lines = (self.accounts / "cpu.stat").read_text(encoding="ascii").splitlines()
            return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6
        return int((self.accounts / "cpuacct.usage").read_text(encoding="ascii")) / 1e9

    def remove(self) -> None:
        """Removes the group, after all of its processes have ended."""
        deadline = time.monotonic() + REMOVAL_SECONDS
        for folder in (self.limits, self.accounts):
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError as error:
                    if error.errno != errno.EBUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)


def of_process(name: str, root: Path = ROOT) -> Cgroup:
    """A group of this process, which is not created yet."""
    return Cgroup(NAMES.format(process=os.getpid(), name=name), root)


@contextmanager
def limited(name: str, cores: float, root: Path = ROOT) -> Iterator[Cgroup]:
    """A group of this process with a quota of this number of cores, until the end of the block."""
    group = of_process(name, root)
    try:
        group.create(cores)
        yield group
    finally:
        group.remove()


def unavailable_reason(root: Path = ROOT) -> str:
    """Why programs cannot have CPU quotas on this machine; empty if they can. Tries it."""
    try:
        with limited("trial", 1.0, root) as group:
            group.cpu_seconds()
    except (OSError, LookupError, ValueError) as error:
        return f"CPU quotas require root and a writable CPU controller in {root}: {error}"
    return ""


def remove(process: int, root: Path = ROOT) -> None:
    """Removes the groups of a run."""
    for group in _groups(str(process), root):
        group.remove()


def sweep(root: Path = ROOT) -> None:
    """Removes the groups of runs that were killed."""
    for group in _groups("*", root):
        try:
            os.kill(int(group.name.split("-")[2]), signal.SIG_DFL)
        except ProcessLookupError:
            group.remove()
        except (ValueError, PermissionError):
            continue


def _groups(process: str, root: Path) -> list[Cgroup]:
    """The groups of a process, or of all with `*`."""
    pattern = NAMES.format(process=process, name="*")
    found = {path.name for folder in (root, root / "cpu", root / "cpuacct") for path in folder.glob(pattern)}
    return [Cgroup(name, root) for name in sorted(found)]
