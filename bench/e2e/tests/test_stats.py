"""Ratios, intervals, and what verdict follows from them."""

import random
import statistics

import pytest

from .. import stats
from ..results import TIERS, Arm, Cell, Verdict
from .build import arm, cell, turn


def judged(found: Cell, rule: str, measure: str = "seconds") -> Verdict:
    (verdict,) = [each for each in stats.verdicts(found) if (each.rule, each.measure) == (rule, measure)]
    return verdict


def test_the_interval_holds_the_median_and_narrows_with_rounds():
    draw = random.Random(1)
    few, many = ([draw.gauss(1, 0.1) for _ in range(rounds)] for rounds in (5, 100))
    for ratios in (few, many):
        found = stats.interval(ratios)
        assert min(ratios) <= found.low <= found.median == statistics.median(ratios) <= found.high <= max(ratios)
    assert stats.interval(many).high - stats.interval(many).low < stats.interval(few).high - stats.interval(few).low


def test_the_interval_of_many_rounds_is_that_of_the_median_in_theory():
    ratios = [draw.gauss(1, 0.1) for draw in [random.Random(3)] for _ in range(400)]
    found = stats.interval(ratios)
    # The median of n normal values has the standard deviation 1.2533 s / sqrt(n), and 95 % lie within 1.96 of those.
    width = 2 * 1.96 * 1.2533 * 0.1 / 400**0.5
    assert found.high - found.low == pytest.approx(width, rel=0.35)
    assert found.low < 1 < found.high


def test_the_same_rounds_give_the_same_interval():
    ratios = [0.9, 1.0, 1.2, 1.3, 1.1]
    assert stats.interval(ratios) == stats.interval(ratios)


@pytest.mark.parametrize("ratios", [[1.5], [0.5, 2.0]])
def test_fewer_than_three_rounds_give_the_least_and_the_greatest_and_say_so(ratios):
    found = stats.interval(ratios)
    assert (found.low, found.high, found.rounds, found.drawn) == (min(ratios), max(ratios), len(ratios), False)
    verdict = judged(cell(plain=ratios, auto=[1.0] * len(ratios)), "plain")
    assert f"{len(ratios)} round" in verdict.note
    for level in (1.0, 1.2):
        assert judged(cell(plain=[level] * len(ratios), again=[1.0] * len(ratios)), "again").outcome == "undecided"
    assert stats.interval([1.0, 1.0, 1.0]).drawn


def test_fewer_than_six_rounds_are_called_what_they_are_with_how_sure_they_make():
    """The bootstrap of so few is their range, whatever they are."""
    rounds = [0.9, 1.1, 1.3, 0.8, 1.2, 1.0, 1.4]
    for few, sure in ((3, "75"), (4, "87.5"), (5, "93.8")):
        found = stats.interval(rounds[:few])
        assert (found.low, found.high) == (min(rounds[:few]), max(rounds[:few]))
        calm = judged(cell(plain=[1.0] * few, again=[1.0] * few, auto=[1.0] * few), "plain")
        assert (calm.outcome, calm.note) == ("pass", f"least to greatest of {few} rounds, {sure} % sure")
    assert stats.interval(rounds[:6]).low > min(rounds[:6])
    assert judged(cell(plain=[1.0] * 6, again=[1.0] * 6, auto=[1.0] * 6), "plain").note == ""


def test_a_cell_without_an_a_a_arm_says_that_nothing_tells_how_calm_it_was():
    arms = {"plain": [1.0] * 6, "pushed": [1.0] * 6, "auto": [0.5] * 6}
    lone = cell(x=0.1, bound=100, **arms)
    notes = {each.rule: (each.outcome, each.note) for each in stats.verdicts(lone)}
    assert notes == {rule: ("pass", stats.ALONE) for rule in ("plain", "best", "bound")} | {"bytes": ("pass", "")}
    assert all(each.note == "" for each in stats.verdicts(cell(x=0.1, bound=100, again=[1.0] * 6, **arms)))


def test_ratios_are_taken_round_by_round():
    # The machine was three times slower in the second round: side by side nothing is different.
    found = cell(plain=[1.0, 3.0, 1.1], auto=[0.5, 1.5, 0.55])
    verdict = judged(found, "plain")
    assert (verdict.median, verdict.low, verdict.high) == pytest.approx((2, 2, 2))


def test_later_epochs_count_and_the_only_one_where_there_is_no_other():
    assert stats.seconds(turn(9.0, 2.0, 4.0, 3.0)) == pytest.approx(0.03)
    assert stats.seconds(turn(9.0)) == pytest.approx(0.09)


