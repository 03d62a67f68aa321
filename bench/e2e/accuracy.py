"""The time until each method of a training run has a head as accurate as that of any other method.

A method reports the accuracy of its head once, at the end; earlier values are unknown. The required accuracy is therefore the
lowest final one. It equals each final accuracy if all methods predict alike, as they should.
"""

import statistics

from . import intervals, text
from .results import Cell, Trial


def section(cell: Cell) -> list[str]:
    """A table after an empty line; empty if nothing was trained."""
    trained = {name: [trial for trial in arm.trials if _is_trained(trial)] for name, arm in cell.arms.items()}
    trained = {name: trials for name, trials in trained.items() if trials}
    if not trained:
        return []
    reached = min(trial.balanced_accuracy for trials in trained.values() for trial in trials)
    seconds = {name: [trial.trained_seconds for trial in trials] for name, trials in trained.items()}
    baseline = seconds.get(cell.baseline, [])
    rows = [
        [f"`{name}`", _spread(seconds[name]), _scores(trials), text.ratio(intervals.paired(baseline, seconds[name]))]
        for name, trials in trained.items()
    ]
    columns = ["arm", f"seconds to a balanced accuracy of {reached:.3f}", "balanced accuracy", f"rate to `{cell.baseline}`"]
    return ["", *text.table(columns, rows)]


def _is_trained(trial: Trial) -> bool:
    return trial.balanced_accuracy is not None and trial.trained_seconds is not None


def _spread(seconds: list[float]) -> str:
    """The median of the rounds, with the lowest and the highest."""
    spread = f" ({text.seconds(min(seconds))} to {text.seconds(max(seconds))})" if len(seconds) > 1 else ""
    return text.seconds(statistics.median(seconds)) + spread


def _scores(trials: list[Trial]) -> str:
    """The distinct accuracies of the rounds."""
    return ", ".join(dict.fromkeys(f"{trial.balanced_accuracy:.3f}" for trial in trials))
