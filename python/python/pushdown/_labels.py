"""The labels of a reader: resolved once per process, and handed to other processes by their description."""

from __future__ import annotations

import hashlib
import pickle
import re
from pathlib import Path
from typing import Any

from ._shared import shared_file
from ._source import DataSet
from ._spec import Credentials, StoreSpec
from ._store import StoreReader
from .labels import Column, Labels, LabelSource, Sidecar, resolve
from .manifest import Manifest

__all__ = ["LabelSet"]


class LabelSet:
    """Labels of a data set, from the `labels` argument of a reader, or from the manifest that is its source."""

    __slots__ = ("_credentials", "_data_set", "_labels", "_source", "_store", "_store_reader")

    def __init__(
        self, source: LabelSource | None, data_set: DataSet, store: StoreSpec, credentials: Credentials | None
    ) -> None:
        manifest = data_set.manifest
        if source is None and manifest is not None and (manifest.label is not None or manifest.columns):
            source = manifest
        self._source, self._data_set, self._store, self._credentials = source, data_set, store, credentials
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
            self._store_reader = StoreReader(self._store, self._credentials)
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
        return _reduced(self._source), self._data_set, self._store

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        source, self._data_set, self._store = state
        self._source = _restored(source)
        self._credentials = self._labels = self._store_reader = None


class _Spilled(str):
    """Path of a file with a pickled description of labels."""

    __slots__ = ()


def _reduced(source: LabelSource | None) -> Any:
    """What describes the labels in a few bytes. A label per object goes through a file."""
    if source is None or isinstance(source, (str, re.Pattern, Manifest, Sidecar)) or callable(source):
        return source
    data = pickle.dumps(source, protocol=pickle.HIGHEST_PROTOCOL)
    name = f"{hashlib.sha256(data).hexdigest()}.labels"
    return _Spilled(shared_file(name, lambda path: Path(path).write_bytes(data)))


def _restored(source: Any) -> Any:
    return pickle.loads(Path(source).read_bytes()) if isinstance(source, _Spilled) else source
