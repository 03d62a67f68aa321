"""A small double of the native module, for tests of pipelines, manifests and labels alone."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence

import pytest

from pushdown import _native as native


class Tensor(array):  # type: ignore[type-arg]
    """A one-dimensional int64 tensor: a buffer, as the native one, and no more."""

    tolist = None  # type: ignore[assignment]

    def __new__(cls, dtype: str, shape: Sequence[int], data: object) -> Tensor:
        assert dtype == "i64"
        tensor = super().__new__(cls, "q", data)
        assert list(shape) == [len(tensor)]
        return tensor


class Objects:
    """Objects by their keys."""

    def __init__(self, keys: Sequence[str], bucket: str = "photos") -> None:
        self._keys = list(keys)
        self.bucket = bucket

    @staticmethod
    def from_keys(bucket: str, keys: Sequence[str]) -> Objects:
        return Objects(keys, bucket)

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, index: int) -> str:
        return self._keys[index]

    def keys(self) -> list[str]:
        return list(self._keys)

    def paths(self) -> list[str]:
        return list(self._keys)

    @property
    def has_members(self) -> bool:
        return False

    def folders(self, prefix: str) -> tuple[list[str], Tensor]:
        parts = [key.removeprefix(prefix).split("/") if key.startswith(prefix) else [] for key in self._keys]
        names = [part[0] if len(part) > 1 else None for part in parts]
        classes = sorted({name for name in names if name is not None})
        numbers = [-1 if name is None else classes.index(name) for name in names]
        return classes, Tensor("i64", [len(numbers)], numbers)


def parse_pipeline(text: str) -> str:
    """Accepts what begins with `decode`; the canonical text has one space on both sides of `|`."""
    steps = [step.strip() for step in text.split("|")]
    if steps[0] != "decode":
        raise native.NativeError("pipeline", f"`{steps[0]}` takes Image, found Bytes", 0)
    return " | ".join(steps)


def check_json(pipeline: str, size: tuple[int, int] | None, nbytes: int | None) -> str:
    stages = [{"step": None, "kind": "Bytes", "dtype": None, "shape": None, "bytes": nbytes}]
    for step in parse_pipeline(pipeline).split(" | "):
        width, height = size or (None, None)
        nbytes = width * height * 3 if width and height else None
        stages.append(
            {"step": step, "kind": "Image", "dtype": "u8", "shape": [height, width, 3], "bytes": nbytes}
        )
    return json.dumps({"stages": stages, "smallest": 0, "warnings": []})


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the double in place of the native functions and classes for one test."""
    for name, value in (
        ("escape", str),
        ("Tensor", Tensor),
        ("Objects", Objects),
        ("parse_pipeline", parse_pipeline),
        ("check_json", check_json),
    ):
        monkeypatch.setattr(native, name, value, raising=False)
