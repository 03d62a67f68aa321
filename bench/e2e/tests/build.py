"""Builders of results in which only times, CPU or bytes matter."""

from collections.abc import Sequence

from ..results import Arm, Bound, Cell, Environment, Results, Scenario, Trial

KINDS = {"plain": "plain", "repeat": "repeat", "repeat:pushed": "repeat", "pushed": "pushed", "auto": "auto",
         "auto-first": "auto", "loader": "peer",
         "resized": "layout", "pyarrow": "alternative", "duckdb": "alternative", "tfdata": "alternative"}


def trial(*seconds: float, wire: float = 1000, cpu: float = 1.0, samples: int = 100, errors: int = 0) -> Trial:
    """A trial with these epochs, bytes per sample, and CPU seconds of all epochs."""
    down = wire * samples * len(seconds)
    return Trial(
        samples=samples, errors=errors, epoch_seconds=list(seconds), first_batch_seconds=0.1, batch_wait_p50_seconds=0.01,
        batch_wait_p99_seconds=0.02, stall_seconds=0.5, value_bytes=100, stored_bytes=None, wire_up_bytes=0, wire_down_bytes=down,
        cpu_seconds={"store": cpu / 4, "gateway": cpu / 4, "host": cpu / 2}, peak_bytes={"host": 1e6},
    )


def arm(name: str, seconds: Sequence[float], **of_trials: float) -> Arm:
    """An arm with one epoch per round; its name determines its kind."""
    return Arm(KINDS[name], "", [trial(each, **of_trials) for each in seconds])


def cell(x: float | None = None, bound: float | None = None, **arms: Arm | Sequence[float]) -> Cell:
    """A cell of arms, each given as the seconds of its rounds or as an `Arm`."""
    built = {name: each if isinstance(each, Arm) else arm(name, each) for name, each in arms.items()}
    limit = Bound(bound, "gateway") if bound is not None else None
    return Cell("cell", "group", x, "link", None, None, None, "plain", [], limit, built)


def results(*cells: Cell, kind: str = "read") -> Results:
    """A run of one scenario."""
    environment = Environment("cpu", 2, 10**9, "6.1", "3.11", True, "", False, [0, 0, 0], {"pushdown": "0.1.0"})
    scenario = Scenario("s", "S", {"kind": kind, "samples": 100}, "", list(cells))
    return Results("abc", False, "2026-01-01T00:00:00Z", 1.0, environment, [scenario])
