"""The reader that a source needs: of objects, of shards without an index, or of rows of Parquet objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ..errors import ConfigError
from ..options import Sampling
from ..parquet import Parquet, is_parquet_url
from ..reader import Reader
from ..rows import RowReader
from ..shard_reader import ShardReader

if TYPE_CHECKING:
    from .._source import Source
    from ..options import ReaderOptions
    from ..pipeline import PipelineLike


def open_reader(
    source: Source | Parquet, pipeline: PipelineLike | None, options: ReaderOptions
) -> Reader | ShardReader | RowReader:
    """A `RowReader` for `Parquet` and for URLs that end in `.parquet`, otherwise as `open_sample_reader`."""
    if not isinstance(source, Parquet) and not is_parquet_url(source):
        return open_sample_reader(source, pipeline, options)
    if pipeline is None:
        raise ConfigError(f"invalid pipeline of {source}, whose samples are rows: expected a pipeline, found None")
    return RowReader(cast(Any, source), pipeline, **cast(Any, options))


def open_sample_reader(
    source: Source, pipeline: PipelineLike | None, options: ReaderOptions
) -> Reader | ShardReader:
    """A `ShardReader` for URLs in the order of shards without an index, and a `Reader` otherwise."""
    sampling = options.get("sampling")
    is_by_shards = isinstance(sampling, Sampling) and sampling.order == "shards"
    if not is_by_shards or options.get("index") is not None or not _are_urls(source):
        return Reader(source, pipeline, **options)
    return ShardReader(cast(Any, source), pipeline, **cast(Any, options))


def _are_urls(source: object) -> bool:
    urls = [source] if isinstance(source, str) else source
    return isinstance(urls, Sequence) and all(isinstance(url, str) for url in urls)
