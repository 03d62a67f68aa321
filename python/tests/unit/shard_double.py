"""An in-memory double of the native index of shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reader_double import NativeError, Objects, shards


class ShardIndex:
    def __init__(self, bucket: str, rows: Sequence[Sequence[str]]) -> None:
        self.bucket, self._rows = bucket, [tuple(row) for row in rows]

    @staticmethod
    def read_shards(
        store_json: str,
        credentials: object,
        bucket: str,
        keys: Sequence[str],
        progress: Callable[[int, int], None],
    ) -> ShardIndex:
        for key in keys:
            if key not in shards:
                raise NativeError("refused", f"cannot index {key}: NoSuchKey", None)
        rows = [(key, member) for key in keys for member in shards[key]]
        progress(len(keys), len(rows))
        return ShardIndex(bucket, rows)

    @staticmethod
    def load(path: str) -> ShardIndex:
        try:
            return ShardIndex(*json.loads(Path(path).read_text()))
        except OSError as error:
            raise NativeError("config", f"cannot load the index {path}: {error}", None) from error

    def save(self, path: str) -> None:
        Path(path).write_text(json.dumps([self.bucket, self._rows]))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def left_out(self) -> int:
        return 0

    @property
    def shards(self) -> list[str]:
        return list(dict.fromkeys(key for key, _ in self._rows))

    @property
    def members(self) -> Objects:
        return Objects(self.bucket, [key for key, _ in self._rows], [member for _, member in self._rows])

    def select_shards(self, keys: Sequence[str]) -> ShardIndex:
        for key in keys:
            if key not in self.shards:
                raise NativeError("config", f"the index has no members of {key}", None)
        return ShardIndex(self.bucket, [row for key in keys for row in self._rows if row[0] == key])

    def samples(self, column: str | None, columns: Sequence[str]) -> Objects:
        groups: dict[tuple[str, str], dict[str, str]] = {}
        for key, member in self._rows:
            base, _, extension = member.rpartition(".")
            groups.setdefault((key, base), {})[extension] = member
        found = {place: group for place, group in groups.items() if (column or "jpg") in group}
        for name in columns:
            if not any(name in group for group in found.values()):
                raise NativeError("config", f"no sample has a member with the extension {name}", None)
        further: dict[str, Any] = {name: [group.get(name) for group in found.values()] for name in columns}
        values = [group[column or "jpg"] for group in found.values()]
        return Objects(self.bucket, [key for key, _ in found], values, further)


def expand_braces(pattern: str) -> list[str]:
    """Knows one pair of braces with numbers."""
    head, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    numbers, _, tail = rest.partition("}")
    first, dots, last = numbers.partition("..")
    if not dots:
        raise NativeError("config", f"invalid braces: expected numbers, found `{pattern}`", None)
    return [f"{head}{number:0{len(first)}}{tail}" for number in range(int(first), int(last) + 1)]


def is_shard(key: str) -> bool:
    return key.endswith((".tar", ".zip", ".tar.gz"))
