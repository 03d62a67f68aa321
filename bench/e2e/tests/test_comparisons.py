"""What is measured in a trial, what is compared in a cell, and which targets are met."""

import pandas as pd
import pytest

from .. import comparisons, trials
from ..comparisons import Comparison
from ..ratios import Target
from ..results import TIERS, Arm, Cell, Trial
from .build import arm, cell, trial


def compared(found: Cell, rule: str) -> Comparison:
    (comparison,) = [each for each in comparisons.comparisons(found) if each.rule == rule]
    return comparison


def rules(found: Cell) -> list[str]:
    return [each.rule for each in comparisons.comparisons(found)]


def of_trial(one: Trial) -> pd.Series:
    """Its measurements."""
    return trials.table(cell(plain=Arm("plain", "", [one]))).iloc[0]


def test_later_epochs_count_or_the_only_one():
    assert of_trial(trial(9.0, 2.0, 4.0, 3.0))["seconds"] == pytest.approx(0.03)
    assert of_trial(trial(9.0))["seconds"] == pytest.approx(0.09)
    assert of_trial(trial(9.0, 2.0, 4.0))[["first_epoch_rate", "rate", "epoch_seconds"]].tolist() == pytest.approx([100 / 9, 100 / 3, 3])
    assert pd.isna(of_trial(trial(9.0))["first_epoch_rate"])


def test_bytes_and_cpu_cover_all_epochs():
    assert of_trial(trial(9.0, 2.0, wire=700))["wire_bytes"] == pytest.approx(700)
    assert of_trial(trial(9.0, 2.0, cpu=4.0))["cpu"] == pytest.approx(4 / 200)


@pytest.mark.parametrize("tier", TIERS)
def test_an_unmeasured_tier_is_not_free(tier):
    external = trial(1.0)
    del external.cpu_seconds[tier]
    assert pd.isna(of_trial(external)["cpu"])
    unmeasured = trial(1.0)
    unmeasured.wire_up_bytes = None
    assert pd.isna(of_trial(unmeasured)["wire_bytes"])


def test_a_cell_without_trials_has_no_comparison():
    assert comparisons.comparisons(cell(plain=[], auto=[])) == comparisons.comparisons(cell()) == []
    assert trials.table(cell()).empty


def test_external_tiers_have_no_ratio_of_cpu():
    """The host's CPU alone would favour pushed arms."""
    costs = {"plain": 9.0, "pyarrow": 8.0, "auto": 1.0}
    found = cell(**{name: arm(name, [1.0] * 3, cpu=each) for name, each in costs.items()})
    assert compared(found, "ranges-cpu").ratio.median == 8 and not compared(found, "ranges-cpu").is_missed
    for each in found.arms.values():
        for each_trial in each.trials:
            each_trial.cpu_seconds = {"host": each_trial.cpu_seconds["host"]}
    assert compared(found, "ranges-cpu").ratio is None and not compared(found, "ranges-cpu").is_missed
    assert comparisons.arms_ahead(found, "cpu") == {}


@pytest.mark.parametrize(
    ("auto", "is_missed"),
    [([1.0, 1.0, 1.0], False), ([1.03] * 3, False), ([1.1] * 3, True), ([1.0, 1.1, 1.2], True), ([1.2, 1.0, 1.0], False)],
)
def test_the_median_decides(auto, is_missed):
    found = compared(cell(plain=[1.0, 1.0, 1.0], auto=auto), "plain")
    assert (found.is_missed, found.target) == (is_missed, Target(at_least=0.97))


def test_meeting_the_target_exactly_is_enough():
    assert not compared(cell(plain=[0.97] * 3, auto=[1.0] * 3), "plain").is_missed


def test_a_comparison_is_named_by_its_division():
    found = cell(x=0.1, bound=100, plain=[1.0] * 3, repeat=[1.0] * 3, pushed=[1.0] * 3, auto=[0.5] * 3)
    assert [each.name for each in comparisons.comparisons(found)] == [
        "`auto / plain`", "`auto / best of plain, pushed`", "wire bytes: `plain / auto`", "`auto / upper bound of the gateway`",
        "seconds: `plain / repeat`",
    ]  # fmt: skip


def test_the_fastest_plain_arm_may_be_a_peer_but_not_a_layout():
    found = compared(cell(plain=[2.0] * 3, loader=[1.0] * 3, resized=[0.1] * 3, pushed=[0.1] * 3, auto=[1.2] * 3), "plain")
    assert (found.over, found.under, found.is_missed) == ("auto", "loader", True)


