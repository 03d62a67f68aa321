"""The states of readers of shards, and what a reader goes on from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._rank import Place
from .errors import StateError
from .state import check_members

__all__ = ["Before", "ShardState", "resume", "shards_read"]


@dataclass(frozen=True, slots=True)
class ShardState:
    """Where one reader is: what it has read of `epoch`, as the native reader says it."""

    epoch: int
    shards_read: Mapping[str, Any]
    ended: Mapping[str, Any] | None = None
    """What it has read of the epoch before, whose end it has seen; only while it has nothing of `epoch`."""

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> ShardState:
        """The state in a dictionary. Raises `StateError` if it is none."""
        check_members(state, numbers=("epoch",))
        shards_read, ended = state.get("shards_read"), state.get("ended")
        if not isinstance(shards_read, Mapping) or not (ended is None or isinstance(ended, Mapping)):
            raise StateError(
                "the member", "`shards_read`", sorted(state), "is it the state of a reader of shards without an index?"
            )
        return cls(state["epoch"], shards_read, ended)

    def read_of(self, epoch: int) -> Mapping[str, Any] | None:
        """What the reader has read of an epoch; `None` if that is not known."""
        if epoch == self.epoch:
            return self.shards_read
        return self.ended if epoch + 1 == self.epoch else None

    def is_of(self, place: Place) -> bool:
        """Whether the reader at this place has saved it."""
        rank, worker = place.rank, place.worker
        own = {"world": rank.world, "rank": rank.index, "every": worker.count, "turn": worker.index}
        return self.shards_read.get("place") == own


@dataclass(frozen=True, slots=True)
class Before:
    """What was read of an epoch before an iteration; nothing at its beginning."""

    states: tuple[ShardState, ...] = ()
    """Those of readers of the epoch."""
    ended: Mapping[str, Any] | None = None
    """What the reader has read of the epoch before, if it has seen its end, and nothing of this one."""


def resume(states: Sequence[ShardState], place: Place) -> tuple[ShardState | None, int]:
    """The state of the reader at `place`, if it is one of these, and the epoch in which it goes on.

    In another world that is the first epoch of which samples may be left.
    """
    own = next((state for state in states if state.is_of(place)), None)
    return own, min(state.epoch for state in states) if own is None else own.epoch


def shards_read(states: Sequence[ShardState], place: Place) -> tuple[int, tuple[Mapping[str, Any], ...]]:
    """The epoch in which the reader at `place` goes on, and what readers have read of it.

    Raises `StateError` if that is not known of all readers, and the reader needs the states of all.
    """
    own, epoch = resume(states, place)
    read = []
    for state in states:
        known = state.read_of(epoch)
        if known is not None:
            read.append(known)
        elif own is None:
            advice = "load states that all readers have saved together"
            raise StateError("states of the epoch", epoch, state.epoch, advice)
    return epoch, tuple(read)
