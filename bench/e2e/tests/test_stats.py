"""Ratios, intervals and verdicts."""

import random
import statistics

import pytest

from .. import intervals, measures, stats
from ..results import TIERS, Arm, Cell, Verdict
from .build import arm, cell, trial


def judged(found: Cell, rule: str, measure: str = "seconds") -> Verdict:
    (verdict,) = [each for each in stats.verdicts(found) if (each.rule, each.measure) == (rule, measure)]
    return verdict


def test_the_interval_contains_the_median_and_narrows_with_rounds():
    draw = random.Random(1)
    few, many = ([draw.gauss(1, 0.1) for _ in range(rounds)] for rounds in (5, 100))
    for ratios in (few, many):
        found = intervals.interval(ratios)
        assert min(ratios) <= found.low <= found.median == statistics.median(ratios) <= found.high <= max(ratios)
    assert intervals.interval(many).high - intervals.interval(many).low < intervals.interval(few).high - intervals.interval(few).low


def test_the_interval_of_many_rounds_matches_theory():
    ratios = [draw.gauss(1, 0.1) for draw in [random.Random(3)] for _ in range(400)]
    found = intervals.interval(ratios)
    # The median of n normal values has the standard deviation 1.2533 s / sqrt(n), and 95 % lie within 1.96 of those.
    width = 2 * 1.96 * 1.2533 * 0.1 / 400**0.5
    assert found.high - found.low == pytest.approx(width, rel=0.35)
    assert found.low < 1 < found.high


def test_equal_rounds_yield_equal_intervals():
    ratios = [0.9, 1.0, 1.2, 1.3, 1.1]
    assert intervals.interval(ratios) == intervals.interval(ratios)


@pytest.mark.parametrize("ratios", [[1.5], [0.5, 2.0]])
def test_fewer_than_three_rounds_yield_the_range_and_decide_nothing(ratios):
    found = intervals.interval(ratios)
    assert (found.low, found.high, found.rounds, found.drawn) == (min(ratios), max(ratios), len(ratios), False)
    verdict = judged(cell(plain=ratios, auto=[1.0] * len(ratios)), "plain")
    assert f"{len(ratios)} round" in verdict.note
    for level in (1.0, 1.2):
        assert judged(cell(plain=[level] * len(ratios), repeat=[1.0] * len(ratios)), "repeat").outcome == "undecided"
    assert intervals.interval([1.0, 1.0, 1.0]).drawn


def test_fewer_than_six_rounds_have_a_note_with_their_confidence():
    """The bootstrap of few rounds is their range."""
    rounds = [0.9, 1.1, 1.3, 0.8, 1.2, 1.0, 1.4]
    for few, confidence in ((3, "75"), (4, "87.5"), (5, "93.8")):
        found = intervals.interval(rounds[:few])
        assert (found.low, found.high) == (min(rounds[:few]), max(rounds[:few]))
        calm = judged(cell(plain=[1.0] * few, repeat=[1.0] * few, auto=[1.0] * few), "plain")
        assert (calm.outcome, calm.note) == ("pass", f"range of {few} rounds, {confidence} % confidence")
    assert intervals.interval(rounds[:6]).low > min(rounds[:6])
    assert judged(cell(plain=[1.0] * 6, repeat=[1.0] * 6, auto=[1.0] * 6), "plain").note == ""


def test_a_cell_without_an_a_a_arm_has_a_note():
    arms = {"plain": [1.0] * 6, "pushed": [1.0] * 6, "auto": [0.5] * 6}
    lone = cell(x=0.1, bound=100, **arms)
    notes = {each.rule: (each.outcome, each.note) for each in stats.verdicts(lone)}
    assert notes == {rule: ("pass", stats.NO_REPEAT_NOTE) for rule in ("plain", "best", "bound")} | {"bytes": ("pass", "")}
    assert all(each.note == "" for each in stats.verdicts(cell(x=0.1, bound=100, repeat=[1.0] * 6, **arms)))


def test_ratios_are_taken_round_by_round():
    # The machine was three times slower in the second round; the ratio is the same.
    found = cell(plain=[1.0, 3.0, 1.1], auto=[0.5, 1.5, 0.55])
    verdict = judged(found, "plain")
    assert (verdict.median, verdict.low, verdict.high) == pytest.approx((2, 2, 2))


def test_later_epochs_count_or_the_only_one():
    assert measures.seconds_per_sample(trial(9.0, 2.0, 4.0, 3.0)) == pytest.approx(0.03)
    assert measures.seconds_per_sample(trial(9.0)) == pytest.approx(0.09)


