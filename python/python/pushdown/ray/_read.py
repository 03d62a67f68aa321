"""Reads samples into a data set of Ray Data."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Unpack

import ray.data

from .._checks import size_bytes
from .._settings import SourceKind, shows_options
from ..errors import ConfigError, Error, PipelineError
from ..functions import check
from ..options import IO, Options
from ..pipeline import Pipeline
from ..reader import Reader
from ._blocks import OWN_COLUMNS, Layout, numpy_dtype
from ._cluster_pickle import check_credentials
from ._datasource import SampleDatasource

if TYPE_CHECKING:
    from .._source import Source
    from ..options import ReaderOptions
    from ..parquet import Parquet
    from ..pipeline import PipelineLike

__all__ = ["read"]

# Many tasks share a host and a gateway.
_TASK_IO = IO(prefetch="64 MiB", requests=2)
# Of a block that Ray builds, and of values that are computed.
_BLOCK_BYTES = 384 << 20


@shows_options(Options)
def read(
    source: Source | Parquet,
    pipeline: PipelineLike | None = None,
    *,
    num_cpus: float = 1,
    memory: float | None = None,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    **options: Unpack[ReaderOptions],
) -> ray.data.Dataset:
    """The samples of `source` after `pipeline`, as a data set of Ray Data, in the order of the list.

        ds = pushdown.ray.read("s3://photos/train/", pipeline, labels="dir", gateway="http://gw:9900")

    `source`, `pipeline` and the options are those of `pushdown.Reader`. The list is made once, here, and tasks read stretches of it of about
    equal size: objects, members of shards with an index, row groups of Parquet, or shards without an index. The values are those of a
    `Reader`, whatever the number of tasks, and those of a task that is repeated are the same.

    Columns: `x`, the value, a tensor or bytes; `y`, the label, with `labels`; `key`; `member`, of samples in shards; `index` in the data set,
    but of shards without an index; `scale`, of quantized features; those of `columns`; with `on_error="report"` the text of the `error` of a
    sample, which has zeros in `x` then.

    - `num_cpus`: CPUs of each task, and threads that run steps there. Tasks whose steps run at a gateway need less than one.
    - `memory`: bytes that Ray reserves for each task. Default: what is prefetched, twice, and 384 MiB.
    - `concurrency`: most tasks at a time, so that a gateway is not overloaded.
    - `override_num_blocks`: number of tasks. Default: four for each CPU of the cluster, but of 8 to 64 MiB of stored objects each.
    - `seed`: of random steps alone. A shuffle is Ray's: `ds.random_shuffle()`. Nor do options apply that are about ranks, tails and limits,
      or that count over all tasks (`max_errors`).
    - `io`: of each task. Default: 64 MiB of prefetched batches, and 2 requests in flight.

    Tasks find credentials in the environment of their workers. Raises `ConfigError`, `PipelineError`, and errors of listing the objects.
    """
    given = Options.of(options)
    _check(given)
    io = given.io if "io" in options else _TASK_IO
    if io.threads is None:
        io = replace(io, threads=max(1, ceil(num_cpus)))
    sampling = replace(given.sampling, tail="short", rank=0, world=1)
    options |= {"shuffle": False, "io": io, "sampling": sampling}
    reader = Reader(source, pipeline, **options)
    is_rows = reader._kind.source is SourceKind.ROWS
    layout = _layout(reader, Pipeline.of(pipeline) if is_rows and pipeline else reader.pipeline, given)
    if memory is None:
        memory = 2 * size_bytes("prefetch", io.prefetch) + _BLOCK_BYTES
    datasource = SampleDatasource(reader, layout)
    if override_num_blocks is None:
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        override_num_blocks = datasource.count_tasks(resources.get("CPU", 1.0))
    ds: ray.data.Dataset = ray.data.read_datasource(
        datasource,
        num_cpus=num_cpus,
        memory=memory,
        concurrency=concurrency,
        override_num_blocks=override_num_blocks,
    )
    return ds


def _check(options: Options) -> None:
    """Raises `ConfigError` for what a data set of Ray cannot have."""
    check_credentials(options)
    sampling = options.sampling
    for name, value, advice in (
        ("rank", sampling.rank, "tasks read the whole data set; ranks have pushdown.ray.loader, or ds.streaming_split"),
        ("world", sampling.world, "tasks read the whole data set; ranks have pushdown.ray.loader, or ds.streaming_split"),
        ("limit", sampling.limit, "use ds.limit"),
        ("max_errors", options.max_errors, "tasks do not count together; filter by the column error"),
    ):
        if value is not None:
            raise ConfigError(f"{name}={value!r} does not apply to a data set of Ray: expected None; {advice}")
    if sampling.tail not in (None, "short"):
        raise ConfigError(
            f'tail="{sampling.tail}" does not apply to a data set of Ray: expected "short", which has each sample once'
        )


def _layout(reader: Reader, pipeline: Pipeline, options: Options) -> Layout:
    """What the blocks of a reader have. Raises `ConfigError` for what they cannot have."""
    taken = [name for name in options.columns or () if name in OWN_COLUMNS]
    if taken:
        raise ConfigError(
            f"invalid columns: expected other names than {', '.join(OWN_COLUMNS)}, found {', '.join(taken)}"
        )
    source = reader._kind.source
    dtype, shape = (None, None) if pipeline.functions else _value_type(pipeline, options)
    return Layout(
        dtype=None if dtype is None else numpy_dtype(dtype),
        shape=None if shape is None else tuple(shape),
        has_members=source is SourceKind.SHARDS or (source is SourceKind.OBJECTS and reader.objects.has_members),
        has_indices=source is not SourceKind.SHARDS,
        has_errors=options.on_error == "report",
        leaves_out=options.on_error == "skip",
    )


def _value_type(pipeline: Pipeline, options: Options) -> tuple[str | None, list[int | None] | None]:
    """The dtype and the shape of all values, as far as they are known: those of models are unknown without the endpoint."""
    try:
        value = check(pipeline, store=options.store, gateway=options.gateway).stages[-1]
    except PipelineError:
        raise
    except Error:
        return None, None
    if value["kind"] == "Table":
        raise ConfigError(
            "the values of this pipeline are tables: expected tensors or bytes; tables are read by ray.data.read_parquet"
        )
    return value["dtype"], value["shape"]
