"""The state of a reader: where training is in an epoch. The same on every rank, and independent of their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import StateError

__all__ = ["State", "check_members", "check_origin"]

VERSION = 1


@dataclass(frozen=True, slots=True)
class State:
    """The first `position` samples of the epoch's order, over all ranks, have been consumed.

    It loads at any world size, rank, batch size, and number of threads and workers.
    """

    seed: int | None
    epoch: int
    position: int
    objects: str
    """Digest of the data set: of the bucket and all keys in order."""
    pipeline: str
    """Digest of the pipeline's canonical text."""
    order: str | None = None
    """The order of shards with its buffer; `None` for the order over all samples."""

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of JSON values; less than 300 bytes as JSON."""
        state: dict[str, Any] = {
            "version": VERSION,
            "seed": self.seed,
            "epoch": self.epoch,
            "position": self.position,
            "objects": self.objects,
            "pipeline": self.pipeline,
        }
        # States from before there was an order of shards have none.
        return state if self.order is None else {**state, "order": self.order}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> State:
        """The state in a dictionary. Raises `StateError` if it is none."""
        check_members(state, numbers=("epoch", "position"))
        seed, epoch, position = state["seed"], state["epoch"], state["position"]
        return cls(seed, epoch, position, state["objects"], state["pipeline"], state.get("order"))

    def check(self, *, seed: int | None, objects: str, pipeline: str, order: str | None) -> None:
        """Raises `StateError` if the state belongs to another seed, data set, pipeline or order."""
        check_origin(self.to_dict(), seed=seed, objects=objects, pipeline=pipeline, order=order)


def check_members(state: Mapping[str, Any], numbers: tuple[str, ...]) -> None:
    """Checks the version and the members of a state. Raises `StateError`."""
    advice = "is it the result of `state_dict` of the same kind of reader?"
    if not isinstance(state, Mapping):
        raise StateError("a dictionary", "from state_dict", type(state).__name__, advice)
    version = state.get("version")
    if version != VERSION:
        raise StateError("version", VERSION, version, "use the release of pushdown that saved it")
    for name in (*numbers, "seed", "objects", "pipeline"):
        if name not in state:
            raise StateError("the member", f"`{name}`", sorted(state), advice)
    for name in numbers:
        if not isinstance(state[name], int) or state[name] < 0:
            raise StateError(name, "of at least 0", state[name], advice)


def check_origin(
    state: Mapping[str, Any],
    *,
    seed: int | None,
    objects: str,
    pipeline: str,
    order: str | None = None,
    columns: str | None = None,
) -> None:
    """Raises `StateError`, which names both, if a state belongs to another data set, pipeline, seed or order, or to other columns."""
    for what, name, expected, advice in (
        ("the data set", "objects", objects, "objects were added, removed or renamed since, or hidden ones are left out now (`Sampling(include_hidden=True)`)"),
        ("the pipeline", "pipeline", pipeline, "the pipeline has changed since"),
        ("the seed", "seed", seed, "another seed is another order"),
        ("the order", "order", order or "global", "`order` or `buffer` of `sampling` has changed since"),
        ("the columns", "columns", columns, "other members are other samples"),
    ):
        found = state.get(name, "global" if name == "order" else None)
        if found != expected:
            raise StateError(
                what, expected, found, f"{advice}; `strict=False` continues at the same position"
            )
