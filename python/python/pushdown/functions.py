"""One-off calls: a value, several values, the costs of a pipeline, and what its stages are."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

from . import _native
from ._checks import check_least, split_text
from ._native import Objects, Table, Tensor
from ._onnx import provide_onnx_runtime
from ._settings import shows_options
from ._source import Index, Selection, Source, open_data_set
from ._store import StoreReader, open_store
from ._url import parse_url
from .errors import ConfigError, native_errors
from .pipeline import Pipeline, PipelineLike
from .shards import ShardIndex
from .store import Connection, ConnectionOptions, connect

__all__ = ["Check", "Explanation", "Value", "check", "explain", "get", "get_many"]

Value: TypeAlias = Tensor | bytes | Table

# A step that names a model, whose shapes only the endpoint knows.
_MODEL = re.compile(r"\bmodel\(")


@shows_options(Connection)
def get(
    url: str,
    pipeline: PipelineLike | None = None,
    *,
    member: str | None = None,
    index: Index | None = None,
    seed: int | None = None,
    epoch: int | None = None,
    split: int | str = "full",
    **options: Unpack[ConnectionOptions],
) -> Any:
    """The value of the object at `s3://bucket/key` after `pipeline`; without a pipeline the object as stored, `bytes`.

    The value is a `Tensor`, `bytes` or a `Table`, or what the last function of `Pipeline.then` returns. `split` is the number of
    steps that run at the gateway, "full" or "smallest"; the rest run here. Random steps need `seed` and `epoch`.

    `member`: read the file with this name in the tar or zip at the URL, instead of the whole object. It is looked up in `index`, a
    `ShardIndex` or the path of a saved one, or else in the shard itself.

    `store`: a `pushdown.Store`; by default endpoint and credentials are those of the AWS tools. `gateway`: as that of `Reader`.

    Its threads have ended when it returns: for many objects use `get_many` or a `Reader`. Raises `PipelineError`, `RefusedError`
    and other errors of reading.
    """
    if index is not None and member is None:
        raise ConfigError("invalid index: expected none without a member")
    shards = ShardIndex.load(index) if isinstance(index, (str, os.PathLike)) else index
    place = (member, None if shards is None else shards.members)
    return _get_all([url], pipeline, (split_text(split), seed, epoch), connect(options), place)[0]


@shows_options(Connection)
def get_many(
    urls: Sequence[str],
    pipeline: PipelineLike | None = None,
    *,
    seed: int | None = None,
    epoch: int | None = None,
    split: int | str = "full",
    **options: Unpack[ConnectionOptions],
) -> list[Any]:
    """The values of the objects at `urls` after `pipeline`, in this order, as `get` returns them; 32 at a time.

    The other arguments are those of `get`. Raises the first error, with a note that names its URL.
    """
    return _get_all(urls, pipeline, (split_text(split), seed, epoch), connect(options))


def _get_all(
    urls: Sequence[str],
    pipeline: PipelineLike | None,
    request: tuple[str, int | None, int | None],
    connection: Connection,
    place: tuple[str | None, Objects | None] = (None, None),
) -> list[Any]:
    parsed = None if pipeline is None else Pipeline.of(pipeline)
    text = None if parsed is None else parsed.text
    for url in urls:
        parse_url(url)

    def value(native: _native.Store, url: str) -> Any:
        bucket, key = parse_url(url)
        if text is None:
            return native.get(bucket, key, *place)
        return native.get_value(bucket, key, text, *request, *place)

    reader = StoreReader(connection)
    try:
        with native_errors(text):
            values = reader.map(value, urls) if urls else []
    finally:
        reader.close()
    for function in () if parsed is None else parsed.functions:
        values = [function(value) for value in values]
    return values


@dataclass(frozen=True, slots=True)
class Explanation:
    """The measured costs of a pipeline, and the best plan. `str()` is a table for people."""

    text: str
    members: dict[str, Any]
    """The same as JSON values."""

    def __str__(self) -> str:
        return self.text


@shows_options(Connection)
def explain(
    source: Source,
    pipeline: PipelineLike,
    *,
    index: Index | None = None,
    column: str | None = None,
    include_hidden: bool = False,
    samples: int = 24,
    bandwidth: float | None = None,
    store_bandwidth: float | None = None,
    gateway_cores: float | None = None,
    gateways: int | None = None,
    batch_size: int = 64,
    host_cores: float | None = None,
    cached: float | None = None,
    epochs: int = 1,
    seed: int | None = None,
    epoch: int | None = None,
    **options: Unpack[ConnectionOptions],
) -> Explanation:
    """Measures a pipeline on a few samples of `source`, and shows the costs of each split and the best plan.

    `index`, `column`: as those of `Reader`; `include_hidden`: as that of `Sampling`; `store`, `gateway`: as those of `get`.
    `bandwidth`: assume a link of this many megabits per second, with `gateway` a path from the gateway; `store_bandwidth`: assume
    that stored objects arrive from the store over another path, of this many megabits per second; `gateway_cores`,
    `host_cores`: assume machines with so many cores. By default they are measured, except for the path from the gateway, which
    is taken for that from the store. `gateways`: assume this many replicas of the gateway, by default those that serve;
    `batch_size`: assume batches of this many samples, since a reader uses no more replicas than its batches in flight keep
    busy. `cached`: assume a gateway whose result cache has this ratio of the values, 0 to 1, at every stage before the first
    random step; `epochs`: plan that many epochs, of which the first one fills that cache. Raises `ConfigError`,
    `PipelineError` and errors of reading.
    """
    text = Pipeline.of(pipeline).text
    check_least("epochs", epochs, 1)
    if gateways is not None:
        check_least("gateways", gateways, 1)
    check_least("batch_size", batch_size, 1)
    if cached is not None and not 0 <= cached <= 1:
        raise ConfigError(f"invalid cached: expected a ratio from 0 to 1, found {cached}")
    connection = connect(options)
    objects = open_data_set(source, connection, Selection(index, column), include_hidden).objects
    assumptions = {
        "bandwidth": bandwidth,
        "store_bandwidth": store_bandwidth,
        "gateway_cores": gateway_cores,
        "gateways": gateways,
        "batch_size": batch_size,
        "host_cores": host_cores,
        "cached": cached,
        "epochs": epochs,
    }
    measured = {"samples": samples, "seed": seed, "epoch": epoch or 0, "assumptions": assumptions}
    provide_onnx_runtime()
    with native_errors(text):
        native = open_store(connection)
        try:
            members = json.loads(native.explain_json(objects, text, json.dumps(measured)))
        finally:
            native.close()
    return Explanation(members.pop("text", ""), members)


@dataclass(frozen=True, slots=True)
class Check:
    """What a pipeline makes of an object. `str()` is a table for people."""

    stages: tuple[dict[str, Any], ...]
    """`step`, `kind`, `dtype`, `shape` and `bytes` of the value before the first step and after each one."""
    smallest: int | None
    """The stage with the fewest bytes, which is the default split; `None` unless size and bytes of the object are given."""
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        rows = [
            (
                f"{'*' if number == self.smallest else ' '} {number}",
                stage["step"] or "(object)",
                stage["dtype"] or stage["kind"].lower(),
                ""
                if stage["shape"] is None
                else " x ".join("?" if side is None else str(side) for side in stage["shape"]),
                "?" if stage["bytes"] is None else f"{stage['bytes']:,} bytes",
            )
            for number, stage in enumerate(self.stages)
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])


@shows_options(Connection)
def check(
    pipeline: PipelineLike,
    *,
    size: tuple[int, int] | None = None,
    nbytes: int | None = None,
    **options: Unpack[ConnectionOptions],
) -> Check:
    """Checks a pipeline, and says what its stages are: dtypes, shapes and bytes. Only a model is looked up at the endpoint.

    `size`: width and height of a stored image in pixels; `nbytes`: bytes of the stored object. Raises `PipelineError`, whose
    text shows the place.
    """
    connection = connect(options)
    text = Pipeline.of(pipeline).text
    with native_errors(text):
        if _MODEL.search(text) is None:
            report = json.loads(_native.check_json(text, size, nbytes))
        else:
            native = open_store(connection)
            try:
                report = json.loads(native.check_json(text, size, nbytes))
            finally:
                native.close()
    return Check(tuple(report["stages"]), report["smallest"], tuple(report["warnings"]))
