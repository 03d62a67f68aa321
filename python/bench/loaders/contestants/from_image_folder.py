"""torchvision's `ImageFolder` on files of this machine's disk: unlike the others it has no store and no network."""

from __future__ import annotations

from pathlib import Path

import torchvision
from torchvision.datasets import ImageFolder

from ..task import Task
from . import PILLOW, Epoch
from .data_loader import open_map
from .decoding import decoder, pillow_transform


def epochs(task: Task, decoding: str) -> tuple[str, Epoch]:
    if decoding == PILLOW:
        dataset = ImageFolder(task.folder, transform=pillow_transform())
    else:
        dataset = ImageFolder(task.folder, loader=lambda path: Path(path).read_bytes(), transform=decoder(decoding))
    return open_map(f"ImageFolder of torchvision {torchvision.__version__}, local files", dataset, task, decoding)
