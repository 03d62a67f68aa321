"""Whole data sets: values that a gateway writes as parts of a copy, or caches before readers ask for them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, TypeAlias, Unpack, overload

from . import _native
from ._checks import at_least, choice, of_type, path_text, set_members, time_seconds
from ._kinds import choose_kind
from ._native import Objects
from ._onnx import provide_onnx_runtime
from ._part_labels import part_labels
from ._settings import SourceKind, shows_options
from ._source import DataSet, Index, Selection, Source, are_urls, open_data_set
from ._url import parse_url
from .errors import ConfigError, native_errors
from .labels import LabelSource
from .manifest import Manifest
from .objects import list_store
from .options import Options
from .pipeline import Pipeline, PipelineLike
from .progress import Progress
from .store import Connection, ConnectionOptions, Store, connect

__all__ = [
    "BadSample",
    "Estimate",
    "JobProgress",
    "Materialized",
    "Warmed",
    "materialize",
    "warm",
]

PartFormat: TypeAlias = Literal["wds", "parquet"]

_MAX_PART_SAMPLES = 4096
_WARM_BATCH_SAMPLES = 256
_MAX_KEEP_SECONDS = 30 * 24 * 3600

_flag = of_type(bool, expected="True or False")


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far `materialize` or `warm` is."""

    samples_done: int
    samples: int
    parts_done: int | None = None
    """`None` of `warm`, which has no parts."""
    parts: int | None = None
    bytes: int | None = None
    """Bytes that were written."""


ProgressLike: TypeAlias = Callable[[JobProgress], object] | bool | None
"""`None` or True: a line on the terminal; False: nothing; a function that gets the counts."""


@dataclass(frozen=True, slots=True)
class BadSample:
    """A sample without a value."""

    name: str
    """Key of the object; of `materialize` without the prefix of the source, as in a part."""
    code: str
    """Machine-readable reason, such as `UndecodableObject`."""
    message: str


@dataclass(frozen=True, slots=True)
class Materialized:
    """What `materialize` has done."""

    samples: int
    """Samples in all parts."""
    parts: int
    """Parts of the target."""
    parts_written: int
    """Those that this call has written."""
    bytes: int
    """Bytes of all parts."""
    cpu_seconds: float
    """CPU time of the steps of this call."""
    seconds: float
    errors: list[BadSample]
    """Objects that no step can process. They are in no part."""
    vanished: list[str]
    """Keys of objects that are gone from the source."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What `materialize` would write, by a trial of 16 samples."""

    samples: int
    samples_per_part: int
    parts: int
    parts_done: int
    """Parts that are there already."""
    bytes: int
    """Bytes of the parts that are missing."""
    cpu_seconds: float
    """CPU time of the steps of the parts that are missing."""
    seconds: float
    """Time of the run, if steps are its limit."""


@dataclass(frozen=True, slots=True)
class Warmed:
    """What `warm` has done."""

    samples: int
    cached: int
    """Samples whose values the cache has."""
    found: int
    """Those of them that it had before."""
    not_cached: int
    """Samples whose values it could not keep."""
    errors: list[BadSample]
    cached_ratio: float
    """`cached` as a part of `samples`, 0 to 1."""
    wire_bytes_up: int
    """Bytes that this host has sent, without the listing."""
    wire_bytes_down: int
    """Bytes that it has received, without the listing."""
    seconds: float
    """Time after the listing."""


class MaterializeOptions(ConnectionOptions, total=False):
    """Keyword arguments of `materialize`, where they and their defaults are described."""

    labels: LabelSource | None
    seed: int | None
    epoch: int
    target_store: Store | None
    samples_per_part: int | None
    append: bool
    local: bool
    models: str | os.PathLike[str] | None
    include_hidden: bool
    progress: ProgressLike


@overload
def materialize(
    source: Source,
    pipeline: PipelineLike,
    target: str,
    *,
    format: PartFormat,
    dry_run: Literal[False] = False,
    **options: Unpack[MaterializeOptions],
) -> Materialized: ...


@overload
def materialize(
    source: Source,
    pipeline: PipelineLike,
    target: str,
    *,
    format: PartFormat,
    dry_run: Literal[True],
    **options: Unpack[MaterializeOptions],
) -> Estimate: ...


