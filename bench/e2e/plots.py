"""The plots of a run, as PNG and SVG: speedup over the link, bytes on the wire and CPU by tier of each scenario, and the cost of
jobs on one data set.

Only plots with data are drawn. The same results yield the same bytes: no dates, a fixed salt for the names inside an SVG, and the
font of matplotlib as outlines, so no machine needs it. Colours are those of Okabe and Ito, which colour-blind readers can
distinguish; everything that differs in colour also differs in marker, dash or position.
"""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from . import figures, published, text
from .figures import Bar, Line
from .results import TIERS, Results, Scenario

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
GREY = "#777777"
LINES = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK)
MARKERS = "osD^vPX"
KINDS = {"plain": SKY, "peer": ORANGE, "pushed": GREEN, "auto": BLUE, "layout": PINK, "ceiling": YELLOW, "alternative": RED}
STYLE = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "figure.facecolor": "white", "savefig.facecolor": "white", "svg.fonttype": "path", "svg.hashsalt": "pushdown",
    "axes.axisbelow": True, "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "legend.frameon": False,
}
KINDS_OF_FILES = ("png", "svg")
SAVE_OPTIONS = {".png": {"dpi": 160, "metadata": {"Software": None}}, ".svg": {"metadata": {"Date": None, "Creator": None}}}
# The open link is drawn at this multiple of the fastest shaped link.
OPEN = 3


