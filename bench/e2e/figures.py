"""What the plots show, as numbers: made from results, without anything that draws."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from . import stats
from .results import TIERS, Cell, Results, Scenario, Turn
from .stats import Interval

WAYS = ("auto", "pushed")


@dataclass(frozen=True)
class Point:
    """A cell of a line; without x it is the open link. Where the clock decides nothing, `noisy`."""

    x: float | None
    ratio: Interval
    noisy: bool


@dataclass
class Line:
    """How many times as fast as the fastest plain arm a kind of arm is, over the cells of a group."""

    group: str
    kind: str
    points: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Bar:
    """An arm of a cell: parts that are stacked."""

    cell: str
    arm: str
    kind: str
    parts: tuple[float, ...]


def speedups(results: Results) -> dict[str, list[Line]]:
    """The lines of each plot, by what their x is. A group that has no x at all has none; one may be of several scenarios."""
    found: dict[str, dict[tuple[str, str], Line]] = {}
    every = [cell for scenario in results.scenarios for cell in scenario.cells]
    for group in dict.fromkeys(cell.group for cell in every):
        cells = [cell for cell in every if cell.group == group]
        label = next((cell.x_label for cell in cells if _known(cell)), None)
        for kind in WAYS if label is not None else ():
            points = [point for cell in cells if _known(cell) or _open(cell) for point in _points(cell, kind)]
            if any(point.x is not None for point in points):
                line = found.setdefault(label, {}).setdefault((group, kind), Line(group, kind))
                line.points += points
    for lines in found.values():
        for line in lines.values():
            line.points.sort(key=lambda point: float("inf") if point.x is None else point.x)
    return {label: list(lines.values()) for label, lines in found.items()}


def wire(scenario: Scenario) -> list[Bar]:
    """Bytes on the wire per sample, up and down."""
    return _bars(scenario, [lambda turn: turn.wire_up, lambda turn: turn.wire_down])


def cpu(scenario: Scenario) -> list[Bar]:
    """CPU seconds per 1,000 samples of each tier."""
    thousand = lambda seconds: None if seconds is None else 1000 * seconds
    return _bars(scenario, [lambda turn, tier=tier: thousand(turn.cpu.get(tier)) for tier in TIERS])


def _known(cell: Cell) -> bool:
    # The axis is logarithmic.
    return cell.x is not None and cell.x > 0


def _open(cell: Cell) -> bool:
    return cell.x is None and cell.asked_link_bits is None


def _points(cell: Cell, kind: str) -> list[Point]:
    """The point of a cell: its fastest arm of the kind, since a line has one point at an x."""
    ratios = [stats.speedup(cell, name) for name in stats.of_kind(cell, kind)]
    best = max((ratio for ratio in ratios if ratio is not None), key=lambda ratio: ratio.median, default=None)
    return [Point(cell.x, best, stats.noisy(cell))] if best is not None else []


def _bars(scenario: Scenario, parts: list[Callable[[Turn], float | None]]) -> list[Bar]:
    """A bar for each arm, but for the baseline's second run, by the medians per sample of its turns. One that cannot tell all
    parts has none: its sum would look like less."""
    found = []
    for cell in scenario.cells:
        for name, arm in cell.arms.items():
            turns = [turn for turn in arm.turns if turn.samples and all(part(turn) is not None for part in parts)]
            if turns and arm.kind != "again":
                values = tuple(statistics.median(part(turn) / stats.read(turn) for turn in turns) for part in parts)
                found.append(Bar(cell.name, name, arm.kind, values))
    return found if any(sum(bar.parts) > 0 for bar in found) else []
