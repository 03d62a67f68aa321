"""The options of readers: each is declared once, here. Its check, native name, and the sources to which it applies stand at its field."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeAlias

from ._checks import any_value, at_least, choice_of, of_type, path_text, size_bytes, split_text
from ._sample_columns import Columns
from ._settings import (
    Allowed,
    Group,
    SourceKind,
    check_applies,
    check_names,
    does_not_apply,
    native_members,
    not_for,
    one_of,
    setting,
)
from ._source import Index
from .errors import ConfigError
from .labels import Column, LabelSource
from .store import Connection, ConnectionOptions

__all__ = [
    "IO",
    "Options",
    "Plan",
    "ReaderOptions",
    "Sampling",
    "TableOptions",
    "ValueCache",
]

Mode: TypeAlias = Literal["auto", "pushdown", "plain"]
OnError: TypeAlias = Literal["raise", "report", "skip"]
Order: TypeAlias = Literal["global", "shards"]
Tail: TypeAlias = Literal["short", "even", "drop", "pad"]
Compression: TypeAlias = Literal["none", "lz4", "zstd"]

_OBJECTS, _SHARDS, _ROWS, _TABLE = SourceKind
_flag = of_type(bool, expected="True or False")


def _split(_name: str, value: Any) -> str:
    return split_text(value)


def _factor(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ConfigError(f"invalid {name}: expected a finite factor of at least 0, found {value!r}")
    return value


@dataclass(frozen=True, kw_only=True, repr=False)
class Sampling(Group):
    """Which samples a reader has, and in which order.

        pushdown.Sampling(order="shards", buffer=5000, tail="pad")

    - `order`: "global" shuffles all samples together, and is the default. "shards" shuffles the shards, and their samples by a buffer, so
      that few shards are read at a time; it is the only order of shards without an index.
    - `buffer`: samples in the shuffle buffer of the order "shards", the only one to which it applies. Default: 1000.
    - `tail`: how an epoch ends that does not divide evenly. "even", the default: equal counts on all ranks, fewer than `world` samples are
      dropped; "drop": full batches only; "pad": full batches, repeated samples have `valid` False; "short": each sample once, which is the
      only one of shards without an index.
    - `rank`, `world`: the rank of this process, from 0, and the number of ranks. By default those of `torch.distributed` or of the launcher,
      looked up at each `iter()`.
    - `limit`: the most samples of this rank in an iteration, from where it starts. Default: all.
    - `include_hidden`: whether the listing of a prefix has `.DS_Store`, `Thumbs.db`, `desktop.ini`, names that begin with `._`, and the
      empty objects that stand for folders. By default they are left out, and one line of the log counts them.

    Raises `ConfigError`.
    """

    order: Order | None = setting(
        None,
        choice_of(Order | None),
        native="order",
        limits={
            _SHARDS: Allowed(
                lambda order: order == "shards",
                '"shards"; a shuffle of all samples needs an index: run `pushdown index`, and pass `index`',
            ),
            _ROWS: one_of("global"),
            _TABLE: one_of("global"),
        },
    )
    buffer: int = setting(1000, at_least(1), limits=not_for(_ROWS, _TABLE))
    tail: Tail | None = setting(
        None,
        choice_of(Tail | None),
        native="tail",
        limits={
            _SHARDS: one_of("short"),
            _ROWS: one_of("short", "even", "drop"),
            _TABLE: one_of("short", "even", "drop"),
        },
    )
    rank: int | None = setting(None, at_least(0, optional=True))
    world: int | None = setting(None, at_least(1, optional=True))
    limit: int | None = setting(None, at_least(0, optional=True), native="limit", limits=not_for(_SHARDS))
    include_hidden: bool = setting(False, _flag, limits=not_for(_SHARDS, _ROWS))

    def native(self) -> dict[str, Any]:
        """The native settings."""
        members = super().native()
        return (
            members if self.order != "shards" else {**members, "order": {"shards": {"buffer": self.buffer}}}
        )

    @property
    def order_text(self) -> str | None:
        """The order as a state names it; `None` for the one over all samples."""
        return f"shards {self.buffer}" if self.order == "shards" else None

    def with_defaults_of(self, kind: SourceKind) -> Self:
        """With the order and the tail that a source has by default. Raises `ConfigError` for a buffer that the order does not have."""
        is_unknown = kind is _SHARDS
        order = self.order or ("shards" if is_unknown else "global")
        if order != "shards" and self.buffer != Sampling.buffer:
            expected = f'{Sampling.buffer}, the default, or order="shards"'
            raise does_not_apply("buffer", self.buffer, kind.value, expected)
        return replace(self, order=order, tail=self.tail or ("short" if is_unknown else "even"))


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Group):
    """How much of a pipeline runs at the gateway, and what the planner may assume.

        pushdown.Plan(epochs=90, compression="zstd")

    - `split`: the number of steps at the gateway, "full" or "smallest", the default: where a sample has the fewest bytes. With
      `mode="auto"` the plan decides instead.
    - `max_expand`: with `mode="auto"`, the most bytes of a value as a multiple of its object's bytes. Default: 1.0.
    - `epochs`: how many iterations will follow, from `epoch` on. With `mode="auto"` the plan minimises the time of all of them: the first
      one may be slower if later ones find its values in the result cache of the gateway. Other numbers of iterations are no error. Default: 1.
    - `compression`: of values in transit: "none", the default, "lz4" or "zstd".
    - `models`: folder of the models that the pipeline names. By default those of the gateway.

    Raises `ConfigError`.
    """

    split: int | str = setting("smallest", _split, native="split", limits=not_for(_SHARDS))
    max_expand: float = setting(1.0, _factor, native="max_expand", limits=not_for(_SHARDS, _ROWS, _TABLE))
    epochs: int = setting(1, at_least(1), native="epochs", limits=not_for(_SHARDS, _ROWS, _TABLE))
    compression: Compression = setting(
        "none", choice_of(Compression), native="compression", limits=not_for(_SHARDS)
    )
    models: str | os.PathLike[str] | None = setting(None, path_text, native="models")


@dataclass(frozen=True, kw_only=True, repr=False)
class IO(Group):
    """How much a reader does at a time.

        pushdown.IO(prefetch="1 GiB", threads=4)

    - `prefetch`: bytes of prefetched batches, a number or text. Default: "256 MiB". Of shards without an index, a quarter of it is for samples
      that have arrived; those in the shuffle buffer come on top.
    - `requests`: batches in flight, or shards without an index that are read at a time. Default: 4.
    - `gets`: plain reads in flight. Default: 32.
    - `threads`: that run steps on this host. By default the CPUs divided by the ranks of the host.

    Raises `ConfigError`.
    """

    prefetch: int | str = setting("256 MiB", size_bytes, native="prefetch_bytes")
    requests: int = setting(4, at_least(1), native="requests")
    gets: int = setting(32, at_least(1), native="gets", limits=not_for(_SHARDS))
    threads: int | None = setting(None, at_least(1, optional=True), native="threads")


@dataclass(frozen=True, kw_only=True, repr=False)
class ValueCache(Group):
    """A folder in which values are stored for later epochs: those from before the first random step.

        pushdown.ValueCache(path="/dev/shm/values", bytes="50 GiB")

    - `path`: the folder. Processes of a host may share it: each value is then fetched by one of them.
    - `bytes`: the most that the folder has, for all processes together, a number or text. Nothing is added beyond it. Default: "10 GiB".

    Where the list has no ETag of an object, as for URLs, the store is asked for it once. Raises `ConfigError`.
    """

    path: str | os.PathLike[str]
    bytes: int | str = setting("10 GiB", size_bytes, native="value_cache_bytes", former="value_cache_bytes")

    def native(self) -> dict[str, Any]:
        """The native settings."""
        return {**super().native(), "value_cache": path_text("value_cache", self.path)}

    def __post_init__(self) -> None:
        if path_text("value_cache", self.path) is None:
            raise ConfigError("invalid value_cache: expected a path, found None")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True, repr=False)
class Options(Connection):
    """The options of all readers. `Reader` describes them."""

    index: Index | None = setting(None, limits=not_for(_SHARDS, _ROWS, _TABLE))
    column: str | None = setting(
        None, of_type(str, expected="a str or None", optional=True), limits=not_for(_ROWS, _TABLE)
    )
    columns: Columns | None = setting(None, limits=not_for(_ROWS, _TABLE))
    batch_size: int = setting(64, at_least(1), native="batch_size")
    seed: int | None = setting(None, at_least(0, optional=True), native="seed")
    epoch: int = setting(0, at_least(0), native="epoch")
    shuffle: bool = setting(True, _flag, native="shuffle")
    labels: LabelSource | None = setting(
        None,
        limits={
            _SHARDS: Allowed(
                lambda labels: isinstance(labels, Column),
                "a pushdown.Column; other labels need an index of the shards",
            ),
            _ROWS: Allowed(lambda labels: isinstance(labels, str), "the name of a column"),
            _TABLE: None,
        },
    )
    mode: Mode = setting("auto", choice_of(Mode), native="mode", limits={_SHARDS: one_of("auto", "plain")})
    on_error: OnError = setting("raise", choice_of(OnError), limits=not_for(_TABLE))
    max_errors: int | float | None = setting(None, limits=not_for(_TABLE))
    sampling: Sampling = setting(Sampling(), group=Sampling)
    plan: Plan = setting(Plan(), group=Plan)
    io: IO = setting(IO(), group=IO)
    value_cache: str | os.PathLike[str] | ValueCache | None = setting(
        None, any_value, limits=not_for(_SHARDS, _ROWS, _TABLE), group=ValueCache
    )

    def __post_init__(self) -> None:
        cache = self.value_cache
        if cache is not None and not isinstance(cache, ValueCache):
            object.__setattr__(self, "value_cache", ValueCache(path=cache))
        super().__post_init__()

    def native(self) -> dict[str, Any]:
        """The native settings."""
        return {**native_members(self, without=Connection), "store": self.connection.native()}

    @property
    def connection(self) -> Connection:
        """What reaches the objects."""
        return Connection(**{each.name: getattr(self, each.name) for each in fields(Connection)})

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options of a reader. Raises `TypeError` for other arguments, and `ConfigError` for invalid values."""
        check_names(given, cls)
        return cls(**given)

    def applied_to(self, kind: SourceKind) -> Self:
        """The options of a reader of this source. Raises `ConfigError` for one that does not apply."""
        check_applies(self, kind)
        return replace(self, sampling=self.sampling.with_defaults_of(kind))


class TableOptions(ConnectionOptions, total=False):
    """Keyword arguments of `pushdown.TableReader`, which all readers take. `pushdown.Reader` describes them."""

    batch_size: int
    seed: int | None
    epoch: int
    shuffle: bool
    mode: Mode
    sampling: Sampling
    plan: Plan
    io: IO


class ReaderOptions(TableOptions, total=False):
    """Keyword arguments of `pushdown.Reader`, where they and their defaults are described."""

    index: Index | None
    column: str | None
    columns: Columns | None
    labels: LabelSource | None
    on_error: OnError
    max_errors: int | float | None
    value_cache: str | os.PathLike[str] | ValueCache | None
