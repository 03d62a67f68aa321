"""Data sets: from the `source` argument of a reader to the list of its samples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard

from . import _native
from ._settings import does_not_apply
from ._store import StoreReader
from ._url import parse_url, parse_urls
from .errors import ConfigError, native_errors
from .manifest import Manifest
from .objects import Objects, list_store
from .shards import ShardIndex
from .store import Connection

__all__ = [
    "DataSet",
    "Index",
    "Selection",
    "Source",
    "are_urls",
    "is_shard_pattern",
    "open_data_set",
    "without_suffix",
]

Source: TypeAlias = str | Sequence[str] | Objects | ShardIndex | Manifest
"""The URL of a prefix, URLs of objects, patterns of shards, a list of objects, an index of shards, or a manifest."""
Index: TypeAlias = ShardIndex | str | os.PathLike[str]
"""An index of shards, or the path of a saved one."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """The samples of a data set in order, and the prefix that all their keys have; of members, that of their names in shards."""

    objects: Objects
    prefix: str
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which members of shards are samples: the arguments `index`, `column` and `columns` of readers and lists."""

    index: Index | None = None
    column: str | None = None
    columns: tuple[str, ...] = ()
    """Extensions of the further columns."""

    def samples(self, source: str | Sequence[str] | ShardIndex) -> Objects:
        """The samples in an index, or in those of its shards that patterns name."""
        if isinstance(source, ShardIndex):
            if self.index is not None:
                raise does_not_apply("index", self.index, "a source that is an index of shards", "none")
            shards = source
        elif isinstance(self.index, ShardIndex):
            shards = self.index.select(source)
        elif self.index is not None:
            shards = ShardIndex.load(self.index).select(source)
        else:
            raise ConfigError(f"no index of the shards {source!r}")
        return shards.samples(column=self.column, columns=self.columns)

    def check_objects(self) -> None:
        """Raises `ConfigError` unless the arguments allow samples that are whole objects."""
        if self.column is not None or self.columns:
            name, value = ("column", self.column) if self.column is not None else ("columns", [*self.columns])
            raise does_not_apply(
                name, value, "whole objects", "none; samples in shards have columns: pass their `index`"
            )


def open_data_set(
    source: Source,
    connection: Connection,
    selection: Selection | None = None,
    include_hidden: bool = False,
    *,
    shows_progress: bool = True,
) -> DataSet:
    """Lists or reads `source`. Its threads have ended when it returns. Raises `ConfigError`, also for no objects.

    Without `selection` there are only whole objects. `include_hidden`: whether the listing of a prefix has hidden objects.
    """
    data_set = _open(source, connection, selection, include_hidden, shows_progress)
    if len(data_set.objects) == 0:
        name = f"under {source}" if isinstance(source, str) else "in the data set"
        raise ConfigError(f"no objects {name}: expected at least one; does the prefix end as you mean it?")
    return data_set


def are_urls(source: object) -> TypeGuard[str | Sequence[str]]:
    """Whether it is a URL or a list of URLs."""
    return isinstance(source, str) or (
        isinstance(source, Sequence) and all(isinstance(url, str) for url in source)
    )


def is_shard_pattern(source: str | Sequence[str]) -> bool:
    """Whether a URL, or each URL of a list, names shards by its end."""
    urls = [source] if isinstance(source, str) else source
    return len(urls) > 0 and all(_native.is_shard(parse_url(url).key) for url in urls)


def without_suffix(data_set: DataSet, suffix: str) -> DataSet:
    """The data set without the objects whose keys end with `suffix`: those that hold labels."""
    keys = data_set.objects.keys()
    kept = [index for index, key in enumerate(keys) if not key.endswith(suffix)]
    if len(kept) == len(keys):
        return data_set
    return replace(data_set, objects=data_set.objects.select(kept))


def _open(
    source: Source,
    connection: Connection,
    selection: Selection | None,
    include_hidden: bool,
    shows_progress: bool,
) -> DataSet:
    if selection is not None and _has_index(source, selection):
        return _of_objects(selection.samples(source))
    if isinstance(source, _native.Objects):
        if selection is not None and selection.column is not None:
            raise does_not_apply(
                "column", selection.column, "a list of samples", "none; they were selected when it was made"
            )
        return _of_objects(source)
    if selection is not None:
        if isinstance(source, str) and is_shard_pattern(source):
            raise ConfigError(
                f"found the shards {source} without an index of their members, by which samples are found: run "
                f"`pushdown index '{source}' -o list.parquet`, and pass index=\"list.parquet\""
            )
        selection.check_objects()
    if isinstance(source, str):
        listed = list_store(connection, source, include_hidden, shows_progress=shows_progress)
        return DataSet(listed, parse_url(source).key)
    if isinstance(source, Manifest):
        reader = StoreReader(connection)
        try:
            objects = source.load(reader.read_url).objects()
        finally:
            reader.close()
        return _of_objects(objects, source)
    if are_urls(source):
        bucket, keys = parse_urls(source)
        with native_errors():
            return _of_objects(_native.Objects.from_keys(bucket, keys))
    raise ConfigError(
        "invalid source: expected s3://bucket/prefix, a list of such URLs, Objects, a ShardIndex or a Manifest, "
        f"found {type(source).__name__}"
    )


def _has_index(source: Source, selection: Selection) -> TypeGuard[str | Sequence[str] | ShardIndex]:
    """Whether the source is in shards with an index. Raises `ConfigError` for an index of what has no shards."""
    if isinstance(source, ShardIndex):
        return True
    if selection.index is None:
        return False
    if are_urls(source):
        return True
    raise ConfigError(
        f"invalid source: expected patterns of shards, since there is an index, found {type(source).__name__}"
    )


def _of_objects(objects: Objects, manifest: Manifest | None = None) -> DataSet:
    return DataSet(objects, objects.common_folder(), manifest)
