"""Ratios of rounds, and targets."""

import statistics

import pytest

from .. import text
from ..ratios import Ratio, Target, of_rounds, paired, unpaired


def test_a_ratio_is_the_median_of_the_rounds_with_their_range():
    rounds = [0.9, 1.0, 1.2, 1.3, 1.1]
    assert of_rounds(rounds) == Ratio(statistics.median(rounds), min(rounds), max(rounds), 5) == of_rounds(rounds[::-1])
    for few in ([1.5], [0.5, 2.0]):
        assert of_rounds(few) == Ratio(statistics.median(few), min(few), max(few), len(few))
    assert of_rounds([]) is None


def test_ratios_are_taken_round_by_round():
    # The machine was three times slower in the second round; the ratio is the same.
    found = paired([1.0, 3.0, 1.1], [0.5, 1.5, 0.55])
    assert (found.median, found.low, found.high) == pytest.approx((2, 2, 2))


def test_a_round_without_a_measurement_yields_no_ratio():
    assert paired([1.0, 0.0, float("nan"), 3.0], [1.0, 1.0, 1.0, 0.0]) == Ratio(1, 1, 1, 1)
    assert paired([0.0], [1.0]) is None and of_rounds([float("nan"), float("inf")]) is None
    # A 0 is a measurement if the ratio itself was measured.
    assert of_rounds([0.0, float("nan")]) == Ratio(0, 0, 0, 1)


def test_rounds_that_did_not_alternate_have_the_ratio_of_their_medians():
    a, b = [2.0, 2.2, 2.1, 1.9, 2.0], [1.0, 1.1, 0.9, 1.0, 1.0]
    found = unpaired(a, b)
    assert found.median == pytest.approx(2.0)
    assert 1.7 < found.low < found.median < found.high < 2.5
    few = unpaired([2.0, 4.0], [1.0, 2.0])
    assert (few.low, few.high, few.rounds) == (1.0, 4.0, 2)
    assert unpaired([], [1.0]) is None
    assert unpaired([1.0], [0.0]) is None


@pytest.mark.parametrize(
    ("rounds", "is_met"), [([0.97] * 3, True), ([1.0, 1.1, 1.2], True), ([0.9, 0.98, 2.0], True), ([0.9, 0.96, 2.0], False)]
)
def test_the_median_decides_whether_a_target_is_met(rounds: list[float], is_met: bool):
    assert Target(at_least=0.97).is_met(of_rounds(rounds)) == is_met


def test_a_target_has_a_lower_limit_an_upper_limit_or_both():
    both = Target(at_least=0.85, at_most=1.15)
    assert [both.is_met(Ratio(median, 0, 9, 3)) for median in (0.84, 0.85, 1.15, 1.16)] == [False, True, True, False]
    assert str(both) == "≥ 0.85 and ≤ 1.15" and str(Target(at_most=1.2)) == "≤ 1.2"
    assert not both.is_met(None)


def test_a_ratio_is_shown_with_its_range_and_its_rounds():
    assert text.ratio_over_rounds(Ratio(3.1, 2.9, 3.345, 5)) == "3.10 (2.90 to 3.35 over 5 rounds)"
    assert text.ratio(Ratio(0.9696, 0.5, 21.04, 3)) == "0.970 (0.500 to 21.0)"
    assert text.ratio_over_rounds(Ratio(1, 1, 0.9996, 1)) == "1.00 (1.00 to 1.00 over 1 round)"
    assert text.ratio(None) == text.ratio_over_rounds(None) == "-"
