"""CPU time of a process with its children."""

from __future__ import annotations

import psutil
from e2e.tiers import cpu_seconds_of


def tree_cpu_seconds(root: psutil.Process) -> float:
    """CPU seconds, in user mode and in the kernel, of a process and all of its descendants, also of those that have ended.

    Of live processes from the kernel's clocks in nanoseconds; the kernel counts ended ones in 10 ms.
    """
    return sum(map(_cpu_seconds, [root, *root.children(recursive=True)]))


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
        return float(cpu_seconds_of(process) + times.children_user + times.children_system)
    except psutil.NoSuchProcess:
        # It has ended since it was listed: its parent counts it from now on.
        return 0.0
