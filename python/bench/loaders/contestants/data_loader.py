"""torch's `DataLoader` with one worker process per core."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from ..task import Task
from . import Epoch
from .decoding import describe


def open_map(name: str, dataset: Dataset[Any], task: Task, decoding: str) -> tuple[str, Epoch]:
    """Settings and epochs of a data set with access by index, in random order."""
    # Persistent workers: an epoch does not pay for their start.
    loader = DataLoader(
        dataset, batch_size=task.batch_size, shuffle=True, num_workers=task.cores, persistent_workers=True
    )
    return f"{name}, {describe_workers(task)}, {describe(decoding)}", lambda: iter(loader)


def describe_workers(task: Task) -> str:
    """The version of torch, and the worker processes."""
    return f"DataLoader of torch {torch.__version__} with {task.cores} workers"
