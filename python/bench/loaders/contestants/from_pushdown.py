"""`pushdown.torch.Loader` in plain mode: the whole pipeline on this host, in threads."""

from __future__ import annotations

import pushdown
import pushdown.torch as pt

from ..task import Task
from . import Epoch

PIPELINE = "decode | random_resized_crop(224) | flip_h | to_float | normalize(imagenet)"


def epochs(task: Task, _decoding: str) -> tuple[str, Epoch]:
    loader = pt.Loader(
        task.url,
        PIPELINE,
        store=pushdown.Store(endpoint=task.endpoint),
        mode="plain",
        batch_size=task.batch_size,
        sampling=pushdown.Sampling(tail="short"),
        labels="dir",
        seed=7,
    )
    return f'pushdown {pushdown.__version__}, mode="plain", `{PIPELINE}`', lambda: iter(loader)
