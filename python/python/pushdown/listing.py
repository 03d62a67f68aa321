"""Lists of objects, and indexes of shards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Unpack

from . import _native
from ._settings import shows_options
from ._source import Selection, is_shard_pattern
from .errors import ConfigError, native_errors
from .objects import Objects, list_store
from .progress import Progress
from .shards import ShardIndex, list_shards
from .store import Connection, ConnectionOptions, connect

__all__ = ["index_shards", "list_objects"]


@shows_options(Connection)
def list_objects(
    url: str | Sequence[str],
    *,
    index: ShardIndex | str | os.PathLike[str] | None = None,
    column: str | None = None,
    columns: Sequence[str] = (),
    include_hidden: bool = False,
    inventory: str | None = None,
    **options: Unpack[ConnectionOptions],
) -> Objects:
    """Lists the objects under `s3://bucket/prefix`, in the order of their keys, or the samples in shards.

        photos = pushdown.list("s3://photos/train/")
        samples = pushdown.list("s3://photos/train-{000000..000999}.tar", columns=["cls"])

    `store`, `gateway`: as those of `get`. `Objects.save` stores the list in
    a file, from which `Objects.load` reads a million keys in a fraction of a second. A list holds no credentials.

    Hidden objects are left out, and one line of the log counts them: `.DS_Store`, `Thumbs.db`, `desktop.ini`, names that begin with `._`, and
    the empty objects that stand for folders. `include_hidden=True` keeps them.

    A URL that ends in `.tar` or `.zip` is a pattern of shards, whose members are samples. They are indexed now, or looked up in `index`, an
    index or the path of a saved one; `column` and `columns` are those of `ShardIndex.samples`. With `index`, `url` may also be a prefix that
    ends in `/`, or a list of patterns.

    `inventory`: the URL of the `manifest.json` of an S3 Inventory of the bucket, in CSV or Parquet, which is read instead of a listing. It is
    hours to days old: objects that were written later are not in the list.

    Shows progress on stderr after a second. Raises `ConfigError`, `CredentialsError`, `RefusedError` or `UnavailableError`.
    """
    connection = connect(options)
    selection = Selection(index, column, tuple(columns))
    if inventory is not None and (index is not None or not isinstance(url, str) or is_shard_pattern(url)):
        raise ConfigError(f"invalid inventory: expected none but for objects under a prefix, found {inventory}")
    if index is not None:
        return selection.samples(url)
    if is_shard_pattern(url):
        found = _index(connection, url)
        return found.samples(column=column, columns=selection.columns)
    if not isinstance(url, str):
        raise ConfigError(f"invalid list: expected a prefix or patterns of shards, found {list(url)!r}")
    selection.check_objects()
    return list_store(connection, url, include_hidden, inventory=inventory)


@shows_options(Connection)
def index_shards(
    shards: str | Sequence[str],
    path: str | os.PathLike[str] | None = None,
    **options: Unpack[ConnectionOptions],
) -> ShardIndex:
    """Finds the members of shards, and saves the index at `path`, if there is one.

        pushdown.index("s3://photos/train-{000000..000999}.tar", path="train.parquet")
        loader = pt.Loader("s3://photos/train-{000000..000999}.tar", pipeline, index="train.parquet", labels=pushdown.Column("cls"))

    `shards`: tar objects, or zip objects without compression: `s3://bucket/key` with braces such as `{000..999}` or `{train,val}`, a URL
    that ends in `/` and means all shards under it, or a list of these. Headers and directories are read by ranges, not the contents. The
    index names the version of each shard: index shards again after they were replaced. `store`, `gateway`: as of `list`.

    Shows progress on stderr after a second. Raises `ConfigError`, `CredentialsError`, `RefusedError`, `UnavailableError`, and `Error` for
    an object that is no shard.
    """
    connection = connect(options)
    if path is not None and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        # Found now rather than after the shards were read.
        raise ConfigError(f"cannot write {os.fspath(path)}: expected an existing folder, found none")
    index = _index(connection, shards)
    if path is not None:
        index.save(path)
    return index


def _index(connection: Connection, shards: str | Sequence[str]) -> ShardIndex:
    bucket, keys = list_shards(connection, shards)
    what = f"indexing {shards if isinstance(shards, str) else f's3://{bucket}'}"
    with Progress(what, f"{{:,}} of {len(keys):,} shards, {{:,}} members") as progress, native_errors():
        native = _native.ShardIndex.read_shards(connection.to_json(), connection.keys, bucket, keys, progress)
    return ShardIndex(native)
