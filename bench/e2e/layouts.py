"""What each layout in the store costs beside loose objects: rates of `auto`, and what the trainer's CPU delivers."""

from collections.abc import Sequence

from . import measures, stats, text, trainer_rules
from .intervals import paired, unpaired
from .results import Arm, Cell
from .scenario import LAYOUTS

COLUMNS = [
    "cell", "`auto`: samples/s", "rate to `plain`", "to `pushed`", "to loose objects", "samples per CPU s of the trainer: `auto`",
    "`plain`", "loader of others", "`auto` to that loader", "`plain` to that loader",
]
# Arms that the columns name.
PLAIN, PUSHED, AUTO = "plain", "pushed", "auto"


def section(cells: Sequence[Cell]) -> list[str]:
    """A table after an empty line; empty without cells of layouts."""
    rows = [_row(cell, _loose(cell, cells)) for cell in cells if cell.group in LAYOUTS.values() and AUTO in cell.arms]
    return ["", *text.table(COLUMNS, rows)] if rows else []


def _loose(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """The cell of loose objects over the same link, for other layouts."""
    is_loose = lambda each: each.group == LAYOUTS["objects"] and AUTO in each.arms and each is not cell
    same_link = lambda each: each.requested_bits_per_second == cell.requested_bits_per_second
    return next((each for each in cells if is_loose(each) and same_link(each)), None)


def _row(cell: Cell, loose: Cell | None) -> list[str]:
    auto = cell.arms[AUTO]
    other = next((name for name in trainer_rules.DOCUMENTED if name in cell.arms), None)
    took = measures.median_of(auto, measures.seconds_per_sample)
    to_loose = unpaired(_seconds(loose.arms[AUTO]), _seconds(auto)) if loose else None
    return [
        cell.name,
        text.number(1 / took if took else None),
        _rate(cell, PLAIN) + _star(cell),
        _rate(cell, PUSHED) + _star(cell),
        text.ratio(to_loose),
        _per_cpu_second(auto),
        _per_cpu_second(cell.arms.get(PLAIN)),
        text.NONE if other is None else f"`{other}` {_per_cpu_second(cell.arms[other])}",
        _to_other(cell, AUTO, other),
        _to_other(cell, PLAIN, other),
    ]


def _seconds(arm: Arm) -> list[float]:
    return measures.measurements(arm, measures.seconds_per_sample)


def _star(cell: Cell) -> str:
    """The mark of a cell whose times decide nothing."""
    return "*" if stats.is_noisy(cell) else ""


def _rate(cell: Cell, name: str) -> str:
    """The rate of `auto` to another arm."""
    return text.ratio(paired(_seconds(cell.arms[name]), _seconds(cell.arms[AUTO])) if name in cell.arms else None)


def _per_cpu_second(arm: Arm | None) -> str:
    """Samples per CPU second of the trainer."""
    used = measures.median_of(arm, measures.host_cpu_seconds_per_sample) if arm else None
    return text.number(1 / used if used else None)


def _to_other(cell: Cell, name: str, other: str | None) -> str:
    """Samples per CPU second of the trainer, relative to the loader of others."""
    if other is None or name not in cell.arms:
        return text.NONE
    used = [measures.measurements(cell.arms[each], measures.host_cpu_seconds_per_sample) for each in (other, name)]
    return text.ratio(paired(*used))