def test_bytes_and_cpu_cover_all_epochs():
    assert measures.wire_bytes_per_sample(trial(9.0, 2.0, wire=700)) == pytest.approx(700)
    assert measures.cpu_seconds_per_sample(trial(9.0, 2.0, cpu=4.0)) == pytest.approx(4 / 200)


@pytest.mark.parametrize("tier", TIERS)
def test_an_unmeasured_tier_is_not_free(tier):
    external = trial(1.0)
    del external.cpu_seconds[tier]
    assert measures.cpu_seconds_per_sample(external) == 0
    unmeasured = trial(1.0)
    unmeasured.wire_up_bytes = None
    assert measures.wire_bytes_per_sample(unmeasured) == 0


def test_external_tiers_have_no_cpu_verdicts():
    """The host's CPU alone would favour pushed arms."""
    costs = {"plain": 9.0, "repeat": 9.0, "pyarrow": 8.0, "auto": 1.0}
    found = cell(**{name: arm(name, [1.1 if name == "repeat" else 1.0, 1.0, 1.0], cpu=each) for name, each in costs.items()})
    assert stats.is_noisy(found) and judged(found, "rival-cpu", "cpu").outcome == "pass"
    for each in found.arms.values():
        for each_trial in each.trials:
            each_trial.cpu_seconds = {"host": each_trial.cpu_seconds["host"]}
    assert judged(found, "rival-cpu", "cpu").outcome == "void"
    assert judged(found, "plain", "cpu").median is None
    assert stats.arms_ahead(found, "cpu") == {}


@pytest.mark.parametrize(
    ("auto", "outcome"), [([1.0, 1.0, 1.0], "pass"), ([1.03] * 3, "pass"), ([1.1] * 3, "fail"), ([1.0, 1.1, 1.2], "undecided")]
)
def test_a_verdict_considers_the_whole_interval(auto, outcome):
    verdict = judged(cell(plain=[1.0, 1.0, 1.0], auto=auto), "plain")
    assert (verdict.outcome, verdict.required) == (outcome, 0.97)


def test_meeting_the_requirement_exactly_is_a_pass():
    assert judged(cell(plain=[0.97] * 3, auto=[1.0] * 3), "plain").outcome == "pass"


def test_the_fastest_plain_arm_may_be_a_peer_but_not_a_layout():
    found = cell(plain=[2.0] * 3, loader=[1.0] * 3, resized=[0.1] * 3, pushed=[0.1] * 3, auto=[1.2] * 3)
    assert stats.fastest_plain(found) == "loader"
    verdict = judged(found, "plain")
    assert (verdict.against, verdict.outcome) == ("loader", "fail")


def test_the_first_epoch_is_informational():
    found = cell(plain=[2.0] * 3, loader=[1.0] * 3, auto=Arm("auto", "", [trial(2.0, 0.5) for _ in range(3)]))
    first = judged(found, "first")
    assert (first.against, first.median, first.outcome) == ("loader", pytest.approx(0.5), "informational")
    assert judged(found, "plain").median == pytest.approx(2)
    noisy = cell(repeat=[1.0, 3.0, 2.0], plain=[1.0] * 3, auto=found.arms["auto"])
    assert judged(noisy, "first").outcome == "informational" and stats.NOISE_NOTE in judged(noisy, "first").note
    lossy = cell(plain=[1.0] * 3, auto=Arm("auto", "", [trial(2.0, 0.5, errors=1) for _ in range(3)]))
    assert judged(lossy, "first").outcome == "void"


def test_a_single_epoch_has_no_first_epoch_verdict():
    assert "first" not in {each.rule for each in stats.verdicts(cell(plain=[1.0] * 3, auto=[1.0] * 3))}


def test_a_peer_with_failed_samples_is_not_the_fastest():
    assert stats.fastest_plain(cell(plain=[2.0] * 3, loader=arm("loader", [1.0] * 3, errors=1))) == "plain"


def test_the_best_fixed_arm_is_chosen_per_round_without_peers():
    found = cell(plain=[1.0, 4.0, 1.0], pushed=[4.0, 1.0, 4.0], loader=[0.1] * 3, auto=[1.0] * 3)
    verdict = judged(found, "best")
    assert (verdict.low, verdict.high, verdict.outcome, verdict.required) == (1, 1, "pass", 0.95)


@pytest.mark.parametrize(("wire", "outcome"), [(900, "pass"), (1000, "pass"), (1001, "fail")])
def test_more_bytes_than_the_baseline_fail(wire, outcome):
    found = cell(plain=[1.0] * 3, loader=arm("loader", [1.0] * 3, wire=1), auto=arm("auto", [1.0] * 3, wire=wire))
    verdict = judged(found, "bytes", "wire")
    assert (verdict.against, verdict.outcome) == ("plain", outcome)


