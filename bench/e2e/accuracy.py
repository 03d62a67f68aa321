"""How soon each way of a whole training run has a head that is as accurate as that of any other way.

A way tells how accurate its head is once, at its end: what it takes to be less accurate than that is not known. So the accuracy
that is asked for is the least of all ends. It is that of each end where all ways predict the same, as they should.
"""

import statistics

from . import stats, text
from .results import Cell, Turn


def section(cell: Cell) -> list[str]:
    """A table with an empty line before it, or nothing where nothing was trained."""
    trained = {name: [turn for turn in arm.turns if _tells(turn)] for name, arm in cell.arms.items()}
    trained = {name: turns for name, turns in trained.items() if turns}
    if not trained:
        return []
    reached = min(turn.balanced_accuracy for turns in trained.values() for turn in turns)
    took = {name: [turn.trained_seconds for turn in turns] for name, turns in trained.items()}
    baseline = took.get(cell.baseline, [])
    rows = [
        [f"`{name}`", _spread(took[name]), _scores(turns), text.ratio(stats.paired(baseline, took[name]))]
        for name, turns in trained.items()
    ]
    columns = ["arm", f"seconds to a balanced accuracy of {reached:.3f}", "balanced accuracy", f"rate to `{cell.baseline}`"]
    return ["", *text.table(columns, rows)]


def _tells(turn: Turn) -> bool:
    return turn.balanced_accuracy is not None and turn.trained_seconds is not None


def _spread(seconds: list[float]) -> str:
    """The median of the rounds, with the least and the greatest."""
    around = f" ({text.seconds(min(seconds))} to {text.seconds(max(seconds))})" if len(seconds) > 1 else ""
    return text.seconds(statistics.median(seconds)) + around


def _scores(turns: list[Turn]) -> str:
    """What each round came to, or all of them where that is the same."""
    return ", ".join(dict.fromkeys(f"{turn.balanced_accuracy:.3f}" for turn in turns))
