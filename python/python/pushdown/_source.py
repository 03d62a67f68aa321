"""Data sets: from the `source` argument of a reader to the list of its objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from . import _native
from ._spec import Credentials, StoreSpec
from ._store import StoreReader
from ._url import parse_url, parse_urls
from .errors import ConfigError, native_errors
from .manifest import Manifest
from .objects import Objects, list_store

__all__ = ["DataSet", "Source", "open_data_set", "without_suffix"]

Source: TypeAlias = str | Sequence[str] | Objects | Manifest
"""The URL of a prefix, URLs of objects, a list of objects, or a manifest."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """The objects of a data set in order, and the prefix that all their keys have."""

    objects: Objects
    prefix: str
    manifest: Manifest | None = None


def open_data_set(source: Source, store: StoreSpec, credentials: Credentials | None) -> DataSet:
    """Lists or reads `source`. Its threads have ended when it returns. Raises `ConfigError`, also for no objects."""
    data_set = _open(source, store, credentials)
    if len(data_set.objects) == 0:
        name = f"under {source}" if isinstance(source, str) else "in the data set"
        raise ConfigError(f"no objects {name}: expected at least one; does the prefix end as you mean it?")
    return data_set


def without_suffix(data_set: DataSet, suffix: str) -> DataSet:
    """The data set without the objects whose keys end with `suffix`: those that hold labels."""
    keys = data_set.objects.keys()
    kept = [index for index, key in enumerate(keys) if not key.endswith(suffix)]
    if len(kept) == len(keys):
        return data_set
    return replace(data_set, objects=data_set.objects.select(kept))


def _open(source: Source, store: StoreSpec, credentials: Credentials | None) -> DataSet:
    if isinstance(source, _native.Objects):
        return DataSet(source, _common_folder(source.keys()))
    if isinstance(source, str):
        return DataSet(list_store(store, credentials, source), parse_url(source).key)
    if isinstance(source, Manifest):
        reader = StoreReader(store, credentials)
        try:
            objects = source.load(reader.read_url).objects()
        finally:
            reader.close()
        return DataSet(objects, _common_folder(objects.keys()), source)
    if isinstance(source, Sequence) and all(isinstance(url, str) for url in source):
        bucket, keys = parse_urls(source)
        with native_errors():
            return DataSet(_native.Objects.from_keys(bucket, keys), _common_folder(keys))
    raise ConfigError(
        "invalid source: expected s3://bucket/prefix, a list of such URLs, Objects or a Manifest, "
        f"found {type(source).__name__}"
    )


def _common_folder(keys: Sequence[str]) -> str:
    """The longest prefix of all keys that ends with a slash."""
    first, last = min(keys, default=""), max(keys, default="")
    length = next(
        (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last))
    )
    folder, slash, _ = first[:length].rpartition("/")
    return folder + slash
