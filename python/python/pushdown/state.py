"""The states of readers: where training is in an epoch, and what it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import StateError

__all__ = ["check_members", "check_origin", "write_state"]

VERSION = 1


def write_state(
    epoch: int, where: Mapping[str, Any], *, seed: int | None, objects: str, pipeline: str, **others: Any
) -> dict[str, Any]:
    """A state: a dictionary of JSON values. `where` says what is read of the epoch; `others` are left out if they are `None`.

    `objects`: digest of the data set, of the bucket and all keys in order. `pipeline`: that of the pipeline's canonical text.
    """
    return {
        "version": VERSION,
        "seed": seed,
        "epoch": epoch,
        **where,
        "objects": objects,
        "pipeline": pipeline,
        **{name: value for name, value in others.items() if value is not None},
    }


def check_members(state: Mapping[str, Any], numbers: tuple[str, ...]) -> None:
    """Checks the version and the members of a state. Raises `StateError`."""
    advice = "is it the result of `state_dict` of a reader of the same kind of source?"
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