@shows_options(Connection)
def materialize(
    source: Source,
    pipeline: PipelineLike,
    target: str,
    *,
    format: PartFormat,
    labels: LabelSource | None = None,
    seed: int | None = None,
    epoch: int = 0,
    target_store: Store | None = None,
    samples_per_part: int | None = None,
    append: bool = False,
    local: bool = False,
    models: str | os.PathLike[str] | None = None,
    include_hidden: bool = False,
    dry_run: bool = False,
    progress: ProgressLike = None,
    **options: Unpack[ConnectionOptions],
) -> Materialized | Estimate:
    """Writes the values of a whole data set as parts at `target`, `s3://bucket/prefix`. The gateway reads, computes and writes.

        done = pushdown.materialize("s3://photos/train/", "decode | resize(short=256) | encode(jpeg, quality=90)", "s3://photos-small/",
                                    format="wds", labels="dir")
        print(done.samples, "samples in", done.parts, "parts;", done.errors)

    The values do not cross the link of this host, which sends names and signatures. A call that was stopped, by Ctrl-C or an error, goes on
    when it is made again: it writes the parts that are missing, and all parts have the same bytes as without the stop. The target also gets
    `_recipe.json` and, at the end, `_manifest.json`; no other objects may be there.

    - `source`: as that of `Reader`, for objects and samples of shards: `s3://bucket/prefix`, a list of URLs, `Objects`, a `Manifest`, a
      `ShardIndex`. Samples of `pushdown.list(shards, columns=["cls"])` bring these members with them. Of a list of URLs and of a manifest, the
      folder that all keys are in is listed, since ETags tell the versions of objects. `include_hidden`: as that of `Sampling`.
    - `pipeline`: without functions of `then`. Images of different sizes need `encode(..)` at its end.
    - `format`: "wds", tar shards as WebDataset reads them, or "parquet", files as `datasets` of Hugging Face reads them.
    - `labels`: as those of `Reader`, except a `Column` and a `Sidecar`: classes, whole numbers, floats or texts. They are in `.cls`, `.json` and
      `.txt` members, or in the column `label`. Default: those of a manifest that is the source, otherwise none.
    - `seed`, `epoch`: of random steps, which need a seed.
    - `store`, `gateway`: as those of `Reader`. `target_store`: a `Store` for the target, if it is another one; the gateway's operator has to
      allow it.
    - `samples_per_part`: 1 to 4,096. Default: as many as are made in 5 minutes and take 256 MiB, by a trial of 16 samples.
    - `append`: add parts for objects that a complete target lacks. Without it they are an error.
    - `local`: compute on this host, without a gateway. All objects and parts cross its link, and the parts have the same bytes.
    - `models`: folder of the models that the pipeline names. By default those of the gateway.
    - `dry_run`: write nothing, and return an `Estimate`.
    - `progress`: by default a line on stderr if it is a terminal or in a notebook, and otherwise a line of the log every 10 s. False: nothing. A
      function gets a `JobProgress` from time to time, and at the end.

    Objects that no step can process are no exceptions: they are in `errors`, and in the manifest. Raises `ConfigError` for arguments that do not
    fit, and for a target with parts of another recipe; `PipelineError`; `NotAGatewayError` for a gateway that writes no parts, and for none;
    `RefusedError` for an object that may not be read, or a target that may not be written; and other errors of the stores. What was written
    stays.
    """
    choice("format", format, ("wds", "parquet"))
    at_least(0, optional=True)("seed", seed)
    at_least(0)("epoch", epoch)
    at_least(1, optional=True)("samples_per_part", samples_per_part)
    if samples_per_part is not None and samples_per_part > _MAX_PART_SAMPLES:
        raise ConfigError(f"invalid samples_per_part: expected at most {_MAX_PART_SAMPLES}, found {samples_per_part}")
    for name, flag in (("append", append), ("local", local), ("include_hidden", include_hidden), ("dry_run", dry_run)):
        _flag(name, flag)
    of_type(Store, expected="pushdown.Store", optional=True)("target_store", target_store)
    place, text, connection = parse_url(target), _text(pipeline, "materialize"), connect(options)
    advice = "`pushdown.list(shards)` makes an index of shards, and is the list of their samples"
    data_set = _open(source, text, connection, Selection(), include_hidden, progress, advice)
    if isinstance(source, Manifest) or (are_urls(source) and not isinstance(source, str)):
        data_set = _with_etags(data_set, connection, progress)
    # A gateway is that of the source.
    other = None if target_store is None else Connection(store=target_store, gateway="")
    spec = {
        "store": connection.native(),
        "prefix": _key_prefix(data_set),
        "pipeline": text,
        "format": format,
        "target": place,
        "target_store": None if other is None else other.native(),
        "labels": part_labels(labels, data_set, connection),
        "seed": seed,
        "epoch": epoch,
        "samples_per_part": samples_per_part,
        "append": append,
        "local": local,
        "models": path_text("models", models),
    }
    provide_onnx_runtime()
    counts = "{:,} of {:,} samples, {:,} of {:,} parts"
    with _reported(progress, f"materializing {_name(source, data_set)}", counts) as report, native_errors(text):
        target_keys = None if other is None else other.keys
        found = json.loads(
            _native.materialize_json(_json(spec), connection.keys, target_keys, data_set.objects, dry_run, report)
        )
    return Estimate(**found) if dry_run else Materialized(**_with_errors(found))


