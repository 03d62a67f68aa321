"""A training loop that takes batches, with a clock beside it."""

import pathlib
import resource
import time

import numpy as np


def cpu_seconds() -> float:
    """Of this process with all its threads, and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_bytes() -> int:
    """The most memory that this process has held."""
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def train(source, epochs: int, step_seconds: float, keep: dict | None = None) -> dict:
    """Takes all batches of all epochs, and after each is idle for a step, as a host is whose accelerator is not.

    With `keep` the values of the first epoch are put there by their names, which takes time.
    """
    waits, lasted, samples = [], [], 0
    cpu, started = cpu_seconds(), time.perf_counter()
    first = 0.0
    for epoch in range(epochs):
        before = time.perf_counter()
        batches = source.epoch()
        while True:
            asked = time.perf_counter()
            batch = next(batches, None)
            waited = time.perf_counter() - asked
            if batch is None:
                break
            first = first or asked + waited - started
            waits.append(waited)
            names, values = batch
            samples += len(names)
            if keep is not None and epoch == 0:
                keep.update(zip(names, values))
            time.sleep(step_seconds)
        lasted.append(time.perf_counter() - before)
    p50, p99 = np.percentile(waits, [50, 99]) if waits else (0, 0)
    return {
        "samples": samples,
        "errors": source.failures.count,
        "epoch_seconds": lasted,
        "first_batch_seconds": first,
        "batch_wait_p50_seconds": float(p50),
        "batch_wait_p99_seconds": float(p99),
        "stall_seconds": sum(waits),
        "cpu_seconds": cpu_seconds() - cpu,
        "value_bytes": source.value_bytes,
        "peak_bytes": peak_bytes(),
    }
