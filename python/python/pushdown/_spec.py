"""The settings of a native reader as JSON, without credentials."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from ._rank import Worker
from .errors import ConfigError

__all__ = [
    "Connection",
    "Credentials",
    "ReaderSpec",
    "Retry",
    "StoreSpec",
    "Timeouts",
    "check_least",
    "choice",
    "path_text",
    "size_bytes",
    "split_text",
    "store_of",
]

Credentials: TypeAlias = tuple[str, str, str | None]
"""Access key, secret key, and session token or `None`."""
Mode: TypeAlias = Literal["auto", "pushdown", "plain"]
Tail: TypeAlias = Literal["short", "even", "drop", "pad"]
Compression: TypeAlias = Literal["none", "lz4", "zstd"]
OnError: TypeAlias = Literal["raise", "report", "skip"]
Order: TypeAlias = Literal["global", "shards"]

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for the endpoint before an attempt fails."""

    connect_seconds: float = 5.0
    """Until a TCP connection is established."""
    first_byte_seconds: float = 60.0
    """From a request to the head of its answer, including connecting."""
    idle_seconds: float = 60.0
    """Between any two pieces of an answer."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When to retry: the pause after the n-th consecutive failure is random, at most `base_seconds * 2**(n - 1)`."""

    attempts: int = 10
    """Consecutive attempts before giving up, including the first one."""
    base_seconds: float = 0.1
    """Longest pause after the first failure."""
    cap_seconds: float = 20.0
    """Longest pause after any failure, unless the endpoint asks for more."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """An endpoint. `None` means: as in the AWS tools, from the environment and the profile."""

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    timeouts: Timeouts | None = None
    retry: Retry | None = None

    def to_dict(self) -> dict[str, Any]:
        """The members that are set."""
        return _set_members(asdict(self))

    def to_json(self) -> str:
        """The JSON document that the native module takes as `store_json`."""
        return _json(self.to_dict())


class Connection(TypedDict, total=False):
    """Arguments of one-off calls: the endpoint, and how to reach it. What is left out is as in the AWS tools."""

    endpoint: str | None
    """URL of the gateway, or of any S3 store."""
    region: str | None
    profile: str | None
    credentials: Credentials | None
    timeouts: Timeouts | None
    retry: Retry | None


def store_of(connection: Connection) -> tuple[StoreSpec, Credentials | None]:
    """The endpoint, and explicit credentials, which never become part of a spec."""
    spec = StoreSpec(
        connection.get("endpoint"),
        connection.get("region"),
        connection.get("profile"),
        connection.get("timeouts"),
        connection.get("retry"),
    )
    unknown = connection.keys() - Connection.__annotations__.keys()
    if unknown:
        raise TypeError(
            f"unexpected argument {', '.join(sorted(unknown))}: expected one of {', '.join(Connection.__annotations__)}"
        )
    return spec, connection.get("credentials")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSpec:
    """The settings of a native reader. `Reader` describes them."""

    store: StoreSpec = field(default_factory=StoreSpec)
    pipeline: str
    mode: str = "auto"
    split: str = "smallest"
    compression: str = "none"
    batch_size: int = 64
    seed: int | None = None
    shuffle: bool = True
    order: str = "global"
    buffer: int = 1000
    """With the order "shards": samples in the shuffle buffer."""
    epoch: int = 0
    epochs: int = 1
    rank: int = 0
    world: int = 1
    start_position: int = 0
    tail: str = "even"
    start_batch: int = 0
    worker: Worker = field(default_factory=Worker)
    limit: int | None = None
    prefetch_bytes: int = 256 << 20
    requests: int = 4
    gets: int = 32
    threads: int | None = None
    local_ranks: int = 1
    models: str | None = None
    value_cache: str | None = None
    value_cache_bytes: int = 10 << 30
    max_expand: float = 1.0
    rows_read: tuple[tuple[int, int], ...] | None = None
    """For tables: (world, rows read by each rank), in order. `start_position` and `worker` do not apply then."""
    columns: Mapping[str, Any] | None = None
    """For shards without an index: `value`, the extension for the pipeline or `None`, and `further`, those of further columns."""
    shards_read: tuple[Mapping[str, Any], ...] | None = None
    """For shards without an index: what readers have read of the epoch. `start_position` does not apply then."""

    def __post_init__(self) -> None:
        for name, least in (
            ("batch_size", 1),
            ("buffer", 1),
            ("epochs", 1),
            ("requests", 1),
            ("gets", 1),
            ("threads", 1),
            ("limit", 0),
        ):
            check_least(name, getattr(self, name), least)
        for name in ("seed", "epoch", "prefetch_bytes", "value_cache_bytes", "start_position"):
            check_least(name, getattr(self, name), 0)
        if not self.max_expand >= 0:
            raise ConfigError(f"invalid max_expand: expected a factor of at least 0, found {self.max_expand}")
        choice("mode", self.mode, get_args(Mode))
        choice("compression", self.compression, get_args(Compression))
        choice("order", self.order, get_args(Order))
        choice("tail", self.tail, get_args(Tail))

    def to_json(self) -> str:
        """The JSON document that the native module takes as `spec_json`: the members that are set."""
        members = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        rows_read = self.rows_read and [
            {"world": world, "rows_per_rank": rows} for world, rows in self.rows_read
        ]
        members |= {"store": self.store.to_dict(), "rows_read": rows_read or None}
        members |= {"every": self.worker.count, "turn": self.worker.index}
        del members["buffer"], members["worker"]
        if self.order == "shards":
            members["order"] = {"shards": {"buffer": self.buffer}}
        return _json(_set_members(members))

    @property
    def order_text(self) -> str | None:
        """The order as a state names it; `None` for the one over all samples."""
        return None if self.order == "global" else f"{self.order} {self.buffer}"


def choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises `ConfigError` unless `value` is one of `choices`."""
    if value not in choices:
        raise ConfigError(f"invalid {name}: expected one of {', '.join(choices)}, found {value!r}")


def split_text(split: int | str) -> str:
    """`smallest`, `full` or a number of steps, as text. Raises `ConfigError`."""
    text = str(split)
    if text not in ("smallest", "full") and not (text.isascii() and text.isdecimal()):
        raise ConfigError(f"invalid split: expected smallest, full or a number of steps, found {split!r}")
    return text


def size_bytes(name: str, size: int | str) -> int:
    """Bytes of `size`: a number, or text such as `256 MiB` or `10GB`. Raises `ConfigError`."""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ConfigError(
            f"invalid {name}: expected a number of bytes or text such as `256 MiB`, found {size!r}"
        )
    return round(float(match[1]) * unit)


def path_text(path: str | os.PathLike[str] | None) -> str | None:
    """An absolute path, so that another process finds the same folder."""
    return None if path is None else os.path.abspath(path)


def check_least(name: str, value: object, least: int) -> None:
    """Raises `ConfigError` unless `value` is `None` or a whole number of at least `least`."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"invalid {name}: expected a whole number of at least {least}, found {value!r}")


def _set_members(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _json(members: dict[str, Any]) -> str:
    return json.dumps(members, separators=(",", ":"))