@shows_options(Connection)
def warm(
    source: Source,
    pipeline: PipelineLike,
    *,
    index: Index | None = None,
    column: str | None = None,
    keep: float | str | timedelta | None = None,
    stage: int | None = None,
    include_hidden: bool = False,
    progress: ProgressLike = None,
    **options: Unpack[ConnectionOptions],
) -> Warmed:
    """Has the gateway compute the values of a whole data set and keep them in its result cache. Nothing is delivered.

        warmed = pushdown.warm("s3://photos/train/", "decode | resize(short=256) | random_crop(224, 224)", keep="24h")
        print(f"{warmed.cached_ratio:.0%} cached, {warmed.found} samples of them before")

    The values are those before the first random step, where readers of the pipeline begin. A call that was stopped goes on when it is made
    again: it computes what is missing, and renews `keep`.

    - `source`, `index`, `column`: as those of `Reader`, for objects and for members of shards with an index. `include_hidden`: as that of
      `Sampling`.
    - `pipeline`: that of the readers. Functions of `then` make no difference.
    - `keep`: keep the values at least this long, up to 30 days: seconds, a `timedelta`, or text such as "24h" or "7d". A part of the cache is
      for that (`--cache-pin-ratio`). By default they stay as others do.
    - `stage`: the number of steps, if not all before the first random step. What a random step computes is never cached.
    - `store`, `gateway`: as those of `Reader`. `progress`: as that of `materialize`.

    Samples that fail, or that the cache has no room for, are no exceptions: the result counts them. Raises `ConfigError`, `PipelineError`,
    `NotAGatewayError`, `RefusedError` for a gateway without a result cache, and other errors of reading.
    """
    at_least(1, optional=True)("stage", stage)
    _flag("include_hidden", include_hidden)
    keep_seconds = None if keep is None else _keep_seconds(keep)
    text, connection = Pipeline.of(pipeline).text, connect(options)
    advice = "run `pushdown index`, and pass `index`"
    data_set = _open(source, text, connection, Selection(index, column), include_hidden, progress, advice)
    spec = {
        "store": connection.native(),
        "pipeline": text,
        "mode": "pushdown",
        "split": "full" if stage is None else str(stage),
        "warm": {"keep_seconds": keep_seconds},
        "batch_size": _WARM_BATCH_SAMPLES,
    }
    counts = "{:,} of {:,} samples"
    with _reported(progress, f"warming {_name(source, data_set)}", counts) as report, native_errors(text):
        found = json.loads(_native.warm_json(_json(spec), connection.keys, data_set.objects, report))
    ratio = found["cached"] / max(found["samples"], 1)
    return Warmed(**_with_errors(found), cached_ratio=ratio)


def _text(pipeline: PipelineLike, call: str) -> str:
    parsed = Pipeline.of(pipeline)
    if parsed.functions:
        raise ConfigError(
            f"invalid pipeline of {call}: expected no functions, found `then`; apply them to the values that a reader of the parts delivers"
        )
    return parsed.text


def _open(
    source: Source,
    text: str,
    connection: Connection,
    selection: Selection,
    include_hidden: bool,
    progress: ProgressLike,
    advice: str,
) -> DataSet:
    """The samples of a source. `advice` says what to do about shards without an index."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ConfigError(
            f"invalid progress: expected a function, True, False or None, found {type(progress).__name__}"
        )
    kind = choose_kind(source, text, Options(index=selection.index))
    if kind is not SourceKind.OBJECTS:
        what = f"; {advice}" if kind is SourceKind.SHARDS else ""
        raise ConfigError(
            f"invalid source: expected objects, or samples in shards with an index, found {kind.value}{what}"
        )
    return open_data_set(source, connection, selection, include_hidden, shows_progress=progress is not False)


def _with_etags(data_set: DataSet, connection: Connection, progress: ProgressLike) -> DataSet:
    """The data set with the sizes and ETags of its objects, by a listing of the folder that all of them are in."""
    objects = data_set.objects
    url = f"s3://{objects.bucket}/{objects.common_folder()}"
    listed = list_store(connection, url, include_hidden=True, shows_progress=progress is not False)
    numbers = {key: number for number, key in enumerate(listed.keys())}
    keys = objects.keys()
    missing = next((key for key in keys if key not in numbers), None)
    if missing is not None:
        raise ConfigError(f"invalid source: expected an object at s3://{objects.bucket}/{missing}, found none")
    return replace(data_set, objects=listed.select([numbers[key] for key in keys]))


def _key_prefix(data_set: DataSet) -> str:
    """The prefix that the keys of all objects have; of samples in shards, the folder of the shards."""
    objects = data_set.objects
    if not objects.has_members:
        return data_set.prefix
    return Objects.from_keys(objects.bucket, objects.keys()).common_folder()


def _keep_seconds(keep: float | str | timedelta) -> int:
    seconds = time_seconds("keep", keep)
    if not 0 < seconds <= _MAX_KEEP_SECONDS:
        raise ConfigError(f"invalid keep: expected 1 s to 30 days, found {keep!r}")
    return seconds


def _name(source: Source, data_set: DataSet) -> str:
    return source if isinstance(source, str) else f"s3://{data_set.objects.bucket}"


def _json(spec: dict[str, Any]) -> str:
    return json.dumps(set_members(spec), separators=(",", ":"))


def _with_errors(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "errors": [BadSample(**error) for error in found["errors"]]}


@contextmanager
def _reported(progress: ProgressLike, what: str, counts: str) -> Iterator[Callable[..., object] | None]:
    """The function that gets the counts of a job, if there is one."""
    if callable(progress):
        function = progress
        yield lambda *found: function(JobProgress(*found))
    elif progress is False:
        yield None
    else:
        with Progress(what, counts) as show:
            yield show
