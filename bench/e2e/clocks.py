"""CPU time of processes, from the kernel's clocks."""

from __future__ import annotations

import resource
import time

import psutil

# CPUCLOCK_SCHED in Linux: part of the number of the CPU clock of a process.
PROCESS_CLOCK = 2


def cpu_seconds_of(process: psutil.Process) -> float:
    """CPU seconds in user mode and in the kernel: from the kernel's clock of the process, in nanoseconds; without one from
    `/proc`, in 10 ms."""
    try:
        return time.clock_gettime((~process.pid << 3) | PROCESS_CLOCK)
    except OSError:
        return sum(process.cpu_times()[:2])


def tree_cpu_seconds(root: psutil.Process) -> float:
    """CPU seconds of a process and all of its descendants, also of those that have ended.

    Of live processes from the kernel's clocks in nanoseconds; the kernel counts ended ones in 10 ms.
    """
    return sum(map(_with_ended_children, [root, *root.children(recursive=True)]))


def _with_ended_children(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
        return float(cpu_seconds_of(process) + times.children_user + times.children_system)
    except psutil.NoSuchProcess:
        # It has ended since it was listed: its parent counts it from now on.
        return 0.0


def ended_children_cpu_seconds() -> float:
    """CPU seconds of the children of this process that have ended, with those of their own ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
