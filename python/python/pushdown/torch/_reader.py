"""The reader that a source needs: of objects, of shards without an index, or of rows of Parquet objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ..errors import ConfigError
from ..parquet import Parquet, is_parquet_url
from ..reader import Reader
from ..rows import RowReader
from ..shard_reader import ShardReader

if TYPE_CHECKING:
    from .._source import Source
    from ..pipeline import PipelineLike
    from ._options import ReaderOptions

# Options of `Reader` that do not apply to rows.
_OF_OBJECTS = (
    "index",
    "column",
    "columns",
    "include_hidden",
    "order",
    "buffer",
    "epochs",
    "max_expand",
    "value_cache",
    "value_cache_bytes",
)


# Options of `Reader` that do not apply to shards without an index.
_OF_INDEXED = (
    "include_hidden",
    "epochs",
    "tail",
    "limit",
    "mode",
    "split",
    "compression",
    "max_expand",
    "gets",
    "value_cache",
    "value_cache_bytes",
)


def open_reader(
    source: Source | Parquet, pipeline: PipelineLike | None, options: ReaderOptions
) -> Reader | ShardReader | RowReader:
    """A `RowReader` for `Parquet` and for URLs that end in `.parquet`, otherwise as `open_sample_reader`."""
    if not isinstance(source, Parquet) and not is_parquet_url(source):
        return open_sample_reader(source, pipeline, options)
    _refuse(options, _OF_OBJECTS, f"readers of objects, and the samples of {source} are rows")
    if pipeline is None:
        raise ConfigError(f"invalid pipeline of {source}, whose samples are rows: expected a pipeline, found None")
    return RowReader(cast(Any, source), pipeline, **cast(Any, options))


def open_sample_reader(
    source: Source, pipeline: PipelineLike | None, options: ReaderOptions
) -> Reader | ShardReader:
    """A `ShardReader` for URLs in the order of shards without an index, and a `Reader` otherwise."""
    is_by_shards = options.get("order") == "shards" and options.get("index") is None
    if not is_by_shards or not _are_urls(source):
        return Reader(source, pipeline, **options)
    _refuse(options, _OF_INDEXED, f"readers with an index, and {source} is read without one")
    settings = {name: value for name, value in options.items() if name not in ("order", "index")}
    return ShardReader(cast(Any, source), pipeline, **cast(Any, settings))


def _are_urls(source: object) -> bool:
    urls = [source] if isinstance(source, str) else source
    return isinstance(urls, Sequence) and all(isinstance(url, str) for url in urls)


def _refuse(options: ReaderOptions, names: Sequence[str], applies_to: str) -> None:
    """Raises `ConfigError` if one of these options is set."""
    unsuitable = [name for name in names if name in options]
    if unsuitable:
        raise ConfigError(f"invalid option {', '.join(unsuitable)}: it applies to {applies_to}")
