"""Amazon's `s3torchconnector`: a data set with access by index, whose client is in C and Rust."""

from __future__ import annotations

from typing import Any

import s3torchconnector
from s3torchconnector import S3ClientConfig, S3MapDataset

from ..task import Task
from . import Epoch
from .data_loader import open_map
from .decoding import decoder


def epochs(task: Task, decoding: str) -> tuple[str, Epoch]:
    decode = decoder(decoding)

    def sample(reader: Any) -> tuple[Any, int]:
        return decode(reader.read()), task.label(reader.key)

    # By keys: an epoch does not pay for listing them.
    dataset = S3MapDataset.from_objects(
        task.urls,
        region=task.region,
        endpoint=task.endpoint,
        s3client_config=S3ClientConfig(force_path_style=True),
        transform=sample,
    )
    return open_map(f"S3MapDataset of s3torchconnector {s3torchconnector.__version__}", dataset, task, decoding)