def test_the_first_epoch_has_no_target():
    found = cell(plain=[2.0] * 3, loader=[1.0] * 3, auto=Arm("auto", "", [trial(2.0, 0.5) for _ in range(3)]))
    first = compared(found, "first")
    assert (first.under, first.ratio.median, first.target, first.is_missed) == ("loader", pytest.approx(0.5), None, False)
    assert compared(found, "plain").ratio.median == pytest.approx(2)


def test_a_single_epoch_is_not_compared_as_a_first_one():
    assert "first" not in rules(cell(plain=[1.0] * 3, auto=[1.0] * 3))


def test_a_peer_with_failed_samples_is_not_the_fastest():
    found = cell(plain=[2.0] * 3, loader=arm("loader", [1.0] * 3, errors=1), auto=[1.0] * 3)
    assert compared(found, "plain").under == "plain"


def test_the_best_fixed_arm_is_chosen_per_round_without_peers():
    found = compared(cell(plain=[1.0, 4.0, 1.0], pushed=[4.0, 1.0, 4.0], loader=[0.1] * 3, auto=[1.0] * 3), "best")
    assert (found.ratio.low, found.ratio.high, found.is_missed, found.target) == (1, 1, False, Target(at_least=0.95))


@pytest.mark.parametrize(("wire", "is_missed"), [(900, False), (1000, False), (1001, True)])
def test_more_bytes_than_the_baseline_miss_the_target(wire, is_missed):
    found = cell(plain=[1.0] * 3, loader=arm("loader", [1.0] * 3, wire=1), auto=arm("auto", [1.0] * 3, wire=wire))
    bytes_ = compared(found, "bytes")
    assert (bytes_.over, bytes_.under, bytes_.is_missed) == ("plain", "auto", is_missed)


def test_the_bound_is_compared_over_slow_links_only():
    # 100 samples in 1.1 s are 91 per second.
    arms = {"plain": [9.0] * 3, "auto": [1.1] * 3}
    assert not compared(cell(x=0.3, bound=100, **arms), "bound").is_missed
    assert compared(cell(x=0.1, bound=120, **arms), "bound").is_missed
    for found in (cell(x=1, bound=100, **arms), cell(x=None, bound=100, **arms), cell(x=0.3, **arms)):
        assert "bound" not in rules(found)


def test_an_arm_is_compared_with_its_repetition_without_a_target():
    for repeat in ([1.0, 1.01, 0.99], [1.04] * 3, [1.1, 1.2, 1.3], [1.0, 1.06, 1.0]):
        found = compared(cell(plain=[1.0] * 3, repeat=repeat), "repeat")
        assert (found.arm, found.over, found.target) == ("repeat", "plain", None)
        assert (found.ratio.low, found.ratio.high) == pytest.approx((1 / max(repeat), 1 / min(repeat)))


def test_a_named_arm_is_compared_with_its_repetition():
    found = cell(plain=[9.0, 3.0, 6.0], pushed=[1.0] * 3, **{"repeat:pushed": [1.01, 1.0, 1.0]}, auto=[1.0] * 3)
    repeat = compared(found, "repeat")
    assert (repeat.arm, repeat.over, repeat.ratio.median) == ("repeat:pushed", "pushed", 1)


def test_noise_decides_nothing():
    arms = {"plain": [1.0] * 3, "pushed": [1.0] * 3, "auto": [0.5] * 3}
    calm, noisy = (cell(x=0.1, bound=200, repeat=repeat, **arms) for repeat in ([1.0] * 3, [1.0, 1.6, 2.0]))
    without = lambda found: [each for each in comparisons.comparisons(found) if each.rule != "repeat"]
    assert without(calm) == without(noisy) == comparisons.comparisons(cell(x=0.1, bound=200, **arms))


def test_without_plain_reading_its_rules_do_not_apply():
    found = cell(plain=[1.0] * 3, pushed=[1.0] * 3, auto=[1.0] * 3)
    del found.arms["plain"]
    found.baseline = "pushed"
    assert rules(found) == ["best"]


def test_an_arm_with_failed_samples_meets_no_target():
    found = cell(plain=[1.0] * 3, repeat=[1.0] * 3, auto=arm("auto", [0.1] * 3, errors=2))
    missed = {each.rule: each.failed_samples for each in comparisons.comparisons(found) if each.is_missed}
    assert missed == {"plain": 6, "best": 6, "bytes": 6}
    assert comparisons.speedup(found, "auto") is None and comparisons.rate_to_baseline(found, "auto") is None


def test_nothing_is_compared_with_an_arm_that_failed_samples():
    assert rules(cell(plain=arm("plain", [1.0] * 3, errors=1), auto=[1.0] * 3)) == []
    empty = cell(plain=arm("plain", [1.0], samples=0), auto=[1.0])
    assert [each.ratio for each in comparisons.comparisons(empty)] == [None, None]


