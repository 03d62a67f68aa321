"""The kinds of sources: what readers ask of them (`kind`), and how each kind answers."""

from __future__ import annotations

from typing import TypeAlias

from .._settings import SourceKind
from .._source import Source, are_urls, is_shard_pattern
from ..batch import Batch
from ..options import Options
from ..parquet import Parquet, is_parquet_url, reads_tables
from ..pipeline import PipelineLike
from .kind import Kind
from .objects import ObjectKind
from .rows import RowKind, TableKind
from .shards import ShardKind

__all__ = ["Kind", "SampleKind", "TableKind", "choose_kind", "open_samples"]

SampleKind: TypeAlias = Kind[Batch]


def choose_kind(source: Source | Parquet, pipeline: PipelineLike | None, options: Options) -> SourceKind:
    """What the samples of a source are.

    Rows: of `Parquet`, and of URLs that end in `.parquet`, unless the pipeline reads tables. Shards without an index: of URLs without `index`
    that end like shards, and of all URLs in the order of shards. Objects, and members with an index: of all else.
    """
    if isinstance(source, Parquet) or (is_parquet_url(source) and not reads_tables(pipeline)):
        return SourceKind.ROWS
    is_by_shards = options.sampling.order == "shards"
    if options.index is None and are_urls(source) and (is_by_shards or is_shard_pattern(source)):
        return SourceKind.SHARDS
    return SourceKind.OBJECTS


def open_samples(source: Source | Parquet, pipeline: PipelineLike | None, options: Options) -> SampleKind:
    """The samples of a source. Raises `ConfigError`, `PipelineError`, and errors of listing."""
    kind = choose_kind(source, pipeline, options)
    applied = options.applied_to(kind)
    if kind is SourceKind.ROWS or isinstance(source, Parquet):
        return RowKind(source, pipeline, applied)
    if kind is SourceKind.SHARDS:
        return ShardKind(source, pipeline, applied)
    return ObjectKind(source, pipeline, applied)
