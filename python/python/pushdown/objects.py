"""The list of objects of a data set."""

from __future__ import annotations

import copyreg
from contextlib import nullcontext
from typing import TypeAlias

from . import _native
from ._shared import shared_file
from ._url import parse_url
from .errors import Error, native_errors
from .progress import Progress
from .store import Connection

__all__ = ["Objects", "list_store"]

Objects: TypeAlias = _native.Objects
"""The objects of a data set in order: compact, immutable, without credentials. Samples in shards are members of these objects."""


def list_store(
    connection: Connection,
    url: str,
    include_hidden: bool = False,
    *,
    inventory: str | None = None,
    shows_progress: bool = True,
) -> Objects:
    """Lists all objects under `url`, or reads them in an S3 Inventory; hidden ones only if they are asked for.

    Its threads have ended when it returns.
    """
    bucket, prefix = parse_url(url)
    what = f"listing {url}" if inventory is None else f"reading the inventory {inventory}"
    shown = Progress(what, "{:,} objects") if shows_progress else nullcontext()
    with shown as progress, native_errors():
        return _native.Objects.list_prefix(
            connection.to_json(), connection.keys, bucket, prefix, progress, include_hidden, inventory
        )


def _load(path: str, digest: str) -> Objects:
    with native_errors():
        objects = _native.Objects.load(path)
        # The digest that the file states may be that of another list.
        found = objects.computed_digest()
    if found != digest:
        raise Error(f"the list of objects in {path} was replaced: expected the digest {digest}, found {found}")
    return objects


def _reduce(objects: Objects) -> tuple[object, ...]:
    with native_errors():
        digest = objects.digest
        return _load, (shared_file(f"{digest}.objects", objects.save), digest)


# A list pickles as the path of a saved one, so that worker processes neither list nor receive millions of keys.
copyreg.pickle(Objects, _reduce)  # type: ignore[arg-type]
