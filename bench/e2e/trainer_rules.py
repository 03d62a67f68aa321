"""The rule for data loaders of others that run as their documentation shows: what the same tensors cost the trainer's CPU."""

from collections.abc import Callable

from .intervals import paired
from .measures import host_cpu_seconds_per_sample, measurements
from .results import Cell, Verdict

# Loaders of others as documented, unlike those that compete for plain reading, which are tuned.
DOCUMENTED = ("webdataset-pil", "datasets")
# Our loader in the two modes that read from a store. `pushed` leaves the trainer next to nothing to do.
JUDGED = ("plain", "auto")
MIN_RATIO = 1.5


def verdicts(cell: Cell, judge: Callable[..., Verdict]) -> list[Verdict]:
    """The verdicts of a cell with such a loader; `judge` compares a ratio with a requirement."""
    found = []
    for other in DOCUMENTED:
        for name in JUDGED:
            if {other, name} <= set(cell.arms):
                measured = (measurements(cell.arms[each], host_cpu_seconds_per_sample) for each in (other, name))
                found.append(judge(cell, "trainer-cpu", name, other, "cpu", MIN_RATIO, paired(*measured), cpu_decides=True))
    return found
