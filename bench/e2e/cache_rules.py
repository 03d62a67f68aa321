"""The rules for values of the gateway's result cache: what jobs on one data set cost, what a hit costs, and a later epoch."""

from collections.abc import Callable

from . import measures
from .intervals import Interval, interval, paired
from .measures import Measure, measurements
from .results import Cell, Verdict

# Arms of jobs on one data set: one job without a cache, which is the reference, and several jobs without and with one.
ONE_JOB, UNSHARED, SHARED = "one", "off", ("memory", "disk")
# Arms with hits only, and the aims of their CPU seconds of store and gateway per hit: the store authorizes each, or is not asked.
MAX_CPU_SECONDS_PER_HIT = {"revalidated": 0.00045, "remembered": 0.00015}
# The arm of a later epoch with all values in memory, and its rate on the wire to that of the link.
ALL_CACHED, MIN_LINK_RATIO = "memory", 0.9
# Hits per sample to the announced cached ratio.
MIN_HITS_TO_ANNOUNCED = 0.97


def later(name: str) -> str:
    """The arm with a later epoch of jobs on one data set."""
    return f"{name}:later"


def cost_of_jobs(cell: Cell, name: str, measure: Measure) -> Interval | None:
    """What an arm costs, relative to one job without a cache; None in cells without that, and for arms with hits only."""
    if ONE_JOB not in cell.arms or name in MAX_CPU_SECONDS_PER_HIT:
        return None
    return paired(measurements(cell.arms[name], measure), measurements(cell.arms[ONE_JOB], measure))


def verdicts(cell: Cell, judge: Callable[..., Verdict]) -> list[Verdict]:
    """The verdicts of a cell, as far as it has requirements; `judge` compares a ratio with a requirement."""
    return _sharing(cell, judge) + _hits(cell, judge) + _later_epoch(cell, judge)


def _sharing(cell: Cell, judge: Callable[..., Verdict]) -> list[Verdict]:
    """Jobs on one data set."""
    found = []
    for name in SHARED:
        if not {ONE_JOB, name, later(name)} <= set(cell.arms):
            continue
        first, last = cell.arms[name], cell.arms[later(name)]
        rules = {
            "store-bytes": ("store", ONE_JOB, measures.store_bytes, cell.arms[ONE_JOB], first),
            "jobs-cpu": ("cpu", ONE_JOB, measures.cpu_seconds, cell.arms[ONE_JOB], first),
            "later-cpu": ("cpu", name, measures.store_side_cpu_seconds_per_sample, first, last),
        }
        for rule in [rule for rule in cell.required if rule in rules]:
            measure, against, get, over, under = rules[rule]
            ratio = paired(measurements(over, get), measurements(under, get))
            judged, decides = (later(name), True) if under is last else (name, False)
            found.append(judge(cell, rule, judged, against, measure, cell.required[rule], ratio, cpu_decides=decides))
    return found


def _hits(cell: Cell, judge: Callable[..., Verdict]) -> list[Verdict]:
    """Arms with hits only."""
    found = []
    for name, aim in MAX_CPU_SECONDS_PER_HIT.items():
        if name in cell.arms and "hit-cpu" in cell.required:
            used = measurements(cell.arms[name], measures.cpu_seconds_per_hit)
            ratio, against = paired([aim] * len(used), used), f"{aim * 1000:g} ms"
            found.append(judge(cell, "hit-cpu", name, against, "cpu", cell.required["hit-cpu"], ratio, cpu_decides=True))
    return found


def _later_epoch(cell: Cell, judge: Callable[..., Verdict]) -> list[Verdict]:
    """A later epoch over a link."""
    found = []
    if "link" in cell.required and cell.bandwidth is not None and ALL_CACHED in cell.arms:
        rates = measurements(cell.arms[ALL_CACHED], measures.wire_down_bits_per_second)
        ratio = paired(rates, [cell.bandwidth] * len(rates))
        found.append(judge(cell, "link", ALL_CACHED, "", "seconds", cell.required["link"], ratio))
    for name in cell.arms if "hits" in cell.required else ():
        # No hits at all are a measurement, too.
        announced = [trial for trial in cell.arms[name].trials if trial.cached_ratio]
        ratio = interval([measures.hit_ratio(trial) / trial.cached_ratio for trial in announced])
        found.append(judge(cell, "hits", name, "", "values", cell.required["hits"], ratio))
    return found
