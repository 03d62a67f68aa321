"""What the tests of `pushdown.torch` compare: samples by position, key and a digest of their pixels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import torch

PIPELINE = "decode | random_resized_crop(32) | flip_h | to_float"

# What Python and torch say about worker processes in general; `pushdown` has no part in it.
ABOUT_WORKERS = (
    "ignore:num_workers > 0 only costs memory",
    "ignore:This DataLoader will create",
    "ignore:This process .* is multi-threaded",
    # torchdata 0.11 was made for an older torch.
    "ignore:.*set_vital",
)


class Sample(NamedTuple):
    position: int
    index: int
    key: str
    label: int
    pixels: str


def digest(row: torch.Tensor) -> str:
    return hashlib.sha256(row.contiguous().view(torch.uint8).numpy()).hexdigest()[:16]


def samples_of(batch) -> list[Sample]:
    """The samples of a `TorchBatch`, in its order."""
    columns = (
        batch.position.tolist(),
        batch.index.tolist(),
        batch.keys,
        batch.y.tolist(),
        map(digest, batch.x),
    )
    return [Sample(*sample) for sample in zip(*columns, strict=True)]


def samples(batches: Iterable) -> list[Sample]:
    """The samples of all batches, in order."""
    return [sample for batch in batches for sample in samples_of(batch)]
