"""What the tests compare: samples by position, key and a digest of their pixels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pushdown import Batch

PIPELINE = "decode | random_resized_crop(32) | flip_h | to_float"


class Sample(NamedTuple):
    position: int
    index: int
    key: str
    label: int
    pixels: str


def samples_of(batch: Batch) -> list[Sample]:
    """The valid samples of a batch, in order."""
    x, y, valid = np.asarray(batch.x), np.asarray(batch.y), np.asarray(batch.valid)
    position, index = np.asarray(batch.position), np.asarray(batch.index)
    return [
        Sample(int(position[n]), int(index[n]), batch.keys[n], int(y[n]), hashlib.sha256(x[n].tobytes()).hexdigest()[:16])
        for n in range(len(batch.keys))
        if valid[n]
    ]


def samples(batches: Iterable[Batch]) -> list[Sample]:
    """The valid samples of all batches, in order."""
    return [sample for batch in batches for sample in samples_of(batch)]