def test_faster_arms_are_ahead_whether_or_not_a_target_is_met():
    found = cell(plain=[0.99] * 3, loader=[1.0] * 3, resized=[0.5] * 3, pushed=[0.9, 1.2, 0.9], auto=[1.0] * 3)
    assert list(comparisons.arms_ahead(found, "seconds")) == ["plain", "resized"]
    assert not compared(found, "plain").is_missed
    assert list(comparisons.arms_ahead(cell(plain=[0.5] * 3, pushed=[1.0] * 3), "seconds")) == ["plain"]


def test_arms_with_less_cpu_or_an_earlier_first_batch_are_ahead():
    cheap, early = arm("pushed", [2.0] * 3, cpu=0.5), arm("loader", [2.0] * 3)
    for each in early.trials:
        each.first_batch_seconds = 0.05
    found = cell(plain=[2.0] * 3, pushed=cheap, loader=early, auto=[1.0] * 3)
    ahead = lambda column: {name: each.median for name, each in comparisons.arms_ahead(found, column).items()}
    assert ahead("seconds") == {}
    assert ahead("cpu") == {"pushed": pytest.approx(2)}
    assert ahead("first_batch_seconds") == {"loader": pytest.approx(2)}
    for each in found.arms["auto"].trials:
        each.first_batch_seconds = None
    assert ahead("first_batch_seconds") == {}


def test_a_table_is_compared_with_range_readers_and_a_download():
    rounds = dict(plain=[9.0] * 3, duckdb=arm("duckdb", [1.0] * 3, cpu=0.4), auto=arm("auto", [1.02] * 3, cpu=0.5))
    found = cell(pyarrow=arm("pyarrow", [1.0] * 3, cpu=0.9), **rounds)
    assert (compared(found, "ranges").under, compared(found, "ranges").is_missed) == ("pyarrow", False)
    cheaper = compared(found, "ranges-cpu")
    assert (cheaper.ratio.median, cheaper.target, cheaper.is_missed) == (pytest.approx(0.8), Target(at_least=0.8), False)
    assert "download" not in rules(found), "over an open link"
    found.requested_bits_per_second = 99e6
    assert "download" in rules(found), "over an unmeasured link"
    found.measured_bits_per_second = 99e6
    assert compared(found, "download").ratio.median == pytest.approx(9 / 1.02)
    slower = cell(pyarrow=arm("pyarrow", [1.0] * 3, cpu=0.3), **(rounds | {"auto": arm("auto", [1.1] * 3, cpu=0.5)}))
    assert compared(slower, "ranges").is_missed and compared(slower, "ranges-cpu").is_missed


def test_tf_data_service_has_no_rule():
    assert rules(cell(plain=[1.0] * 3, tfdata=[0.1] * 3, auto=[1.0] * 3)) == ["plain", "best", "bytes"]


@pytest.mark.parametrize(
    ("epochs", "is_missed"),
    [([100.0] * 3, False), ([86, 100, 114], False), ([80, 100, 100], False), ([100, 100, 120], False), ([80] * 3, True),
     ([120] * 3, True), ([80, 84, 120], True)],
)
def test_the_simulator_has_to_agree_with_the_clock(epochs, is_missed):
    found = cell(plain=[100.0] * 3, auto=[100.0] * 3)
    found.simulated_epoch_seconds = {"auto": epochs}
    simulator = compared(found, "simulator")
    assert (simulator.arm, simulator.name, simulator.is_missed) == ("auto", "epoch s: `simulated / auto`", is_missed)


def test_the_simulator_is_compared_with_the_clock_of_the_same_round():
    found = cell(plain=[100.0, 90, 110], repeat=[120.0, 100, 80], auto=[100.0, 50, 200])
    found.simulated_epoch_seconds = {"auto": [100.0, 50, 200]}
    assert (compared(found, "simulator").ratio.low, compared(found, "simulator").ratio.high) == (1, 1)


def test_the_time_until_a_head_is_trained_is_compared_with_plain_reading():
    found = cell(plain=[1.0] * 3, auto=[1.0] * 3)
    for name, seconds in (("plain", [9.0, 8.0, 7.0]), ("auto", [1.0, 4.0, 2.0])):
        for one, trained in zip(found.arms[name].trials, seconds):
            one.trained_seconds = trained
    head = compared(found, "trained")
    assert (head.name, head.ratio.median, head.ratio.low, head.ratio.high) == ("s to the trained head: `plain / auto`", 3.5, 2.0, 9.0)
    assert "trained" not in rules(cell(plain=[1.0], auto=[1.0]))
