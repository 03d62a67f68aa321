"""The labels of a reader: resolved once per process, and handed to other processes by their description, as JSON."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._label_columns import LabelValues
from ._shared import shared_file
from ._source import DataSet
from ._store import StoreReader
from .errors import ConfigError, Error
from .labels import Column, Labels, LabelSource, Sidecar, StoredLabels, resolve
from .manifest import Manifest
from .store import Connection

__all__ = ["LabelSet"]


class LabelSet:
    """Labels of a data set, from the `labels` argument of a reader, or from the manifest that is its source."""

    __slots__ = ("_connection", "_data_set", "_labels", "_source", "_store_reader")

    def __init__(self, source: LabelSource | None, data_set: DataSet, connection: Connection) -> None:
        manifest = data_set.manifest
        if source is None and manifest is not None and (manifest.label is not None or manifest.columns):
            source = manifest
        self._source: LabelSource | LabelValues | None = source
        self._data_set, self._connection = data_set, connection
        self._labels: Labels | None = None
        self._store_reader: StoreReader | None = None

    def check(self) -> None:
        """Raises `ConfigError` for an object without a label. Sidecars are only read with their batches."""
        if self.get() is not None and not isinstance(self._source, Sidecar):
            self.get_classes()
            self.close()

    @property
    def column(self) -> Column | None:
        """The column that has the labels, if one has."""
        return self._source if isinstance(self._source, Column) else None

    def get(self) -> Labels | None:
        """The labels, or `None` without `labels` and with those of a column."""
        if self._labels is None and self._source is not None and self.column is None:
            self._store_reader = StoreReader(self._connection)
            objects, reader = self._data_set.objects, self._store_reader
            self._labels = resolve(
                self._source,
                objects,
                self._data_set.prefix,
                read=lambda keys: reader.read(objects.bucket, keys),
                read_url=reader.read_url,
            )
        return self._labels

    def get_classes(self) -> list[str]:
        """Names of the classes; empty if labels are no names of classes."""
        labels = self.column or self.get()
        return [] if labels is None else list(labels.classes or ())

    def close(self) -> None:
        """Ends the threads that read labels. They start again when they are needed."""
        if self._store_reader is not None:
            self._store_reader.close()

    def __getstate__(self) -> tuple[Any, ...]:
        return self._reduced(), self._data_set, self._connection

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        source, self._data_set, self._connection = state
        self._source = source.load() if isinstance(source, _Saved) else source
        self._labels = self._store_reader = None

    def _reduced(self) -> Any:
        """What describes the labels in a few bytes. A label per object goes through a file, unless it is an object that JSON does not have."""
        source = self._source
        if source is None or isinstance(source, (str, re.Pattern, Manifest, Sidecar)) or callable(source):
            return source
        if isinstance(source, Column):
            description: dict[str, Any] = {"column": [source.name, source.field, source.parse, _list(source.classes)]}
            return _saved(description) or source
        labels = self.get()
        if not isinstance(labels, StoredLabels):
            return source
        values, classes = labels.all.values, labels.all.classes
        is_integers = not isinstance(values, list)
        description = {"integers": is_integers, "values": list(values), "classes": _list(classes)}
        return _saved(description) or LabelValues(list(values), classes)


@dataclass(frozen=True, slots=True)
class _Saved:
    """A file with a description of labels as JSON, and the SHA-256 of its bytes."""

    path: str
    digest: str

    def load(self) -> Column | LabelValues:
        """The description. Raises `Error` for a file with other bytes, before it is parsed."""
        try:
            data = Path(self.path).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"cannot read the labels of a pickled reader: {error}: they are there while the process that pickled it runs"
            ) from error
        found = hashlib.sha256(data).hexdigest()
        if found != self.digest:
            raise Error(f"the labels in {self.path} were replaced: expected the digest {self.digest}, found {found}")
        description = json.loads(data)
        if "column" in description:
            return Column(*description["column"])
        values, classes = description["values"], description["classes"]
        return LabelValues(
            array("q", values) if description["integers"] else values, None if classes is None else tuple(classes)
        )


def _saved(description: dict[str, Any]) -> _Saved | None:
    """The description in a file; `None` if it has objects that JSON does not have."""
    try:
        text = json.dumps(description)
        if json.loads(text) != description:
            return None
    except (TypeError, ValueError):
        return None
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    return _Saved(shared_file(f"{digest}.labels", lambda path: Path(path).write_bytes(data)), digest)


def _list(classes: Sequence[str] | None) -> list[str] | None:
    return None if classes is None else list(classes)