def draw(
    results: Results, folder: Path, names: Container[str] | None = None, kinds: Sequence[str] = KINDS_OF_FILES
) -> list[Path]:
    """Draws the plots that the results have data for into a folder. Returns the files. `names` limits it to these plots."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        for name, figure in _figures(results):
            if names is None or name in names:
                written += _save(figure(), folder, name, kinds)
    return written


def _figures(results: Results) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """The name of each plot, and the function that draws it."""
    for index, (label, lines) in enumerate(figures.speedups(results).items()):
        yield "speedup" + (f"-{index + 1}" if index else ""), partial(_speedup, label, lines)
    for scenario in results.scenarios:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", scenario.name)
        if bars := figures.wire(scenario):
            yield f"wire-{name}", partial(_wire, scenario.title, bars)
        if bars := figures.cpu(scenario):
            yield f"cpu-{name}", partial(_cpu, scenario.title, bars)
    if costs := {group: lines for scenario in results.scenarios for group, lines in _costs(scenario)}:
        yield "jobs", partial(_jobs, costs)


def _costs(scenario: Scenario) -> Iterator[tuple[str, dict[str, list[Line]]]]:
    """What the jobs of a scenario compute, and their costs."""
    if costs := figures.costs_of_jobs(scenario):
        yield scenario.settings.get("group") or scenario.name, costs


def _save(figure: Figure, folder: Path, name: str, kinds: Sequence[str]) -> list[Path]:
    written = [folder / f"{name}.{kind}" for kind in kinds]
    for path in written:
        figure.savefig(path, **SAVE_OPTIONS[path.suffix])
    return written


def _speedup(label: str, lines: list[Line]) -> Figure:
    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    axes = figure.add_subplot()
    known = sorted({point.x for line in lines for point in line.points if point.x is not None})
    right = known[-1] * OPEN
    groups = list(dict.fromkeys(line.group for line in lines))
    for line in lines:
        index = groups.index(line.group)
        colour, marker = LINES[index % len(LINES)], MARKERS[index % len(MARKERS)]
        places = [right if point.x is None else point.x for point in line.points]
        middle = [point.ratio.median for point in line.points]
        dash = {"auto": "-", "pushed": "--"}[line.kind]
        label_of = f"{line.group}, {'auto' if line.kind == 'auto' else 'the best fixed split'}"
        axes.plot(places, middle, dash, color=colour, linewidth=1.4, label=label_of, marker=marker, markersize=5)
        axes.errorbar(places, middle, _ranges(line), fmt="none", ecolor=colour, elinewidth=1, capsize=3)
    if label == published.X_LABEL:
        points = published.curve(known[-1])
        places = [right if x is None else x for x, _ in points]
        axes.plot(places, [ratio for _, ratio in points], ":", color=GREY, linewidth=1.2, marker=".", markersize=4,
                  label="for orientation: HAPI, AlexNet on GPUs, by its logs")
    axes.axhline(1, color=BLACK, linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = {place: f"{place:g}" for place in known}
    if label == published.X_LABEL or any(point.x is None for line in lines for point in line.points):
        ticks[right] = "open"
    _ticks(axes, ticks)
    axes.set_xlabel(label)
    axes.set_ylabel("rate to the fastest plain arm")
    axes.set_title("Speed-up over plain reading: medians, lowest and highest rounds", loc="left", fontsize=10)
    axes.grid(True)
    # Outside of the plot, where it hides no lines.
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=3.5)
    return figure


def _ranges(line: Line) -> list[list[float]]:
    """The distances of the lowest and of the highest round from the medians."""
    ratios = [point.ratio for point in line.points]
    return [[ratio.median - ratio.low for ratio in ratios], [ratio.high - ratio.median for ratio in ratios]]


def _ticks(axes: Axes, places: dict[float, str]) -> None:
    """Ticks at the cells, and plain numbers for ratios instead of powers of ten."""
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: places.get(place, "")))
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    low, high = min(low, 0.9), max(high, 1.1)
    axes.set_ylim(low, high)
    # Near 1 small steps matter; over a wide range their labels would overlap.
    fine = [0.8, 0.9, 1.1, 1.2] if high / low < 5 else []
    steps = fine + [step * decade for decade in (0.01, 0.1, 1, 10, 100) for step in (1, 1.5, 2, 3, 5, 7)]
    axes.yaxis.set_major_locator(FixedLocator(sorted(step for step in steps if low <= step <= high)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(NullLocator())


def _wire(title: str, bars: list[Bar]) -> Figure:
    figure, axes, places = _canvas(bars, f"{title}: bytes on the wire per sample, both ways")
    for bar, place in zip(bars, places):
        axes.barh(place, sum(bar.parts), color=KINDS[bar.kind], edgecolor="#444444", linewidth=0.4, height=0.8)
    _labels(axes, bars, places, text.size)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text.size(value)))
    return figure


def _cpu(title: str, bars: list[Bar]) -> Figure:
    figure, axes, places = _canvas(bars, f"{title}: CPU seconds per 1,000 samples")
    left = [0.0] * len(bars)
    for index, (tier, colour, hatch) in enumerate(zip(TIERS, (YELLOW, BLUE, ORANGE), ("", "", "///"))):
        parts = [bar.parts[index] for bar in bars]
        axes.barh(places, parts, left=left, color=colour, edgecolor="#444444", linewidth=0.4, height=0.8, label=tier, hatch=hatch)
        left = [before + part for before, part in zip(left, parts)]
    _labels(axes, bars, places, text.number)
    figure.legend(loc="outside lower center", ncols=len(TIERS), fontsize=8)
    return figure


def _jobs(costs: dict[str, dict[str, list[Line]]]) -> Figure:
    """A row for what the jobs compute, a column for each measure."""
    figure = Figure(figsize=(7.2, 0.8 + 3.0 * len(costs)), layout="constrained")
    panels = [(f"{group}: {label}", lines) for group, by_measure in costs.items() for label, lines in by_measure.items()]
    columns = max(map(len, costs.values()))
    for axes, (label, lines) in zip(figure.subplots(len(costs), columns, squeeze=False).flat, panels):
        for index, line in enumerate(lines):
            places, middle = [point.x for point in line.points], [point.ratio.median for point in line.points]
            axes.errorbar(places, middle, _ranges(line), color=LINES[index], linewidth=1.4, marker=MARKERS[index], markersize=5,
                          elinewidth=1, capsize=3, label=f"result cache: {line.group}")
        axes.axhline(1, color=BLACK, linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _ticks(axes, {point.x: f"{point.x:g}" for line in lines for point in line.points})
        axes.set_xlabel("jobs")
        axes.set_title(label, loc="left", fontsize=8)
        axes.grid(True)
    figure.suptitle("Cost of jobs on one data set, relative to one job without a cache", x=0.01, ha="left", fontsize=10)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _canvas(bars: list[Bar], title: str) -> tuple[Figure, Axes, list[float]]:
    """Bars from top to bottom, a gap and a heading before each cell."""
    places, headings, at, cell = [], {}, 0.0, None
    for bar in bars:
        if bar.cell != cell:
            cell, at = bar.cell, at + 1.2
            headings[cell] = at - 0.9
        places.append(at)
        at += 1
    figure = Figure(figsize=(7.2, 1.1 + 0.2 * at), layout="constrained")
    axes = figure.add_subplot()
    axes.set_ylim(at - 0.3, -0.2)
    axes.set_yticks(places, [bar.arm for bar in bars], fontsize=8)
    axes.tick_params(axis="y", length=0)
    for heading, place in headings.items():
        axes.annotate(heading, (0, place), (2, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                      fontsize=8, fontweight="bold", va="center")
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(True, axis="x")
    return figure, axes, places


def _labels(axes: Axes, bars: list[Bar], places: list[float], show: Callable[[float], str]) -> None:
    """The sum at the end of each bar, which makes short bars readable."""
    axes.set_xlim(0, max(sum(bar.parts) for bar in bars) * 1.15)
    for bar, place in zip(bars, places):
        axes.annotate(show(sum(bar.parts)), (sum(bar.parts), place), (3, 0), textcoords="offset points", fontsize=7, va="center")