def test_the_bound_rule_applies_to_slow_links_only():
    # 100 samples in 1.1 s are 91 per second.
    arms = {"plain": [9.0] * 3, "auto": [1.1] * 3}
    assert judged(cell(x=0.3, bound=100, **arms), "bound").outcome == "pass"
    assert judged(cell(x=0.1, bound=120, **arms), "bound").outcome == "fail"
    for found in (cell(x=1, bound=100, **arms), cell(x=None, bound=100, **arms), cell(x=0.3, **arms)):
        assert [each for each in stats.verdicts(found) if each.rule == "bound"] == []


@pytest.mark.parametrize(("repeat", "outcome"), [([1.0, 1.01, 0.99], "pass"), ([1.04] * 3, "fail")])
def test_a_repetition_is_a_tie_unless_its_whole_interval_is_far_from_one(repeat, outcome):
    found = cell(plain=[1.0] * 3, repeat=repeat)
    assert judged(found, "repeat").outcome == outcome
    assert not stats.is_noisy(found)


def test_a_repetition_far_from_a_tie_voids_clock_verdicts():
    found = cell(plain=[1.0] * 3, repeat=[1.2, 1.21, 1.22], auto=[1.5] * 3)
    assert judged(found, "repeat").outcome == "fail", "a significant difference where none can be"
    assert judged(found, "plain").outcome == "void"


def test_a_named_arm_is_compared_with_its_repetition():
    found = cell(plain=[9.0, 3.0, 6.0], pushed=[1.0] * 3, **{"repeat:pushed": [1.01, 1.0, 1.0]}, auto=[1.0] * 3)
    verdict = judged(found, "repeat")
    assert (verdict.arm, verdict.against, verdict.outcome) == ("repeat:pushed", "pushed", "pass")
    assert not stats.is_noisy(found) and judged(found, "best").outcome == "pass"
    found.arms["pushed"].trials[1].errors = 1
    assert judged(found, "repeat").note.startswith("1 samples failed")


def test_a_noisy_repetition_is_undecided_on_either_side():
    """With three rounds, all lie on one side by chance in a quarter of the cases."""
    for repeat in ([1.1, 1.2, 1.3], [0.9, 0.95, 1.0], [1.0, 1.06, 1.0]):
        found = cell(plain=[1.0] * 3, repeat=repeat)
        assert stats.is_noisy(found)
        assert judged(found, "repeat").outcome == "undecided"
        assert stats.NOISE_NOTE in judged(found, "repeat").note


def test_noise_voids_clock_verdicts_and_reports_cpu():
    arms = {"plain": arm("plain", [1.0] * 3, cpu=1.0), "pushed": arm("pushed", [1.0] * 3, cpu=0.8)}
    found = cell(x=0.1, bound=10, repeat=[1.0, 1.06, 1.0], auto=arm("auto", [0.1] * 3, cpu=0.9), **arms)
    assert stats.is_noisy(found)
    for rule in ("plain", "best", "bound"):
        assert judged(found, rule).outcome == "void"
    assert judged(found, "plain", "cpu").outcome == "informational"
    assert judged(found, "best", "cpu").median == pytest.approx(0.8 / 0.9)
    assert judged(found, "best", "cpu").outcome == "informational"
    assert judged(found, "bytes", "wire").outcome == "pass"


def test_a_quiet_cell_has_no_verdict_on_cpu():
    found = stats.verdicts(cell(plain=[1.0] * 3, repeat=[1.0, 1.02, 1.0], auto=[1.0] * 3))
    assert [each.measure for each in found] == ["seconds", "seconds", "wire", "seconds"]


def test_without_plain_reading_its_rules_do_not_apply():
    found = cell(plain=[1.0] * 3, pushed=[1.0] * 3, auto=[1.0] * 3)
    del found.arms["plain"]
    found.baseline = "pushed"
    assert [each.rule for each in stats.verdicts(found)] == ["best"]


def test_an_arm_with_failed_samples_passes_nothing():
    found = cell(plain=[1.0] * 3, repeat=[1.0] * 3, auto=arm("auto", [0.1] * 3, errors=2))
    outcomes = {each.rule: (each.outcome, each.note) for each in stats.verdicts(found)}
    assert outcomes["plain"] == outcomes["best"] == outcomes["bytes"] == ("void", "6 samples failed")
    assert stats.speedup(found, "auto") is None


def test_a_missing_measurement_is_void_without_a_ratio():
    found = cell(plain=arm("plain", [1.0] * 3, errors=1), auto=[1.0] * 3)
    for verdict in stats.verdicts(found):
        assert (verdict.outcome, verdict.median, verdict.rounds) == ("void", None, 0)
    empty = cell(plain=arm("plain", [1.0], samples=0), auto=[1.0])
    assert {each.outcome for each in stats.verdicts(empty)} == {"void"}


