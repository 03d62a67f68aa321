"""Shards: tar and zip objects whose members are samples, and the index that says where the members are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from . import _native
from ._native import Objects
from ._url import parse_urls
from .errors import ConfigError, native_errors
from .objects import list_store
from .store import Connection

__all__ = ["ShardIndex", "is_prefix", "list_shards", "parse_shards"]


class ShardIndex:
    """All members of a set of shards of one bucket: the place of each in its shard, and the version of the shard. `len()` counts them.

        index = pushdown.index("s3://photos/train-{000000..000999}.tar", path="train.parquet")
        index = pushdown.ShardIndex.load("train.parquet")        # the same, later
        print(len(index), "members in", len(index.shards), "shards")
        table = pyarrow.table(index)                             # a row for each member

    The rows have the columns `key` and `etag` of the shard, `member`, `offset`, `header_bytes` and `size`; `bytes` is the same as `size`.
    An index is immutable and has no credentials.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.ShardIndex) -> None:
        self._native = native

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """An index that `save`, `pushdown.index` or the command `pushdown index` wrote. Raises `ConfigError`."""
        with native_errors():
            return cls(_native.ShardIndex.load(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a Parquet file. Raises `ConfigError`."""
        with native_errors():
            self._native.save(path)

    @property
    def bucket(self) -> str:
        """The bucket of all shards."""
        return self._native.bucket

    @property
    def shards(self) -> list[str]:
        """Keys of the shards that have members, in order."""
        return self._native.shards

    @property
    def left_out(self) -> int:
        """Number of members that are left out: what is no regular file, and files with a name that is not UTF-8, absolute or with `..`."""
        return self._native.left_out

    @property
    def members(self) -> Objects:
        """Every member as a sample of its own, in the order of shards and offsets."""
        return self._native.members

    def select(self, shards: str | Sequence[str]) -> Self:
        """The index of some of its shards: those of a pattern, those under a URL that ends in `/`, or those of a list of these.

            index.select("s3://photos/train-{000000..000099}.tar")

        Raises `ConfigError` for a shard that it does not have, and for another bucket.
        """
        bucket, patterns = parse_shards(shards)
        if bucket != self.bucket:
            raise ConfigError(f"the index has shards of the bucket `{self.bucket}`, found {shards!r}")
        known = self.shards
        keys: list[str] = []
        for pattern in patterns:
            keys += (key for key in known if key.startswith(pattern)) if is_prefix(pattern) else [pattern]
        with native_errors():
            return type(self)(self._native.select_shards(keys))

    def samples(self, *, column: str | None = None, columns: Sequence[str] = ()) -> Objects:
        """The samples, as WebDataset forms them: members of a shard whose names agree up to the first dot of the file name are one sample.

        `column`: extension of the member that a pipeline reads; by default the first of jpg, jpeg, png and webp that a sample has.
        `columns`: extensions of members that are read as they are, such as `["cls", "json"]`. What lacks the first is no sample, and a
        warning says how many there are. Raises `ConfigError` if no sample has one of the extensions.
        """
        with native_errors():
            return self._native.samples(column, list(columns))

    def __len__(self) -> int:
        return len(self._native)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        with native_errors():
            return self.members.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"ShardIndex({len(self):,} members of {len(self.shards):,} shards of s3://{self.bucket})"


def parse_shards(shards: str | Sequence[str]) -> tuple[str, list[str]]:
    """The bucket of shards, and their keys: patterns with braces are expanded. Raises `ConfigError`."""
    bucket, patterns = parse_urls([shards] if isinstance(shards, str) else shards)
    with native_errors():
        return bucket, [key for pattern in patterns for key in _native.expand_braces(pattern)]


def list_shards(connection: Connection, shards: str | Sequence[str]) -> tuple[str, list[str]]:
    """As `parse_shards`, with the shards under prefixes. Its threads have ended when it returns."""
    bucket, patterns = parse_shards(shards)
    keys: list[str] = []
    for key in patterns:
        keys += _under(connection, f"s3://{bucket}/{key}") if is_prefix(key) else [key]
    return bucket, keys


def _under(connection: Connection, url: str) -> list[str]:
    keys = list(filter(_native.is_shard, list_store(connection, url).keys()))
    if not keys:
        raise ConfigError(f"no shards under {url}: expected keys that end in .tar or .zip")
    return keys


def is_prefix(key: str) -> bool:
    """Whether a key means all shards under it."""
    return not key or key.endswith("/")
