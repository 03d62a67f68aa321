"""The data of the plots, computed from results without a drawing library."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from . import cache_rules, measures, stats
from .results import TIERS, Cell, Results, Scenario, Trial
from .intervals import Interval

LINE_KINDS = ("auto", "pushed")


@dataclass(frozen=True)
class Point:
    """A cell of a line. x is None for the open link. `noisy` marks a cell whose times decide nothing."""

    x: float | None
    ratio: Interval
    noisy: bool


@dataclass
class Line:
    """The rate of a kind of arm to the fastest plain arm, over the cells of a group."""

    group: str
    kind: str
    points: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Bar:
    """The bar of an arm: stacked parts."""

    cell: str
    arm: str
    kind: str
    parts: tuple[float, ...]


def speedups(results: Results) -> dict[str, list[Line]]:
    """The lines of each plot, by the label of the x axis. A group can span scenarios; a group without x has no line."""
    plots: dict[str, dict[tuple[str, str], Line]] = {}
    every = [cell for scenario in results.scenarios for cell in scenario.cells]
    for group in dict.fromkeys(cell.group for cell in every):
        cells = [cell for cell in every if cell.group == group]
        label = next((cell.x_label for cell in cells if _known(cell)), None)
        for kind in LINE_KINDS if label is not None else ():
            points = [point for cell in cells if _known(cell) or _open(cell) for point in _points(cell, kind)]
            if any(point.x is not None for point in points):
                line = plots.setdefault(label, {}).setdefault((group, kind), Line(group, kind))
                line.points += points
    for lines in plots.values():
        for line in lines.values():
            line.points.sort(key=lambda point: float("inf") if point.x is None else point.x)
    return {label: list(lines.values()) for label, lines in plots.items()}


def costs_of_jobs(scenario: Scenario) -> dict[str, list[Line]]:
    """The cost of jobs on one data set relative to one job without a cache, over the number of jobs: by measure, a line for each
    setting of the cache. Empty for other scenarios."""
    costs = {"CPU seconds of store, gateway and host": measures.cpu_seconds, "bytes from the store": measures.store_bytes}
    plots = {}
    for label, measure in costs.items():
        lines = {name: Line(name, "pushed") for name in (cache_rules.UNSHARED, *cache_rules.SHARED)}
        for cell in filter(_known, scenario.cells):
            for name in lines.keys() & cell.arms.keys():
                ratio = cache_rules.cost_of_jobs(cell, name, measure)
                lines[name].points += [Point(cell.x, ratio, False)] if ratio is not None else []
        plots[label] = [line for line in lines.values() if line.points]
    return {label: lines for label, lines in plots.items() if lines}


def wire(scenario: Scenario) -> list[Bar]:
    """Bars of the bytes on the wire per sample, up and down."""
    return _bars(scenario, [lambda trial: trial.wire_up_bytes, lambda trial: trial.wire_down_bytes])


def cpu(scenario: Scenario) -> list[Bar]:
    """Bars of the CPU seconds per 1,000 samples of each tier."""
    thousand = lambda seconds: None if seconds is None else 1000 * seconds
    return _bars(scenario, [lambda trial, tier=tier: thousand(trial.cpu_seconds.get(tier)) for tier in TIERS])


def _known(cell: Cell) -> bool:
    # The axis is logarithmic.
    return cell.x is not None and cell.x > 0


def _open(cell: Cell) -> bool:
    return cell.x is None and cell.requested_bits_per_second is None


def _points(cell: Cell, kind: str) -> list[Point]:
    """The point of a cell: its fastest arm of the kind, since a line has one point per x."""
    ratios = [stats.speedup(cell, name) for name in stats.arms_of_kind(cell, kind)]
    best = max((ratio for ratio in ratios if ratio is not None), key=lambda ratio: ratio.median, default=None)
    return [Point(cell.x, best, stats.is_noisy(cell))] if best is not None else []


def _bars(scenario: Scenario, parts: list[Callable[[Trial], float | None]]) -> list[Bar]:
    """A bar for each arm without A/A repetitions, from the medians per sample. An arm that misses a part has no bar: its sum
    would look smaller."""
    bars = []
    for cell in scenario.cells:
        for name, arm in cell.arms.items():
            trials = [trial for trial in arm.trials if trial.samples and all(part(trial) is not None for part in parts)]
            if trials and arm.kind != "repeat":
                values = tuple(statistics.median(part(trial) / measures.samples_read(trial) for trial in trials) for part in parts)
                bars.append(Bar(cell.name, name, arm.kind, values))
    return bars if any(sum(bar.parts) > 0 for bar in bars) else []
