"""The loaders that are compared. Each module has `epochs(task, decoding)`, which returns its settings and a function that starts an
epoch: an iterator of batches (x, y), float32 [n, 3, 224, 224] and int64 [n].
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from ..task import Task

Epoch = Callable[[], Iterator[tuple[Any, Any]]]

OURS, OURS_ON_RAY = "pushdown.torch.Loader", "pushdown.ray.read"
# What decodes and transforms photos, and the samples per CPU second of ours to those of the contestant that are required.
PILLOW, TENSORS = "Pillow", "torchvision.io"
REQUIRED = {PILLOW: 1.5, TENSORS: 1.0}
# The module and the decoding of each contestant.
CONTESTANTS = {
    OURS: ("from_pushdown", ""),
    "ImageFolder, Pillow": ("from_image_folder", PILLOW),
    "s3torchconnector, Pillow": ("from_s3torchconnector", PILLOW),
    "litData, Pillow": ("from_litdata", PILLOW),
    "WebDataset, Pillow": ("from_webdataset", PILLOW),
    "ImageFolder, torchvision.io": ("from_image_folder", TENSORS),
    "s3torchconnector, torchvision.io": ("from_s3torchconnector", TENSORS),
    OURS_ON_RAY: ("from_ray", ""),
    "Ray Data, Pillow": ("from_ray", PILLOW),
}


def compared_with(name: str) -> str | None:
    """Which of ours a contestant is compared with; `None` for one of ours."""
    ours = OURS_ON_RAY if CONTESTANTS[name][0] == "from_ray" else OURS
    return None if name == ours else ours


def open_contestant(name: str, task: Task) -> tuple[str, Epoch]:
    """The settings of a contestant, and the function that starts an epoch."""
    module, decoding = CONTESTANTS[name]
    return importlib.import_module(f"{__name__}.{module}").epochs(task, decoding)
