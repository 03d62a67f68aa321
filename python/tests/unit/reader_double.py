"""An in-memory double of the native readers, for tests of the Python layer alone. What needs no endpoint is native: shares and error policies.

It deals out samples as the native reader does, without threads or network. A sample's value is its index in the data set, twice.
Keys that contain `bad` fail. `reset` empties it. The contents of members of shards are in `shards`.
"""

from __future__ import annotations

import hashlib
import json
import random
from array import array
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from pushdown import _native

# The native ones, whose names stand for the doubles during a test.
_Batch, _ErrorPolicy = _native.Batch, _native.ErrorPolicy
_CODES = {"bool": "B", "u8": "B", "i8": "b", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}

buckets: dict[str, list[str]] = {}
shards: dict[str, dict[str, bytes]] = {}
"""By the key of a shard: contents by the names of its members."""
live: list[Any] = []
"""Readers and stores that are open."""
opened: list[dict[str, Any]] = []
"""The specs of all readers, in order."""


def reset() -> None:
    buckets.clear()
    shards.clear()
    live.clear()
    opened.clear()


NativeError = _native.NativeError


class Tensor(array):  # type: ignore[type-arg]
    """An array with one axis, whatever its shape says."""

    dtype: str
    shape: tuple[int, ...]
    layout = "any"
    scales = None

    def __new__(cls, dtype: str, shape: Sequence[int], data: Any = None) -> Tensor:
        count = 1
        for side in shape:
            count *= side
        zeros = bytes(count * array(_CODES[dtype]).itemsize)
        made = super().__new__(
            cls, _CODES[dtype], zeros if data is None else bytes(memoryview(data).cast("B"))
        )
        made.dtype, made.shape = dtype, tuple(shape)
        return made

    @property
    def nbytes(self) -> int:
        return self.itemsize * array.__len__(self)


class Objects:
    def __init__(
        self,
        bucket: str,
        keys: Sequence[str],
        members: Sequence[str] | None = None,
        columns: dict[str, list[str | None]] | None = None,
    ) -> None:
        self.bucket, self._keys, self._members, self._columns = bucket, list(keys), members, columns or {}

    @staticmethod
    def list_prefix(
        store_json: str,
        credentials: object,
        bucket: str,
        prefix: str,
        progress: Callable[[int], None] | None,
        include_hidden: bool,
        inventory: str | None = None,
    ) -> Objects:
        if bucket not in buckets:
            raise NativeError("refused", f"cannot list {bucket}: NoSuchBucket", None)
        hidden = (".DS_Store", "/")
        found = sorted(
            key
            for key in buckets[bucket]
            if key.startswith(prefix) and (include_hidden or not key.endswith(hidden))
        )
        if progress is not None:
            progress(len(found))
        return Objects(bucket, found)

    @staticmethod
    def from_keys(bucket: str, keys: Sequence[str]) -> Objects:
        return Objects(bucket, keys)

    @staticmethod
    def load(path: str) -> Objects:
        return Objects(*json.loads(Path(path).read_text()))

    def save(self, path: str) -> None:
        Path(path).write_text(json.dumps([self.bucket, self._keys, self._members, self._columns]))

    @property
    def digest(self) -> str:
        return self.computed_digest()

    def computed_digest(self) -> str:
        text = json.dumps([self.bucket, self._keys, self._members, self._columns])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def has_members(self) -> bool:
        return self._members is not None

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def member(self, index: int) -> str | None:
        return None if self._members is None else self._members[index]

    def column_member(self, index: int, column: str) -> str | None:
        return self._columns[column][index]

    def paths(self) -> list[str]:
        return list(self._members or self._keys)

    def common_folder(self) -> str:
        first, last = min(self.paths(), default=""), max(self.paths(), default="")
        shared = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))]
        folder, slash, _ = "".join(shared).rpartition("/")
        return folder + slash

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, index: int) -> str:
        return self._keys[index]

    def size(self, index: int) -> int | None:
        return None

    def keys(self) -> list[str]:  # type: ignore[valid-type]
        return list(self._keys)

    def select(self, indices: Sequence[int]) -> Objects:
        members = None if self._members is None else [self._members[index] for index in indices]
        columns = {name: [column[index] for index in indices] for name, column in self._columns.items()}
        return Objects(self.bucket, [self._keys[index] for index in indices], members, columns)

    def folders(self, prefix: str) -> tuple[Any, Tensor]:
        names = [path.removeprefix(prefix).partition("/") for path in self.paths()]
        classes = sorted({name for name, slash, _ in names if slash})
        numbers = [classes.index(name) if slash else -1 for name, slash, _ in names]
        return classes, Tensor("i64", [len(numbers)], array("q", numbers))


