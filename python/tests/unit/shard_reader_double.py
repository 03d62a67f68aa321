"""An in-memory double of the native reader of shards without an index. Its order is that of the shards, and it has no buffer."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

from reader_double import Batch, Live, NativeError, Objects, Tensor, opened, shards
from shard_double import ShardIndex

_PLACE = ("world", "rank", "every", "turn")


class ShardsRead:
    """The samples that were left when the readers of this world began, by shard and number, and how many of its own a reader has read."""

    def __init__(self, spec: Any, objects: Objects) -> None:
        self.place = {name: spec[name] for name in _PLACE}
        everything = [
            [shard, n] for shard, key in enumerate(objects.paths()) for n in range(_count(key, spec))
        ]
        self.begin, self.read = everything, 0
        states: list[Any] = spec["shards_read"]
        own = [state for state in states if state["place"] == self.place]
        if own:
            self.begin, self.read = own[0]["begin"], own[0]["read"]
        elif states:
            readers = states[0]["place"]["world"] * states[0]["place"]["every"]
            if len(states) < readers:
                raise NativeError("config", f"a state of {readers} readers is missing", None)
            self.begin = sorted(
                sample
                for state in states
                for sample in _dealt(state["begin"], state["place"])[state["read"] :]
            )

    @staticmethod
    def initial(spec_json: str, objects: Objects) -> ShardsRead:
        for key in objects.paths():
            if not key.endswith((".tar", ".tar.gz")):
                raise NativeError("config", f"cannot stream {key}", None)
        return ShardsRead(json.loads(spec_json), objects)

    def own(self) -> list[Any]:
        """The samples of this reader."""
        return _dealt(self.begin, self.place)

    @property
    def is_complete(self) -> bool:
        return self.read >= len(self.own())

    def to_json(self) -> str:
        return json.dumps({"place": self.place, "begin": self.begin, "read": self.read})


class ShardReader(Live):
    mode = "plain"

    def __init__(self, spec_json: str, credentials: object, objects: Objects) -> None:
        super().__init__()
        self.spec: Any = json.loads(spec_json)
        opened.append(self.spec)
        self._objects, self._number = objects, 0
        self._state = ShardsRead(self.spec, objects)

    def next(self) -> ShardBatch | None:
        first = self._state.read
        own = self._state.own()[first : first + self.spec["batch_size"]]
        if not own:
            return None
        batch = ShardBatch(self._number, *self._samples(own, first))
        batch.shard_indices = [shard for shard, _ in own]
        self._number += 1
        self._state.read += len(own)
        batch.shards_read = _copy(self._state)
        return batch

    def _samples(self, own: Sequence[Any], first: int) -> tuple[Objects, list[tuple[int, int, bool]]]:
        keys = [self._objects.key(shard) for shard, _ in own]
        places = [(_of_shard(key, self.spec), number) for key, (_, number) in zip(keys, own, strict=True)]
        further: list[str] = self.spec["columns"]["further"]
        columns = {name: [of.column_member(n, name) for of, n in places] for name in further}
        members = [of.paths()[n] for of, n in places]
        rows = [(first + row, row, False) for row in range(len(own))]
        return Objects(self._objects.bucket, keys, members, columns), rows

    def stats_json(self) -> str:
        return json.dumps({"samples": self._state.read, "waiting_seconds": 0.0})


class ShardBatch(Batch):
    shard_indices: list[int]

    @property
    def index(self) -> Tensor:
        return Tensor("i64", [len(self)], array("q", self.shard_indices))

    def with_errors(self, errors: Sequence[tuple[int, str, str]]) -> Batch:
        return self._with(super().with_errors(errors), self.shard_indices)

    def without_errors(self) -> Batch:
        kept = [shard for row, shard in enumerate(self.shard_indices) if row not in self._errors]
        return self._with(super().without_errors(), kept)

    def _with(self, batch: Batch, indices: list[int]) -> Batch:
        made = ShardBatch(batch.number, batch._objects, batch._rows, batch._errors)
        made.shard_indices, made.shards_read = indices, self.shards_read
        return made


def _of_shard(key: str, spec: Any) -> Objects:
    """The samples of a shard."""
    rows = [(key, member) for member in shards[key]]
    columns = spec["columns"]
    present = {member.rpartition(".")[2] for member in shards[key]}
    further = [name for name in columns["further"] if name in present]
    samples = ShardIndex("photos", rows).samples(columns["value"], further)
    absent: dict[str, Any] = {
        name: [None] * len(samples) for name in columns["further"] if name not in present
    }
    return Objects("photos", samples.keys(), samples.paths(), samples._columns | absent)


def _count(key: str, spec: Any) -> int:
    return len(_of_shard(key, spec)) if key in shards else 0


def _dealt(begin: Sequence[Any], place: Any) -> list[Any]:
    """The samples of the shards that a reader has."""
    reader, readers = place["rank"] * place["every"] + place["turn"], place["world"] * place["every"]
    left = sorted({shard for shard, _ in begin})
    own = set(left[reader::readers])
    return [sample for sample in begin if sample[0] in own]


def _copy(state: ShardsRead) -> ShardsRead:
    made = object.__new__(ShardsRead)
    made.place, made.begin, made.read = state.place, state.begin, state.read
    return made
