"""The overview of a run: its photos in one table and its tables in another.

Both show medians and verdicts that the report repeats with all details.
"""

import statistics
from collections.abc import Sequence

from . import measures, stats, text
from .results import Arm, Cell, Results, Trial, Verdict

PHOTOS = ["cell", "fastest plain", "pushed", "`auto`", "rate of `auto` to plain", "to the best fixed split", "to the upper bound"]
# The rules of the last columns.
RATES = ("plain", "best", "bound")
TABLES = ("CPU", "seconds", "on the wire")
SIDES = ("gateway", "host")
ABOUT_PHOTOS = f"""Photos: seconds of an epoch, the median of the rounds; for `auto` the later epochs. In a cell without
`auto` the column shows `auto-first`. The last columns are the rates of `auto` with their intervals. The cell with the
smallest margin to its requirements comes first. `*` marks an A/A test that is off by more than
{text.percent(stats.MAX_NOISE)}, so times decide nothing; a cell without A/A has no mark."""
ABOUT_TABLES = """Tables: medians of the rounds; in brackets the lowest and the highest. CPU is gateway plus reader, without the
store; bytes on the wire count both directions. Each cell has three columns; the first one carries its name."""


def section(results: Results) -> list[str]:
    """The section after an empty line; empty if no cell is of these kinds."""
    read, scanned = _cells(results, "read"), _cells(results, "table")
    lines = ["", ABOUT_PHOTOS, "", *text.table(PHOTOS, photos(read))] if read else []
    if scanned:
        lines += ["", ABOUT_TABLES, "", *text.table(["arm", *table_columns(scanned)], tables(scanned))]
    return ["", "## At a glance", *lines] if lines else []


def photos(cells: Sequence[Cell]) -> list[list[str]]:
    """A row for each cell, the one with the smallest margin first."""
    rated = [(cell, _rates(cell)) for cell in cells]
    return [_photos_row(cell, rates) for cell, rates in sorted(rated, key=lambda each: _margin(each[1]))]


def table_columns(cells: Sequence[Cell]) -> list[str]:
    """Three columns per cell. Only the first has the cell's name: three names would be too wide."""
    return [column for cell in cells for column in (f"{cell.name}: {TABLES[0]}", *TABLES[1:])]


def tables(cells: Sequence[Cell]) -> list[list[str]]:
    """A row for each arm without A/A repetitions, with three columns for each cell."""
    names = dict.fromkeys(name for cell in cells for name, arm in cell.arms.items() if arm.kind != "repeat")
    return [[f"`{name}`", *(part for cell in cells for part in _table_columns(cell.arms.get(name)))] for name in names]


def _cells(results: Results, kind: str) -> list[Cell]:
    return [cell for scenario in results.scenarios if scenario.settings.get("kind") == kind for cell in scenario.cells]


def _photos_row(cell: Cell, rates: dict[str, Verdict]) -> list[str]:
    arms = [cell.arms.get(name) for name in (stats.fastest_plain(cell), "pushed", _planned_arm(cell))]
    return [cell.name, *map(_seconds, arms), *(_rate(rates.get(rule)) for rule in RATES)]


def _table_columns(arm: Arm | None) -> list[str]:
    if arm is None:
        return [text.NONE] * len(TABLES)
    return [
        text.seconds(measures.median_of(arm, _cpu_seconds)),
        _seconds(arm, spread=True),
        text.size(measures.median_of(arm, _wire_bytes)),
    ]


def _planned_arm(cell: Cell) -> str | None:
    """The arm with a planner."""
    planned = stats.arms_of_kind(cell, "auto")
    return "auto" if "auto" in planned else next(iter(planned), None)


def _rates(cell: Cell) -> dict[str, Verdict]:
    """The verdicts by the clock on the planned arm, by rule."""
    timed = [verdict for verdict in stats.verdicts(cell) if verdict.rule in RATES and verdict.measure == "seconds"]
    return {verdict.rule: verdict for verdict in timed if verdict.arm == _planned_arm(cell)}


def _margin(rates: dict[str, Verdict]) -> float:
    """The lowest rate as a multiple of its requirement; 0 if samples failed."""
    margin = lambda verdict: 0.0 if _has_failures(verdict) else verdict.median / verdict.required
    return min((margin(verdict) for verdict in rates.values() if verdict.median is not None), default=float("inf"))


def _rate(verdict: Verdict | None) -> str:
    """A rate, marked if A/A noise makes it void. With failed samples there is no figure."""
    if verdict is None or verdict.median is None:
        return text.NONE
    if _has_failures(verdict):
        return verdict.outcome
    return text.ratio(stats.interval_of(verdict)) + "*" * (verdict.outcome == "void")


def _has_failures(verdict: Verdict) -> bool:
    return verdict.outcome == "void" and verdict.note != stats.NOISE_NOTE


def _seconds(arm: Arm | None, spread: bool = False) -> str:
    """The seconds of an epoch, and the number of failed samples: samples that are not delivered take no time."""
    every = list(filter(None, map(_epoch_seconds, arm.trials))) if arm else []
    if not every:
        return text.NONE
    shown_spread = f" ({text.seconds(min(every))} to {text.seconds(max(every))})" if spread and len(every) > 1 else ""
    failed = f", {stats.failed_samples(arm)} failed" if stats.failed_samples(arm) else ""
    return text.seconds(statistics.median(every)) + shown_spread + failed


def _epoch_seconds(trial: Trial) -> float:
    return measures.seconds_per_sample(trial) * trial.samples


def _cpu_seconds(trial: Trial) -> float | None:
    """CPU seconds of an epoch, gateway plus reader; None if one is missing."""
    if not set(SIDES) <= set(trial.cpu_seconds):
        return None
    return sum(trial.cpu_seconds[side] for side in SIDES) / len(trial.epoch_seconds)


def _wire_bytes(trial: Trial) -> float | None:
    """Bytes of an epoch in both directions."""
    return measures.wire_bytes_per_sample(trial) * trial.samples or None
