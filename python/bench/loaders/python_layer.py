"""The Python layer of `pushdown.torch.Loader`: `python -m loaders.python_layer TASK` prints its CPU time and its copies as JSON.

CPU time: of the thread that calls `next()`, per batch of 256 photos of 8 x 8 pixels, for which the native part takes next to
nothing; the clock of a thread stands still while the thread waits. It includes the calls of the native module: an upper bound.

Copies: the address of the tensor that the consumer gets is that of the buffer into which Rust stacked the values.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import pushdown
import pushdown.torch as pt
from pushdown.torch import loader as loader_module

from .store import tiny_keys
from .task import Task

BATCH_SIZE, BATCHES = 256, 6
EPOCHS, SHARED_EPOCHS = 7, 2
PIPELINE = "decode | to_float | normalize(imagenet)"


def main() -> None:
    task = Task.from_json(sys.argv[1])
    print(json.dumps({"milliseconds": epoch_costs(task), "shared": shared_ratios(task)}))


def open_loader(task: Task) -> pt.Loader:
    """The tiny photos, several times."""
    source = [f"s3://{task.bucket}/{key}" for key in tiny_keys()] * BATCHES
    return pt.Loader(
        source,
        PIPELINE,
        store=pushdown.Store(endpoint=task.endpoint),
        mode="plain",
        batch_size=BATCH_SIZE,
        labels="dir",
        seed=7,
    )


def epoch_costs(task: Task) -> list[float]:
    """Milliseconds per batch in each epoch. The first batch of an epoch starts the threads and is left out."""
    with open_loader(task) as loader:
        epoch_cost(loader)
        return [epoch_cost(loader) for _ in range(EPOCHS)]


def epoch_cost(loader: pt.Loader) -> float:
    """Mean milliseconds per batch of one epoch."""
    batches, costs = iter(loader), []
    next(batches)
    for _ in range(BATCHES - 1):
        before = time.thread_time_ns()
        batch = next(batches)
        costs.append((time.thread_time_ns() - before) / 1e6)
        check_batch(batch)
    return statistics.mean(costs)


def check_batch(batch: pt.TorchBatch) -> None:
    """Raises `ValueError` unless the batch is full and has labels."""
    if len(batch.x) != BATCH_SIZE or len(batch.y) != BATCH_SIZE:
        raise ValueError(f"expected batches of {BATCH_SIZE}, found {len(batch.x)}")


def shared_ratios(task: Task) -> list[float]:
    """In each epoch, the share of batches whose tensor has the address of Rust's buffer."""
    buffers: list[int] = []
    convert: Callable[..., pt.TorchBatch] = loader_module.to_torch

    def recording(batch: Any, *arguments: Any) -> pt.TorchBatch:
        buffers.append(batch.x.data_ptr)
        return convert(batch, *arguments)

    ratios = []
    with mock.patch.object(loader_module, "to_torch", recording), open_loader(task) as loader:
        for _ in range(SHARED_EPOCHS):
            buffers.clear()
            tensors = [batch.x.data_ptr() for batch in loader]
            ratios.append(sum(map(int.__eq__, tensors, buffers)) / BATCHES)
    return ratios


if __name__ == "__main__":
    main()
