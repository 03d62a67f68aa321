"""Ratios of measurements, and targets for them.

A comparison is one ratio: in each round a measurement of one contender is divided by that of another. The median of the rounds is
the figure; the lowest and the highest round show how far it varies. A target is met if the median meets it.

This module needs only the standard library, as the tables of component benchmarks do.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds' ratios, the lowest and the highest of them, and the number of rounds."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Target:
    """The limits of a ratio."""

    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        limits = [("≥", self.at_least), ("≤", self.at_most)]
        return " and ".join(f"{sign} {limit:.3g}" for sign, limit in limits if limit is not None)

    def is_met(self, ratio: Ratio | None) -> bool:
        """Whether the median meets it. Without a ratio nothing is met."""
        if ratio is None:
            return False
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= ratio.median <= high


def of_rounds(ratios: Iterable[float]) -> Ratio | None:
    """The ratio of these rounds. A round without a measurement is NaN and does not count; without any other there is no ratio."""
    known = [each for each in ratios if math.isfinite(each)]
    return Ratio(statistics.median(known), min(known), max(known), len(known)) if known else None


def paired(over: Iterable[float], under: Iterable[float]) -> Ratio | None:
    """The ratio of measurements of the same rounds. A round in which one of the two is missing, 0 or NaN, does not count."""
    return of_rounds(a / b for a, b in zip(over, under) if a > 0 and b > 0)


def unpaired(over: Iterable[float], under: Iterable[float]) -> Ratio | None:
    """The ratio of two medians of rounds that did not alternate, and the most that single rounds of the two differ by."""
    over, under = ([each for each in measured if each > 0] for measured in (over, under))
    if not over or not under:
        return None
    low, high = min(over) / max(under), max(over) / min(under)
    return Ratio(statistics.median(over) / statistics.median(under), low, high, min(len(over), len(under)))
