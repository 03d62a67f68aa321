"""Pickles that any host of a cluster can open: their shared files are in its object store."""

from __future__ import annotations

import io
import os
import pickle
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar
from uuid import uuid4

import numpy as np
import ray
from ray import cloudpickle

from .._shared import SharedPath
from ..errors import ConfigError
from ..options import Options

__all__ = ["ClusterPickle", "check_credentials"]

Value = TypeVar("Value")


class ClusterPickle(Generic[Value]):
    """A pickled value, and the shared files that it needs, such as a list of objects. The cluster stores each file once."""

    def __init__(self, value: Value) -> None:
        buffer = io.BytesIO()
        pickler = _Pickler(buffer)
        pickler.dump(value)  # type: ignore[no-untyped-call]
        self._pickled = buffer.getvalue()
        self._files = {
            name: ray.put(np.fromfile(path, np.uint8)) for name, path in pickler.paths.items()
        }
        self.id = uuid4().hex
        """Of this pickle alone: an equal one may have a later list of the same keys."""

    def open(self) -> Value:
        """A copy of the value in this process."""
        # A worker that is killed removes no files.
        with TemporaryDirectory(prefix="pushdown-") as folder:
            value: Value = _Unpickler(io.BytesIO(self._pickled), self._files, folder).load()
        return value


class _Pickler(cloudpickle.Pickler):
    """Pickles the names of shared files in place of their paths, which are those of this host."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self.paths: dict[str, SharedPath] = {}

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, SharedPath):
            return None
        self.paths[value.name] = value
        return value.name


class _Unpickler(pickle.Unpickler):
    """Writes the shared files that a pickle names into a folder."""

    def __init__(self, file: io.BytesIO, files: dict[str, ray.ObjectRef[Any]], folder: str) -> None:
        super().__init__(file)
        self._files, self._folder = files, folder

    def persistent_load(self, name: str) -> str:
        path = os.path.join(self._folder, name)
        if not os.path.exists(path):
            ray.get(self._files[name]).tofile(path)
        return path


def check_credentials(options: Options) -> None:
    """Raises `ConfigError` for explicit credentials, which no task may carry."""
    if options.keys is not None:
        raise ConfigError(
            "credentials are not sent to the processes of a cluster: expected a store without them, and "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile or role, in the environment of its workers"
        )