def test_bytes_and_cpu_are_those_of_all_epochs():
    assert stats.wire(turn(9.0, 2.0, wire=700)) == pytest.approx(700)
    assert stats.cpu(turn(9.0, 2.0, cpu=4.0)) == pytest.approx(4 / 200)


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_that_was_not_measured_is_not_one_that_takes_nothing(tier):
    elsewhere = turn(1.0)
    del elsewhere.cpu[tier]
    assert stats.cpu(elsewhere) == 0
    untold = turn(1.0)
    untold.wire_up = None
    assert stats.wire(untold) == 0


def test_where_store_and_gateway_are_elsewhere_nothing_is_said_of_cpu():
    """What the host takes alone would speak for whatever is pushed."""
    costs = {"plain": 9.0, "again": 9.0, "pyarrow": 8.0, "auto": 1.0}
    found = cell(**{name: arm(name, [1.1 if name == "again" else 1.0, 1.0, 1.0], cpu=each) for name, each in costs.items()})
    assert stats.noisy(found) and judged(found, "rival-cpu", "cpu").outcome == "pass"
    for each in found.arms.values():
        for told in each.turns:
            told.cpu = {"host": told.cpu["host"]}
    assert judged(found, "rival-cpu", "cpu").outcome == "void"
    assert judged(found, "plain", "cpu").median is None
    assert stats.ahead(found, "cpu") == {}


@pytest.mark.parametrize(
    ("auto", "outcome"), [([1.0, 1.0, 1.0], "pass"), ([1.03] * 3, "pass"), ([1.1] * 3, "fail"), ([1.0, 1.1, 1.2], "undecided")]
)
def test_a_verdict_is_that_of_the_whole_interval(auto, outcome):
    verdict = judged(cell(plain=[1.0, 1.0, 1.0], auto=auto), "plain")
    assert (verdict.outcome, verdict.asked) == (outcome, 0.97)


def test_exactly_what_is_asked_is_a_pass():
    assert judged(cell(plain=[0.97] * 3, auto=[1.0] * 3), "plain").outcome == "pass"


def test_the_fastest_plain_arm_may_be_a_peer_and_is_no_layout():
    found = cell(plain=[2.0] * 3, loader=[1.0] * 3, resized=[0.1] * 3, pushed=[0.1] * 3, auto=[1.2] * 3)
    assert stats.fastest_plain(found) == "loader"
    verdict = judged(found, "plain")
    assert (verdict.against, verdict.outcome) == ("loader", "fail")


def test_the_first_epoch_is_held_against_that_of_the_fastest_plain_arm_and_decides_nothing():
    found = cell(plain=[2.0] * 3, loader=[1.0] * 3, auto=Arm("auto", "", [turn(2.0, 0.5) for _ in range(3)]))
    first = judged(found, "first")
    assert (first.against, first.median, first.outcome) == ("loader", pytest.approx(0.5), "given")
    assert judged(found, "plain").median == pytest.approx(2)
    noisy = cell(again=[1.0, 3.0, 2.0], plain=[1.0] * 3, auto=found.arms["auto"])
    assert judged(noisy, "first").outcome == "given" and stats.NOISY in judged(noisy, "first").note
    lossy = cell(plain=[1.0] * 3, auto=Arm("auto", "", [turn(2.0, 0.5, errors=1) for _ in range(3)]))
    assert judged(lossy, "first").outcome == "void"


def test_an_only_epoch_is_no_first_one():
    assert "first" not in {each.rule for each in stats.verdicts(cell(plain=[1.0] * 3, auto=[1.0] * 3))}


def test_a_peer_that_failed_samples_is_not_the_fastest():
    assert stats.fastest_plain(cell(plain=[2.0] * 3, loader=arm("loader", [1.0] * 3, errors=1))) == "plain"


def test_the_better_fixed_arm_is_that_of_each_round_and_no_peer():
    found = cell(plain=[1.0, 4.0, 1.0], pushed=[4.0, 1.0, 4.0], loader=[0.1] * 3, auto=[1.0] * 3)
    verdict = judged(found, "best")
    assert (verdict.low, verdict.high, verdict.outcome, verdict.asked) == (1, 1, "pass", 0.95)


@pytest.mark.parametrize(("wire", "outcome"), [(900, "pass"), (1000, "pass"), (1001, "fail")])
def test_no_more_bytes_than_the_baseline(wire, outcome):
    found = cell(plain=[1.0] * 3, loader=arm("loader", [1.0] * 3, wire=1), auto=arm("auto", [1.0] * 3, wire=wire))
    verdict = judged(found, "bytes", "wire")
    assert (verdict.against, verdict.outcome) == ("plain", outcome)


