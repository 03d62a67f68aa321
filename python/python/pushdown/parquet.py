"""Parquet objects whose rows are samples: images in a column, as Hugging Face stores them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from . import _native
from ._source import are_urls
from ._url import parse_url, parse_urls
from .errors import ConfigError, Error, native_errors
from .objects import Objects, list_store
from .pipeline import Pipeline, PipelineLike
from .store import Connection

__all__ = ["Parquet", "is_parquet_url", "is_pattern", "list_files", "reads_tables"]

_SUFFIX = ".parquet"
# The steps that make a table of an object.
_TABLE_STEPS = re.compile(r"\s*(select|sql)\b")


@dataclass(frozen=True, slots=True)
class Parquet:
    """Parquet objects with a column of images, as a source of samples: each row is one.

    `files`: the URL of a prefix or of an object, or a pattern such as `s3://bucket/data/train-*.parquet`, in which `*` and `?` match
    within a folder; a list of URLs; `Objects`.
    """

    files: str | Sequence[str] | Objects
    column: str = "image"
    """The images: a column of bytes, or of structs `{bytes, path}` as in Hugging Face data sets."""
    where: str | None = None
    """A condition on rows in SQL, such as `label < 10`."""


def is_parquet_url(source: object) -> bool:
    """Whether `source` is the URL of Parquet objects, which ends in `.parquet`, or a list of such URLs."""
    if not are_urls(source):
        return False
    urls = [source] if isinstance(source, str) else source
    return len(urls) > 0 and all(url.endswith(_SUFFIX) for url in urls)


def is_pattern(source: object) -> TypeGuard[str]:
    """Whether `source` is a URL in which `*` or `?` match within a folder."""
    return isinstance(source, str) and re.search(r"[*?]", source) is not None


def reads_tables(pipeline: PipelineLike | None) -> bool:
    """Whether a pipeline begins with a step that makes a table of a whole object. One that is invalid is taken as it is written."""
    try:
        text = "" if pipeline is None else Pipeline.of(pipeline).text
    except Error:
        text = str(pipeline)
    return _TABLE_STEPS.match(text) is not None


def list_files(files: str | Sequence[str] | Objects, connection: Connection) -> Objects:
    """The objects that `Parquet.files` names. Raises `ConfigError`, also for none, and errors of listing."""
    if isinstance(files, _native.Objects):
        return files
    if isinstance(files, str):
        return _matching(files, connection)
    bucket, keys = parse_urls(files)
    with native_errors():
        return _native.Objects.from_keys(bucket, keys)


def _matching(url: str, connection: Connection) -> Objects:
    location = parse_url(url)
    prefix = re.split(r"[*?]", location.key, maxsplit=1)[0]
    objects = list_store(connection, str(location._replace(key=prefix)))
    pattern = _pattern(location.key)
    keys = objects.keys()
    kept = [index for index, key in enumerate(keys) if pattern.fullmatch(key)]
    if not kept:
        raise ConfigError(
            f"no Parquet objects match {url}: expected keys that end in {_SUFFIX}, found {len(keys)} other objects"
        )
    return objects if len(kept) == len(keys) else objects.select(kept)


def _pattern(key: str) -> re.Pattern[str]:
    """A pattern as a regular expression. A key without one is that of an object, or a prefix."""
    if not is_pattern(key):
        rest = "" if key.endswith(_SUFFIX) else rf".*{re.escape(_SUFFIX)}"
        return re.compile(re.escape(key) + rest, re.DOTALL)
    wild = {"*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(wild.get(char, re.escape(char)) for char in key))