class Batch:
    def __init__(
        self,
        number: int,
        objects: Objects,
        rows: list[tuple[int, int, bool]],
        errors: dict[int, tuple[str, str]] | None = None,
    ) -> None:
        self.number, self._objects, self._rows = number, objects, rows
        self.shards_read: Any = None
        missing = {row: ("NoSuchKey", "it is not there") for row, key in enumerate(self.keys) if "bad" in key}
        self._errors = missing if errors is None else errors

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def keys(self) -> list[str]:
        return [self._objects.key(index) for _, index, _ in self._rows]

    @property
    def members(self) -> list[str | None]:
        return [self._objects.member(index) for _, index, _ in self._rows]

    @property
    def names(self) -> list[str]:
        pairs = zip(self.keys, self.members, strict=True)
        return [key if member is None else f"{key} member {member}" for key, member in pairs]

    def column(self, index: int) -> list[tuple[int, bytes | None]]:
        name = self._objects.columns[index]
        members = [self._objects.column_member(index, name) for _, index, _ in self._rows]
        return [
            (row, None if member is None else shards[key][member])
            for row, (key, member) in enumerate(zip(self.keys, members, strict=True))
            if row not in self._errors
        ]

    @property
    def index(self) -> Tensor:
        return Tensor("i64", [len(self)], array("q", [index for _, index, _ in self._rows]))

    @property
    def position(self) -> Tensor:
        return Tensor("i64", [len(self)], array("q", [position for position, _, _ in self._rows]))

    @property
    def valid(self) -> Tensor:
        valid = [not padding and row not in self._errors for row, (_, _, padding) in enumerate(self._rows)]
        return Tensor("bool", [len(self)], bytes(valid))

    @property
    def errors(self) -> list[tuple[str, str, str, int, int, str | None]]:
        keys, members, position = self.keys, self.members, self.position
        return [
            (keys[row], code, message, position[row], row, members[row])
            for row, (code, message) in sorted(self._errors.items())
        ]

    def with_errors(self, errors: Sequence[tuple[int, str, str]]) -> Batch:
        added = {row: (code, message) for row, code, message in errors}
        return Batch(self.number, self._objects, self._rows, added | self._errors)

    def without_errors(self) -> Batch:
        kept = [values for row, values in enumerate(self._rows) if row not in self._errors]
        return Batch(self.number, self._objects, kept)

    def to_native(self) -> _native.Batch:
        """A native batch with the same rows and errors, and with empty values."""
        rows = zip(self.position, self.index, self.keys, self.members, self._rows, strict=True)
        parts = [
            (position, index, key, member, padding, 0, [])
            for position, index, key, member, (_, _, padding) in rows
        ]
        errors = [(row, code, message) for row, (code, message) in sorted(self._errors.items())]
        return _Batch(self.number, parts, [b""] * len(self), errors)

    def values(self) -> list[Tensor | None]:
        values = [Tensor("f32", [2], array("f", [index, index])) for _, index, _ in self._rows]
        return [None if row in self._errors else value for row, value in enumerate(values)]

    def stacked_shape(self) -> tuple[str, tuple[int, ...]] | None:
        return None if len(self._errors) == len(self) else ("f32", (len(self), 2))

    def stack(self) -> Tensor | None:
        if self.stacked_shape() is None:
            return None
        data = b"".join(bytes(8) if value is None else value.tobytes() for value in self.values())
        return Tensor("f32", [len(self), 2], data)


class ErrorPolicy:
    """The native policy, which decides about native batches with the same rows."""

    def __init__(self, on_error: str, max_errors: Any, samples: int | None) -> None:
        self._native = _ErrorPolicy(on_error, max_errors, samples)

    def apply(self, batch: Batch, errors: Sequence[tuple[int, str, str]]) -> tuple[Batch, list[int]]:
        marked = batch.with_errors(errors)
        _, left_out = self._native.apply(marked.to_native(), [])
        return (marked.without_errors() if left_out else marked), left_out


class Live:
    def __init__(self) -> None:
        self.is_closed = False
        live.append(self)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            live.remove(self)


class Reader(Live):
    def __init__(
        self, spec_json: str, credentials: object, objects: Objects, observations: object = None
    ) -> None:
        super().__init__()
        self.known = observations
        self.spec: Any = json.loads(spec_json)
        spec = self.spec
        opened.append(spec)
        self._objects, self.epoch = objects, spec["epoch"]
        self.mode = spec["mode"]
        self.next_batch = spec["start_batch"] + spec["turn"]
        self._delivered = 0

    def observations(self) -> object:
        return f"observed in epoch {self.epoch}"

    def _sample(self, nth: int) -> tuple[int, int, bool]:
        spec, total = self.spec, len(self._objects)
        position = spec["start_position"] + nth * spec["world"] + spec["rank"]
        order = list(range(total))
        if spec.get("seed") is not None and spec["shuffle"]:
            random.Random(f"{spec['seed']} {self.epoch}").shuffle(order)
        return position, order[position % total], position >= total

    def __len__(self) -> int:
        spec = self.spec
        left, world, size = len(self._objects) - spec["start_position"], spec["world"], spec["batch_size"]
        dealt: dict[str, int] = {
            "short": len(range(spec["rank"], left, world)),
            "even": left // world,
            "drop": left // (world * size) * size,
            "pad": -(-left // (world * size)) * size,
        }
        share = dealt[spec["tail"]]
        return min(share, int(spec.get("limit", share)))

    @property
    def batches(self) -> int:
        return -(-len(self) // int(self.spec["batch_size"]))

    def next(self) -> Batch | None:
        if self.next_batch >= self.batches:
            return None
        number, size = self.next_batch, self.spec["batch_size"]
        self.next_batch += self.spec["every"]
        rows = [self._sample(nth) for nth in range(number * size, min(len(self), (number + 1) * size))]
        self._delivered += len(rows)
        return Batch(number, self._objects, rows)

    def take(self, indices: Sequence[int]) -> Batch:
        return Batch(0, self._objects, [(position, index, False) for position, index in enumerate(indices)])

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def stats_json(self) -> str:
        return json.dumps({"samples": self._delivered, "waiting_seconds": 0.0, "not_cached": {}})

    def plan(self) -> str | None:
        return "plan: 10 samples/s (plain reading: 5), limited by the link\n" if self.mode == "auto" else None