def test_the_bound_is_asked_for_on_thin_links_only():
    # 100 samples in 1.1 s are 91 in a second.
    arms = {"plain": [9.0] * 3, "auto": [1.1] * 3}
    assert judged(cell(x=0.3, bound=100, **arms), "bound").outcome == "pass"
    assert judged(cell(x=0.1, bound=120, **arms), "bound").outcome == "fail"
    for found in (cell(x=1, bound=100, **arms), cell(x=None, bound=100, **arms), cell(x=0.3, **arms)):
        assert [each for each in stats.verdicts(found) if each.rule == "bound"] == []


@pytest.mark.parametrize(("again", "outcome"), [([1.0, 1.01, 0.99], "pass"), ([1.04] * 3, "fail")])
def test_the_baseline_against_itself_is_a_tie_unless_its_whole_interval_is_far_from_one(again, outcome):
    found = cell(plain=[1.0] * 3, again=again)
    assert judged(found, "again").outcome == outcome
    assert not stats.noisy(found)


def test_where_the_same_thing_twice_is_far_from_a_tie_the_clock_decides_nothing():
    found = cell(plain=[1.0] * 3, again=[1.2, 1.21, 1.22], auto=[1.5] * 3)
    assert judged(found, "again").outcome == "fail", "a difference that is proved, and cannot be"
    assert judged(found, "plain").outcome == "void"


def test_an_arm_that_is_run_once_more_by_its_name_is_held_against_itself():
    found = cell(plain=[9.0, 3.0, 6.0], pushed=[1.0] * 3, **{"again:pushed": [1.01, 1.0, 1.0]}, auto=[1.0] * 3)
    verdict = judged(found, "again")
    assert (verdict.arm, verdict.against, verdict.outcome) == ("again:pushed", "pushed", "pass")
    assert not stats.noisy(found) and judged(found, "best").outcome == "pass"
    found.arms["pushed"].turns[1].errors = 1
    assert judged(found, "again").note.startswith("1 samples failed")


def test_a_noisy_baseline_is_undecided_whatever_side_it_lies_on():
    """Of three rounds a quarter lie on one side by chance."""
    for again in ([1.1, 1.2, 1.3], [0.9, 0.95, 1.0], [1.0, 1.06, 1.0]):
        found = cell(plain=[1.0] * 3, again=again)
        assert stats.noisy(found)
        assert judged(found, "again").outcome == "undecided"
        assert stats.NOISY in judged(found, "again").note


def test_where_the_baseline_differs_from_itself_the_clock_decides_nothing_and_cpu_is_given():
    arms = {"plain": arm("plain", [1.0] * 3, cpu=1.0), "pushed": arm("pushed", [1.0] * 3, cpu=0.8)}
    found = cell(x=0.1, bound=10, again=[1.0, 1.06, 1.0], auto=arm("auto", [0.1] * 3, cpu=0.9), **arms)
    assert stats.noisy(found)
    for rule in ("plain", "best", "bound"):
        assert judged(found, rule).outcome == "void"
    assert judged(found, "plain", "cpu").outcome == "given"
    assert judged(found, "best", "cpu").median == pytest.approx(0.8 / 0.9)
    assert judged(found, "best", "cpu").outcome == "given"
    assert judged(found, "bytes", "wire").outcome == "pass"


def test_a_quiet_cell_has_no_verdict_on_cpu():
    found = stats.verdicts(cell(plain=[1.0] * 3, again=[1.0, 1.02, 1.0], auto=[1.0] * 3))
    assert [each.measure for each in found] == ["seconds", "seconds", "wire", "seconds"]


def test_where_nothing_is_read_plainly_no_rule_speaks_of_it():
    found = cell(plain=[1.0] * 3, pushed=[1.0] * 3, auto=[1.0] * 3)
    del found.arms["plain"]
    found.baseline = "pushed"
    assert [each.rule for each in stats.verdicts(found)] == ["best"]


def test_an_arm_that_failed_samples_passes_nothing():
    found = cell(plain=[1.0] * 3, again=[1.0] * 3, auto=arm("auto", [0.1] * 3, errors=2))
    outcomes = {each.rule: (each.outcome, each.note) for each in stats.verdicts(found)}
    assert outcomes["plain"] == outcomes["best"] == outcomes["bytes"] == ("void", "6 samples failed")
    assert stats.speedup(found, "auto") is None


def test_what_cannot_be_measured_is_void_and_has_no_ratio():
    found = cell(plain=arm("plain", [1.0] * 3, errors=1), auto=[1.0] * 3)
    for verdict in stats.verdicts(found):
        assert (verdict.outcome, verdict.median, verdict.rounds) == ("void", None, 0)
    empty = cell(plain=arm("plain", [1.0], samples=0), auto=[1.0])
    assert {each.outcome for each in stats.verdicts(empty)} == {"void"}


