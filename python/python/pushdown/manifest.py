"""Manifests: tables with a row per sample that give the keys of a data set, their order and their labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from . import _native
from ._columns import column_reader
from ._native import Objects
from ._url import parse_url
from .errors import ConfigError, native_errors

__all__ = ["Manifest", "Rows"]

ReadUrl: TypeAlias = Callable[[str], bytes]
"""Reads an object by its `s3://` URL."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a manifest in order. A key can be in several rows."""

    bucket: str | None
    """`None` if keys are relative and the manifest has no base."""
    keys: list[str]
    columns: dict[str, list[Any]]
    """The columns by name, each with a value per row."""

    def objects(self) -> Objects:
        """The objects of the rows, in order. Raises `ConfigError` if the bucket is not known."""
        if self.bucket is None:
            raise ConfigError(
                'a manifest with relative keys needs a base: `Manifest(.., base="s3://bucket/folder/")`'
            )
        with native_errors():
            return _native.Objects.from_keys(self.bucket, self.keys)


class Manifest:
    """A table in CSV, TSV, Parquet or Arrow with a row per sample: source, order and labels in one.

    - `source`: a local path or an `s3://` URL; its extension is the format. Parquet and Arrow need pyarrow.
    - `key`: the column of keys: `s3://` URLs, or keys relative to `base`.
    - `label`: the column of labels. Integers become int64 tensors, other values stay lists.
    - `columns`: columns to read. Without `label`, the label of a row is a dict of them.
    - `base`: the `s3://` URL of a folder; of a manifest in a bucket, its own folder is the default.

    A CSV column is integers or floats if all its values are written so (`007` is not), and text otherwise. Integers are exact, with any
    number of digits; among floats, one that no float equals stays an integer.
    Each process reads the source once, at first use; a pickled manifest holds no rows.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        key: str = "path",
        columns: Sequence[str] | None = None,
        label: str | None = None,
        base: str | None = None,
    ) -> None:
        self.source = os.fspath(source)
        self.key = key
        self.label = label
        self.columns = (columns,) if isinstance(columns, str) else tuple(columns or ())
        if base is None and self._is_remote:
            base = self.source.rpartition("/")[0]
        self.base = None if base is None else parse_url(f"{base.rstrip('/')}/")
        self._read_columns = column_reader(self.source)
        self._rows: Rows | None = None

    def load(self, read: ReadUrl | None = None) -> Rows:
        """The rows, read once. `read` fetches a source in a bucket.

        Raises `ConfigError` for a source that cannot be read, and for columns that it lacks.
        """
        if self._rows is None:
            self._rows = self._parse(self._data(read))
        return self._rows

    def labels(self, rows: Rows) -> list[Any]:
        """A label per row. Raises `ConfigError` for a row without one, with its key."""
        if self.label is not None:
            values = rows.columns[self.label]
            for key, value in zip(rows.keys, values, strict=True):
                if value is None or value == "":
                    raise ConfigError(
                        f"no label for `{key}`: expected a value in `{self.label}` of {self}, found none"
                    )
            return values
        if not self.columns:
            raise ConfigError(
                f"{self} has no labels: name their column with `label=`, or columns with `columns=`"
            )
        columns = (rows.columns[name] for name in self.columns)
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def _is_remote(self) -> bool:
        return self.source.startswith("s3://")

    def _data(self, read: ReadUrl | None) -> bytes:
        if not self._is_remote:
            try:
                return Path(self.source).read_bytes()
            except OSError as error:
                raise ConfigError(f"cannot read {self}: {error.strerror or error}") from error
        if read is None:
            raise ConfigError(
                f"cannot read {self} without a store: pass it to a reader, or read a local copy"
            )
        return read(self.source)

    def _parse(self, data: bytes) -> Rows:
        label = () if self.label is None else (self.label,)
        names: list[str] = list(dict.fromkeys((self.key, *label, *self.columns)))
        columns = self._read_columns(data, names, str(self), {self.key})
        bucket, keys = self._resolve(columns[self.key])
        return Rows(bucket, keys, columns)

    def _resolve(self, values: list[Any]) -> tuple[str | None, list[str]]:
        """The one bucket of all keys, and the keys in it."""
        bucket, folder = self.base or (None, "")
        keys = []
        buckets: set[str | None] = set()
        for row, value in enumerate(values):
            if not isinstance(value, str) or not value:
                raise ConfigError(
                    f"invalid key in row {row} of {self}: expected text in `{self.key}`, found {value!r}"
                )
            if value.startswith("s3://"):
                found, key = parse_url(value)
                buckets.add(found)
                keys.append(key)
            else:
                buckets.add(bucket)
                keys.append(f"{folder}{value}")
        if len(buckets) > 1:
            names = ", ".join(sorted(name or "(no base)" for name in buckets))
            raise ConfigError(f"invalid keys in {self}: expected keys of one bucket, found {names}")
        return (buckets.pop() if buckets else bucket), keys

    def __str__(self) -> str:
        return f"the manifest {self.source}"

    def __repr__(self) -> str:
        return f"Manifest({self.source!r}, key={self.key!r}, columns={self.columns!r}, label={self.label!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None}
