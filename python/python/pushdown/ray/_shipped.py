"""Readers on their way to other hosts: pickled, with their lists in the object store of the cluster."""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import Any, Generic, TypeVar

import numpy as np
import ray
from ray import cloudpickle

from .._shared import SharedPath, shared_file
from ..errors import ConfigError
from ..options import Options

__all__ = ["Shipped", "check_credentials"]

Value = TypeVar("Value")


class Shipped(Generic[Value]):
    """A value that pickles into shared files, such as a list of objects. The cluster stores each file once."""

    def __init__(self, value: Value) -> None:
        buffer = io.BytesIO()
        pickler = _Pickler(buffer)
        pickler.dump(value)  # type: ignore[no-untyped-call]
        self._pickled = buffer.getvalue()
        self._files = {
            name: ray.put(np.fromfile(path, np.uint8)) for name, path in pickler.paths.items()
        }
        self.digest = hashlib.sha256(self._pickled).hexdigest()

    def open(self) -> Value:
        """A copy of the value in this process."""
        value: Value = _Unpickler(io.BytesIO(self._pickled), self._files).load()
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
    """Writes the shared files that a pickle names."""

    def __init__(self, file: io.BytesIO, files: dict[str, ray.ObjectRef[Any]]) -> None:
        super().__init__(file)
        self._files = files

    def persistent_load(self, name: str) -> SharedPath:
        content = self._files[name]
        return shared_file(name, lambda path: ray.get(content).tofile(path))


def check_credentials(options: Options) -> None:
    """Raises `ConfigError` for explicit credentials, which no task may carry."""
    if options.keys is not None:
        raise ConfigError(
            "credentials are not sent to the processes of a cluster: expected a store without them, and "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile or role, in the environment of its workers"
        )
