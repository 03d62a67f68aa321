"""A measured training loop."""

import pathlib
import resource
import time

import numpy as np


def cpu_seconds() -> float:
    """CPU seconds of this process with all threads, and of its ended children."""
    used = [resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_bytes() -> int:
    """The peak memory of this process."""
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def train(source, epochs: int, step_seconds: float, values: dict | None = None) -> dict:
    """Takes all batches of all epochs, and sleeps for a step after each, like a host that waits for its accelerator.

    With `values` it stores the values of the first epoch there by name, which takes time.
    """
    waits, epoch_seconds, samples = [], [], 0
    cpu, started = cpu_seconds(), time.perf_counter()
    first = 0.0
    for epoch in range(epochs):
        before = time.perf_counter()
        batches = source.epoch()
        while True:
            requested = time.perf_counter()
            batch = next(batches, None)
            waited = time.perf_counter() - requested
            if batch is None:
                break
            first = first or requested + waited - started
            waits.append(waited)
            names, samples_of_batch = batch
            samples += len(names)
            if values is not None and epoch == 0:
                values.update(zip(names, samples_of_batch))
            time.sleep(step_seconds)
        epoch_seconds.append(time.perf_counter() - before)
    p50, p99 = np.percentile(waits, [50, 99]) if waits else (0, 0)
    return {
        "samples": samples,
        "errors": source.failures.count,
        "epoch_seconds": epoch_seconds,
        "first_batch_seconds": first,
        "batch_wait_p50_seconds": float(p50),
        "batch_wait_p99_seconds": float(p99),
        "stall_seconds": sum(waits),
        "cpu_seconds": cpu_seconds() - cpu,
        "value_bytes": source.value_bytes,
        "peak_bytes": peak_bytes(),
    }
