"""The tables of component benchmarks, from the JSON that `pushdown-bench` writes (format "components-1").

A round runs each contender once, so ratios are taken round by round. A target is met if the median meets it.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import json_reader, ratios, text
from .json_reader import check

FORMAT = "components-1"


@dataclass
class Row:
    """A contender with the value of each round."""

    name: str
    rounds: list[float]


@dataclass(frozen=True)
class Target(ratios.Target):
    """One limit of a ratio."""

    def __post_init__(self) -> None:
        check((self.at_least is None) != (self.at_most is None), "expected either at_least or at_most")


@dataclass
class Comparison:
    """A ratio of two rows. It is shown in the row `row`, with its meaning `what` after it."""

    row: str
    numerator: str
    denominator: str
    what: str
    target: Target | None


@dataclass
class Table:
    """Contenders that did the same work in alternating rounds."""

    title: str
    unit: str
    rows: list[Row]
    comparisons: list[Comparison]

    def __post_init__(self) -> None:
        counts = sorted({len(row.rounds) for row in self.rows})
        check(len(counts) == 1 and counts[0] > 0, f"rows: expected the same number of rounds in each, from 1 on, found {counts}")
        named = {name for each in self.comparisons for name in (each.row, each.numerator, each.denominator)}
        missing = sorted(named - {row.name for row in self.rows})
        check(missing == [], f"comparisons: expected names of rows, found {', '.join(missing)}")


@dataclass
class ComponentResults:
    """A run of `pushdown-bench`: when and where it ended, what computed the values, and the tables."""

    unix_seconds: int
    machine: dict[str, Any]
    engine: str
    tables: list[Table]


def load(path: Path) -> ComponentResults:
    """Reads the results of a file."""
    return json_reader.read(ComponentResults, path, FORMAT)


def markdown(results: ComponentResults) -> str:
    """All tables."""
    return "\n\n".join("\n".join(_table(table)) for table in results.tables)


def quartiles(values: Sequence[float]) -> list[float]:
    """The lower quartile, the median and the upper quartile, interpolated linearly."""
    return statistics.quantiles(values, method="inclusive") if len(values) > 1 else [*values] * 3


def _table(table: Table) -> list[str]:
    rounds = {row.name: row.rounds for row in table.rows}
    columns = ["", "median", "quartiles", "ratio (lowest to highest)"]
    rows = []
    for row in table.rows:
        low, median, high = map(text.number, quartiles(row.rounds))
        shown = [_ratio(each, rounds) for each in table.comparisons if each.row == row.name]
        rows.append([row.name, median, f"{low} to {high}", "<br>".join(shown)])
    return [f"**{table.title}**, {table.unit}", "", *text.table(columns, rows)]


def _ratio(comparison: Comparison, rounds: dict[str, list[float]]) -> str:
    ratio = ratios.paired(rounds[comparison.numerator], rounds[comparison.denominator])
    shown = f"{text.ratio(ratio)} {comparison.what}"
    if comparison.target is None:
        return shown
    return f"{shown}, target {comparison.target}: {'met' if comparison.target.is_met(ratio) else '**missed**'}"
