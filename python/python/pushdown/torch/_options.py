"""Types of the arguments that `Loader`, `Dataset` and `MapDataset` pass to `pushdown.Reader`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from .._sample_columns import Columns
    from .._source import Index
    from .._spec import Compression, Credentials, Mode, OnError, Order, Retry, Tail, Timeouts
    from ..labels import LabelSource


class ReaderOptions(TypedDict, total=False):
    """Keyword arguments of `pushdown.Reader`, where they and their defaults are described."""

    index: Index | None
    column: str | None
    columns: Columns | None
    include_hidden: bool
    endpoint: str | None
    region: str | None
    profile: str | None
    credentials: Credentials | None
    batch_size: int
    seed: int | None
    shuffle: bool
    order: Order
    buffer: int
    epoch: int
    epochs: int
    rank: int | None
    world: int | None
    tail: Tail
    limit: int | None
    mode: Mode
    split: int | str
    compression: Compression
    max_expand: float
    on_error: OnError
    max_errors: int | float | None
    labels: LabelSource | None
    prefetch: int | str
    requests: int
    gets: int
    threads: int | None
    value_cache: str | os.PathLike[str] | None
    value_cache_bytes: int | str
    models: str | os.PathLike[str] | None
    timeouts: Timeouts | None
    retry: Retry | None
