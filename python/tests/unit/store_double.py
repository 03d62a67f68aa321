"""An in-memory double of the native table reader, store and functions: the value of an object is its key."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

from reader_double import Live, NativeError, Objects, Tensor, opened

__version__ = "0.0.0"


class TableReader(Live):
    """Ten rows per object, all of rank 0's stretch."""

    def __init__(
        self,
        spec_json: str,
        credentials: object,
        objects: Objects,
        observations: object = None,
        footers: object = None,
    ) -> None:
        super().__init__()
        self.known, self.known_footers = observations, footers
        self.spec: Any = json.loads(spec_json)
        opened.append(self.spec)
        self.mode: str = self.spec["mode"]
        read = sum(entry["world"] * entry["rows_per_rank"] for entry in self.spec.get("rows_read", []))
        self._left: int = max(0, 10 * len(objects) - read) // self.spec["world"]
        self._start, self._next = read, 0

    @property
    def batches(self) -> int:
        return -(-self._left // int(self.spec["batch_size"]))

    def __len__(self) -> int:
        return self._left

    @property
    def most_batches(self) -> int:
        return -(-self._left // int(self.spec["batch_size"]))

    @property
    def tail_counts(self) -> tuple[int, int]:
        return (self._left % int(self.spec["batch_size"]) if self.spec["tail"] == "drop" else 0, 0)

    def next(self) -> TableBatch | None:
        if self._next >= self.batches:
            return None
        first = self._next * self.spec["batch_size"]
        self._next += 1
        rows = range(self._start + first, self._start + min(self._left, first + self.spec["batch_size"]))
        return TableBatch(self._next - 1, list(rows))

    def stats_json(self) -> str:
        return "{}"

    def plan(self) -> str | None:
        return "plan: 9 rows/s (plain reading: 4), limited by the link\n"

    def observations(self) -> object:
        return f"observed in epoch {self.spec['epoch']}"

    def footers(self) -> object:
        return "footers"


class Table:
    @property
    def column_names(self) -> list[str]:
        return ["row"]


class TableBatch:
    def __init__(self, number: int, rows: list[int]) -> None:
        self.number, self._rows, self.table = number, rows, Table()
        self.objects = Tensor("i64", [len(rows)])
        self.rows = Tensor("i64", [len(rows)], array("q", rows))

    def __len__(self) -> int:
        return len(self._rows)

    def column(self, name: str) -> Tensor:
        return self.rows


class Store(Live):
    def __init__(self, store_json: str, credentials: object) -> None:
        super().__init__()

    def get(self, bucket: str, key: str, member: str | None = None, index: Objects | None = None) -> bytes:
        if "bad" in key:
            raise NativeError("refused", f"cannot read {key}: NoSuchKey", None)
        return _name(key, member, index).encode()

    def get_value(
        self,
        bucket: str,
        key: str,
        pipeline: str,
        split: str,
        seed: int | None,
        epoch: int | None,
        member: str | None = None,
        index: Objects | None = None,
    ) -> bytes:
        return f"{pipeline}({_name(key, member, index)})".encode()

    def check_json(self, pipeline: str, size: object, nbytes: object) -> str:
        return check_json(pipeline, size, nbytes)

    def explain_json(self, objects: Objects, pipeline: str, options_json: str) -> str:
        return json.dumps({"text": f"{len(objects)} objects", "options": json.loads(options_json)})


def _name(key: str, member: str | None, index: Objects | None) -> str:
    """The key of an object, followed by the name of a member, and by the number of members of the index that it is looked up in."""
    name = key if member is None else f"{key} {member}"
    return name if index is None else f"{name} of {len(index)}"


def parse_pipeline(text: str) -> str:
    position = text.find("nonsense")
    if position >= 0:
        raise NativeError("pipeline", "unknown step `nonsense`", len(text[:position].encode()))
    return " | ".join(step.strip() for step in text.split("|"))


def check_json(pipeline: str, size: object, nbytes: object) -> str:
    stage = {"step": None, "kind": "Bytes", "dtype": None, "shape": None, "bytes": 1000}
    decoded = {"step": pipeline, "kind": "Image", "dtype": "u8", "shape": [None, 4, 3], "bytes": None}
    return json.dumps({"stages": [stage, decoded], "smallest": 0, "warnings": ["it is large"]})


def steps_json() -> str:
    return "[]"


def escape(text: str) -> str:
    return "".join(f"\\u{{{ord(letter):x}}}" if letter < " " else letter for letter in text)


def run_command(arguments: Sequence[str]) -> int:
    return len(arguments)
