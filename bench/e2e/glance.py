"""The photos of a run in one table and its tables in another, short enough for the README at the repository's root.

Both are of medians and verdicts that the report has further down, with all that is to be known of them.
"""

import statistics
from collections.abc import Sequence

from . import stats, text
from .results import Arm, Cell, Results, Turn, Verdict

PHOTOS = ["cell", "fastest plain", "pushed", "`auto`", "rate of `auto` to plain", "to the best fixed way", "to the bound"]
# The rules that the last columns are of.
RATES = ("plain", "best", "bound")
TABLES = ("CPU", "seconds", "on the wire")
SIDES = ("gateway", "host")
ABOUT_PHOTOS = f"""Photos: seconds of an epoch, the median of the rounds. Of `auto` the later epochs count; where a cell has no
`auto`, `auto-first` stands in its place. Beside them are its rates, with their intervals; what is furthest below what is asked,
or least above it, comes first. `*` is where A/A is off by more than {text.percent(stats.NOISE)}, so that the clock decides nothing. A
cell without A/A has no star, however noisy it is."""
ABOUT_TABLES = """Tables: medians of the rounds, beside the seconds the least and the greatest of them. CPU is that of gateway and
reader, without the store's; bytes on the wire are those of both ways. Each cell has three columns, its name above the first."""


def section(results: Results) -> list[str]:
    """The section with an empty line before it, or nothing where no cell is of such a kind."""
    read, scanned = _cells(results, "read"), _cells(results, "table")
    lines = ["", ABOUT_PHOTOS, "", *text.table(PHOTOS, photos(read))] if read else []
    if scanned:
        # Each column with the name of its cell would be too wide for a page.
        columns = [column for cell in scanned for column in (f"{cell.name}: {TABLES[0]}", *TABLES[1:])]
        lines += ["", ABOUT_TABLES, "", *text.table(["arm", *columns], tables(scanned))]
    return ["", "## At a glance", *lines] if lines else []


def photos(cells: Sequence[Cell]) -> list[list[str]]:
    """A row for each cell, first the one whose rates are worst."""
    rated = [(cell, _rates(cell)) for cell in cells]
    return [_photos(cell, rates) for cell, rates in sorted(rated, key=lambda each: _margin(each[1]))]


def tables(cells: Sequence[Cell]) -> list[list[str]]:
    """A row for each arm but the baseline's second run, with columns for each cell."""
    names = dict.fromkeys(name for cell in cells for name, arm in cell.arms.items() if arm.kind != "again")
    return [[f"`{name}`", *(part for cell in cells for part in _table(cell.arms.get(name)))] for name in names]


def _cells(results: Results, kind: str) -> list[Cell]:
    return [cell for scenario in results.scenarios if scenario.settings.get("kind") == kind for cell in scenario.cells]


def _photos(cell: Cell, rates: dict[str, Verdict]) -> list[str]:
    arms = [cell.arms.get(name) for name in (stats.fastest_plain(cell), "pushed", _planned(cell))]
    return [cell.name, *map(_seconds, arms), *(_rate(rates.get(rule)) for rule in RATES)]


def _table(arm: Arm | None) -> list[str]:
    if arm is None:
        return [text.NONE] * len(TABLES)
    return [text.seconds(stats.middle(arm, _cpu)), _seconds(arm, spread=True), text.size(stats.middle(arm, _wire))]


def _planned(cell: Cell) -> str | None:
    """The arm that a plan was made for."""
    found = stats.of_kind(cell, "auto")
    return "auto" if "auto" in found else next(iter(found), None)


def _rates(cell: Cell) -> dict[str, Verdict]:
    """What the clock says of the planned arm, by the rule."""
    timed = [verdict for verdict in stats.verdicts(cell) if verdict.rule in RATES and verdict.measure == "seconds"]
    return {verdict.rule: verdict for verdict in timed if verdict.arm == _planned(cell)}


def _margin(rates: dict[str, Verdict]) -> float:
    """The least of the rates, as a part of what is asked: none of it where samples failed."""
    found = [verdict for verdict in rates.values() if verdict.median is not None]
    return min((0.0 if _failed(verdict) else verdict.median / verdict.asked for verdict in found), default=float("inf"))


def _rate(verdict: Verdict | None) -> str:
    """A rate, with a star where it is void by A/A. What is void for samples that failed has no figure."""
    if verdict is None or verdict.median is None:
        return text.NONE
    if _failed(verdict):
        return verdict.outcome
    return text.ratio(stats.interval_of(verdict)) + "*" * (verdict.outcome == "void")


def _failed(verdict: Verdict) -> bool:
    return verdict.outcome == "void" and verdict.note != stats.NOISY


def _seconds(arm: Arm | None, spread: bool = False) -> str:
    """The seconds of an epoch, and how many samples failed: what is not delivered takes no time."""
    every = list(filter(None, map(_epoch, arm.turns))) if arm else []
    if not every:
        return text.NONE
    around = f" ({text.seconds(min(every))} to {text.seconds(max(every))})" if spread and len(every) > 1 else ""
    failed = f", {stats.failed(arm)} failed" if stats.failed(arm) else ""
    return text.seconds(statistics.median(every)) + around + failed


def _epoch(turn: Turn) -> float:
    return stats.seconds(turn) * turn.samples


def _cpu(turn: Turn) -> float | None:
    """CPU seconds of an epoch, of gateway and reader together or not at all."""
    return sum(turn.cpu[side] for side in SIDES) / len(turn.seconds) if set(SIDES) <= set(turn.cpu) else None


def _wire(turn: Turn) -> float | None:
    """Bytes of an epoch, both ways."""
    return stats.wire(turn) * turn.samples or None
