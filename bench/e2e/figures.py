"""The data of the plots, computed from results without a drawing library."""

from dataclasses import dataclass, field

from . import comparisons, targets, trials
from .ratios import Ratio
from .results import TIERS, Cell, Results, Scenario

LINE_KINDS = ("auto", "pushed")


@dataclass(frozen=True)
class Point:
    """A cell of a line. x is None for the open link."""

    x: float | None
    ratio: Ratio


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
    costs = {"CPU seconds of store, gateway and host": "total_cpu", "bytes from the store": "total_store_bytes"}
    plots = {}
    for label, column in costs.items():
        lines = {name: Line(name, "pushed") for name in (targets.UNSHARED, *targets.SHARED)}
        for cell in filter(_known, scenario.cells):
            for name in lines.keys() & cell.arms.keys():
                ratio = comparisons.cost_of_jobs(cell, name, column)
                lines[name].points += [Point(cell.x, ratio)] if ratio is not None else []
        plots[label] = [line for line in lines.values() if line.points]
    return {label: lines for label, lines in plots.items() if lines}


def wire(scenario: Scenario) -> list[Bar]:
    """Bars of the bytes on the wire per sample, up and down."""
    return _bars(scenario, ["wire_up_bytes", "wire_down_bytes"])


def cpu(scenario: Scenario) -> list[Bar]:
    """Bars of the CPU seconds per 1,000 samples of each tier."""
    return _bars(scenario, [f"cpu_{tier}" for tier in TIERS], 1000)


def _known(cell: Cell) -> bool:
    # The axis is logarithmic.
    return cell.x is not None and cell.x > 0


def _open(cell: Cell) -> bool:
    return cell.x is None and cell.requested_bits_per_second is None


def _points(cell: Cell, kind: str) -> list[Point]:
    """The point of a cell: its fastest arm of the kind, since a line has one point per x."""
    ratios = [comparisons.speedup(cell, name) for name in comparisons.of_kind(cell, kind)]
    best = max((ratio for ratio in ratios if ratio is not None), key=lambda ratio: ratio.median, default=None)
    return [Point(cell.x, best)] if best is not None else []


def _bars(scenario: Scenario, columns: list[str], factor: float = 1) -> list[Bar]:
    """A bar for each arm without repetitions, from the medians per sample. An arm that misses a part has no bar: its sum would look
    smaller."""
    bars = []
    for cell in scenario.cells:
        medians = trials.table(cell)[columns].dropna().groupby("arm", sort=False).median() * factor
        bars += [Bar(cell.name, str(name), cell.arms[name].kind, tuple(parts)) for name, *parts in medians.itertuples()
                 if cell.arms[name].kind != "repeat"]
    return bars if any(sum(bar.parts) > 0 for bar in bars) else []