def test_faster_arms_are_reported_regardless_of_verdicts():
    found = cell(plain=[0.99] * 3, loader=[1.0] * 3, resized=[0.5] * 3, pushed=[0.9, 1.2, 0.9], auto=[1.0] * 3)
    assert list(stats.arms_ahead(found, "seconds")) == ["plain", "resized"]
    assert judged(found, "plain").outcome == "pass"
    assert list(stats.arms_ahead(cell(plain=[0.5] * 3, pushed=[1.0] * 3), "seconds")) == ["plain"]


def test_arms_with_less_cpu_or_an_earlier_first_batch_are_reported():
    cheap, early = arm("pushed", [2.0] * 3, cpu=0.5), arm("loader", [2.0] * 3)
    for each in early.trials:
        each.first_batch_seconds = 0.05
    found = cell(plain=[2.0] * 3, pushed=cheap, loader=early, auto=[1.0] * 3)
    assert stats.arms_ahead(found, "seconds") == {}
    assert {name: each.median for name, each in stats.arms_ahead(found, "cpu").items()} == {"pushed": pytest.approx(2)}
    assert {name: each.median for name, each in stats.arms_ahead(found, "first batch").items()} == {"loader": pytest.approx(2)}
    for each in found.arms["auto"].trials:
        each.first_batch_seconds = None
    assert stats.arms_ahead(found, "first batch") == {}


def test_unpaired_medians_are_drawn_independently():
    a, b = [2.0, 2.2, 2.1, 1.9, 2.0], [1.0, 1.1, 0.9, 1.0, 1.0]
    found = intervals.unpaired(a, b)
    assert found.median == pytest.approx(2.0)
    assert 1.7 < found.low < found.median < found.high < 2.4
    few = intervals.unpaired([2.0, 4.0], [1.0, 2.0])
    assert (few.low, few.high, few.drawn) == (1.0, 4.0, False)
    assert intervals.unpaired([], [1.0]) is None
    assert intervals.unpaired([1.0], [0.0]) is None


def test_a_table_is_compared_with_range_readers_and_a_download():
    rounds = dict(plain=[9.0] * 3, duckdb=arm("duckdb", [1.0] * 3, cpu=0.4), auto=arm("auto", [1.02] * 3, cpu=0.5))
    found = cell(pyarrow=arm("pyarrow", [1.0] * 3, cpu=0.9), **rounds)
    assert (judged(found, "rival").against, judged(found, "rival").outcome) == ("pyarrow", "pass")
    cheaper = judged(found, "rival-cpu", "cpu")
    assert (cheaper.median, cheaper.required, cheaper.outcome) == (pytest.approx(0.8), 0.8, "pass")
    assert "download" not in {each.rule for each in stats.verdicts(found)}, "over an open link"
    found.requested_bits_per_second = 99e6
    assert "download" in {each.rule for each in stats.verdicts(found)}, "over an unmeasured link"
    found.measured_bits_per_second = 99e6
    assert judged(found, "download").median == pytest.approx(9 / 1.02)
    slower = cell(pyarrow=arm("pyarrow", [1.0] * 3, cpu=0.3), **(rounds | {"auto": arm("auto", [1.1] * 3, cpu=0.5)}))
    assert judged(slower, "rival").outcome == judged(slower, "rival-cpu", "cpu").outcome == "fail"


def test_other_rivals_have_no_rule():
    found = cell(plain=[1.0] * 3, tfdata=[0.1] * 3, auto=[1.0] * 3)
    assert {each.rule for each in stats.verdicts(found)} == {"plain", "best", "bytes"}


@pytest.mark.parametrize(
    ("epochs", "outcome"),
    [([100.0] * 3, "pass"), ([86, 100, 114], "pass"), ([80, 100, 100], "undecided"), ([100, 100, 120], "undecided"),
     ([80] * 3, "fail"), ([120] * 3, "fail"), ([80, 100, 120], "undecided")],
)
def test_the_simulator_has_to_agree_with_the_clock(epochs, outcome):
    found = cell(plain=[100.0] * 3, auto=[100.0] * 3)
    found.simulated_epoch_seconds = {"auto": epochs}
    verdict = judged(found, "simulator")
    assert (verdict.arm, verdict.outcome) == ("auto", outcome)


def test_noise_between_trials_does_not_affect_the_simulator_rule():
    found = cell(plain=[100.0, 90, 110], repeat=[120.0, 100, 80], auto=[100.0, 50, 200])
    found.simulated_epoch_seconds = {"auto": [100.0, 50, 200]}
    assert judged(found, "plain").outcome == "void" and judged(found, "simulator").outcome == "pass"
