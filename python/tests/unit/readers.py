"""Readers over the double."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pushdown import Batch, Reader

URL = "s3://photos/train/"


def reader(**options: Any) -> Reader:
    return Reader(URL, "decode", **{"batch_size": 4, "seed": 7, **options})


def numbers(tensor: Any) -> list[Any]:
    return list(memoryview(tensor))


def indices(batches: Iterator[Batch] | Reader) -> list[int]:
    return [index for batch in batches for index in numbers(batch.index)]
