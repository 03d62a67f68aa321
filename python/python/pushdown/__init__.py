"""Reads object stores through pipelines that run next to the data: decode, crop, augment, select, in training and analysis.

    import pushdown

    reader = pushdown.Reader("s3://photos/train/", "decode | resize(224, 224) | to_float", batch_size=256, labels="dir", seed=7)
    for batch in reader:
        step(batch.x, batch.y)

Importing starts no threads, and loads neither numpy nor torch. `pushdown.torch` has a data loader for PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from ._native import Table, Tensor, __version__
except ModuleNotFoundError as error:
    if error.name != "pushdown._native":
        raise
    raise ImportError(
        "cannot import pushdown: its native module is missing. The distribution `pushdown` of PyPI is another project, whose files "
        "take the place of this package's: run `pip uninstall pushdown`, then `pip install --force-reinstall pushdown-client`",
        name=error.name,
    ) from error

from ._rank import Worker
from ._share import TailCounts
from .batch import Batch
from .errors import (
    ClosedError,
    ConfigError,
    CredentialsError,
    Error,
    ForkedReaderError,
    InternalError,
    NotAGatewayError,
    PipelineError,
    ProtocolError,
    RefusedError,
    SampleError,
    StateError,
    UnavailableError,
)
from .functions import Check, Explanation, check, explain, get, get_many
from .labels import Column, Labels, Sidecar
from .listing import index_shards as index
from .listing import list_objects as list
from .manifest import Manifest
from .objects import Objects
from .options import IO, Plan, Sampling, ValueCache
from .parquet import Parquet
from .pipeline import Pipeline
from .reader import Reader, ReaderIterator
from .shards import ShardIndex
from .stats import Replica, Stats
from .store import Credentials, Retry, Store, Timeouts
from .table import TableBatch, TableIterator, TableReader, read_table
from .whole_data_sets import BadSample, Estimate, JobProgress, Materialized, Warmed, materialize, warm

__all__ = [
    "IO",
    "BadSample",
    "Batch",
    "Check",
    "ClosedError",
    "Column",
    "ConfigError",
    "Credentials",
    "CredentialsError",
    "Error",
    "Estimate",
    "Explanation",
    "ForkedReaderError",
    "InternalError",
    "JobProgress",
    "Labels",
    "Manifest",
    "Materialized",
    "NotAGatewayError",
    "Objects",
    "Parquet",
    "Pipeline",
    "PipelineError",
    "Plan",
    "ProtocolError",
    "Reader",
    "ReaderIterator",
    "RefusedError",
    "Replica",
    "Retry",
    "SampleError",
    "Sampling",
    "ShardIndex",
    "Sidecar",
    "StateError",
    "Stats",
    "Store",
    "Table",
    "TableBatch",
    "TableIterator",
    "TableReader",
    "TailCounts",
    "Tensor",
    "Timeouts",
    "UnavailableError",
    "ValueCache",
    "Warmed",
    "Worker",
    "__version__",
    "check",
    "explain",
    "get",
    "get_many",
    "index",
    "list",
    "materialize",
    "read_table",
    "warm",
]

if not TYPE_CHECKING:
    # Type checkers would find any name.
    from ._removed import refuse as __getattr__  # noqa: F401
