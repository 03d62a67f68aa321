"""Ray Data on this host: `pushdown.ray.read` in plain mode, and Ray's own reader of images with transforms of torchvision."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import ray.data
from PIL import Image
from pyarrow.fs import S3FileSystem

import pushdown
import pushdown.ray

from ..task import Task
from . import PILLOW, Epoch
from .decoding import describe, pillow_transform
from .from_pushdown import PIPELINE


def epochs(task: Task, decoding: str) -> tuple[str, Epoch]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Its processes are children of this one, and their CPU time counts.
    ray.init(num_cpus=task.cores, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    ds = images(task) if decoding == PILLOW else samples(task)

    def batches() -> Iterator[tuple[Any, Any]]:
        for batch in ds.iter_torch_batches(batch_size=task.batch_size):
            yield batch["x"], batch["y"]

    mode = "plain" if task.gateway is None else "auto"
    how = describe(decoding) if decoding == PILLOW else f'pushdown {pushdown.__version__}, mode="{mode}", `{PIPELINE}`'
    return f"Ray {ray.__version__} with {task.cores} CPUs, {how}", batches


def samples(task: Task) -> ray.data.Dataset:
    store = pushdown.Store(endpoint=task.endpoint)
    options: dict[str, Any] = {"mode": "plain"} if task.gateway is None else {"gateway": task.gateway}
    ds = pushdown.ray.read(task.url, PIPELINE, store=store, batch_size=task.batch_size, labels="dir", seed=7, **options)
    return ds.select_columns(["x", "y"])


def images(task: Task) -> ray.data.Dataset:
    """Ray's reader decodes with Pillow. With as few tasks as ours it takes a third less CPU time than with its default of 200."""
    store = S3FileSystem(endpoint_override=task.endpoint, region=task.region)
    tasks = 4 * task.cores
    ds = ray.data.read_images(
        f"{task.bucket}/{task.prefix}", filesystem=store, mode="RGB", include_paths=True, override_num_blocks=tasks
    )
    transform = pillow_transform()
    return ds.map(lambda row: {"x": transform(Image.fromarray(row["image"])).numpy(), "y": task.label(row["path"])})