def test_arms_that_are_faster_than_ours_are_known_whatever_the_verdict():
    found = cell(plain=[0.99] * 3, loader=[1.0] * 3, resized=[0.5] * 3, pushed=[0.9, 1.2, 0.9], auto=[1.0] * 3)
    assert list(stats.ahead(found, "seconds")) == ["plain", "resized"]
    assert judged(found, "plain").outcome == "pass"
    assert list(stats.ahead(cell(plain=[0.5] * 3, pushed=[1.0] * 3), "seconds")) == ["plain"]


def test_arms_that_are_sparer_with_cpu_or_sooner_with_the_first_batch_are_known_too():
    sparing, soon = arm("pushed", [2.0] * 3, cpu=0.5), arm("loader", [2.0] * 3)
    for each in soon.turns:
        each.first_batch_seconds = 0.05
    found = cell(plain=[2.0] * 3, pushed=sparing, loader=soon, auto=[1.0] * 3)
    assert stats.ahead(found, "seconds") == {}
    assert {name: each.median for name, each in stats.ahead(found, "cpu").items()} == {"pushed": pytest.approx(2)}
    assert {name: each.median for name, each in stats.ahead(found, "first batch").items()} == {"loader": pytest.approx(2)}
    for each in found.arms["auto"].turns:
        each.first_batch_seconds = None
    assert stats.ahead(found, "first batch") == {}


def test_unpaired_medians_are_drawn_for_themselves():
    a, b = [2.0, 2.2, 2.1, 1.9, 2.0], [1.0, 1.1, 0.9, 1.0, 1.0]
    found = stats.unpaired(a, b)
    assert found.median == pytest.approx(2.0)
    assert 1.7 < found.low < found.median < found.high < 2.4
    few = stats.unpaired([2.0, 4.0], [1.0, 2.0])
    assert (few.low, few.high, few.drawn) == (1.0, 4.0, False)
    assert stats.unpaired([], [1.0]) is None
    assert stats.unpaired([1.0], [0.0]) is None


def test_a_table_is_held_against_who_reads_it_by_ranges_and_against_a_download():
    rounds = dict(plain=[9.0] * 3, duckdb=arm("duckdb", [1.0] * 3, cpu=0.4), auto=arm("auto", [1.02] * 3, cpu=0.5))
    found = cell(pyarrow=arm("pyarrow", [1.0] * 3, cpu=0.9), **rounds)
    assert (judged(found, "rival").against, judged(found, "rival").outcome) == ("pyarrow", "pass")
    spare = judged(found, "rival-cpu", "cpu")
    assert (spare.median, spare.asked, spare.outcome) == (pytest.approx(0.8), 0.8, "pass")
    assert "download" not in {each.rule for each in stats.verdicts(found)}, "over an open link"
    found.asked_link_bits = 99e6
    assert "download" in {each.rule for each in stats.verdicts(found)}, "over a link that nobody measured"
    found.link_bits = 99e6
    assert judged(found, "download").median == pytest.approx(9 / 1.02)
    slower = cell(pyarrow=arm("pyarrow", [1.0] * 3, cpu=0.3), **(rounds | {"auto": arm("auto", [1.1] * 3, cpu=0.5)}))
    assert judged(slower, "rival").outcome == judged(slower, "rival-cpu", "cpu").outcome == "fail"


def test_other_rivals_are_held_against_nothing():
    found = cell(plain=[1.0] * 3, tfdata=[0.1] * 3, auto=[1.0] * 3)
    assert {each.rule for each in stats.verdicts(found)} == {"plain", "best", "bytes"}


@pytest.mark.parametrize(
    ("epochs", "outcome"),
    [([100.0] * 3, "pass"), ([86, 100, 114], "pass"), ([80, 100, 100], "undecided"), ([100, 100, 120], "undecided"),
     ([80] * 3, "fail"), ([120] * 3, "fail"), ([80, 100, 120], "undecided")],
)
def test_the_simulator_is_to_be_where_the_clock_is(epochs, outcome):
    found = cell(plain=[100.0] * 3, auto=[100.0] * 3)
    found.simulated = {"auto": epochs}
    verdict = judged(found, "simulator")
    assert (verdict.arm, verdict.outcome) == ("auto", outcome)


def test_noise_between_turns_says_nothing_of_the_simulator():
    found = cell(plain=[100.0, 90, 110], again=[120.0, 100, 80], auto=[100.0, 50, 200])
    found.simulated = {"auto": [100.0, 50, 200]}
    assert judged(found, "plain").outcome == "void" and judged(found, "simulator").outcome == "pass"
