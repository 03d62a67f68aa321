"""The input of the simulator, and the upper bounds of cells of each kind; without a store and a link."""

import json
import subprocess
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from .. import comparisons, report  # noqa: E402
from ..kinds import bounds  # noqa: E402
from ..results import Arm, Bound, Cell, Trial  # noqa: E402
from ..scenario import Scenario  # noqa: E402
from .build import arm, cell, results, trial  # noqa: E402


def for_kind(kind: str, **more: object) -> Scenario:
    return Scenario(kind, "", kind, False, samples=100, pipeline="decode", arms=("plain",), **more)


def test_simulator_and_bound_use_cores_and_accelerator(monkeypatch) -> None:
    inputs = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        inputs.append(json.loads(pipes["input"]))
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 1, "bound": "trainer"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    whole = cell(plain=[1.0], pushed=[1.0])
    found = whole.arms
    slow = Scenario(
        "slow", "", "read", False, samples=100, batch_size=32, pipeline="decode", arms=("plain",), trainer_step_ms=250,
        store_cores=2, host_cores=3,
    )  # fmt: skip
    # Four batches; the last one is small.
    assert slow.trainer_seconds == pytest.approx(0.01)
    rounds = bounds.simulate_rounds(slow, found, None)
    assert (inputs[0]["store_cores"], inputs[0]["host_cores"], inputs[0]["trainer_seconds"]) == (2, 3, pytest.approx(0.01))
    assert bounds.epochs_by_arm(found, rounds) == {"plain": [1], "pushed": [1]}
    assert bounds.upper_bound(slow, whole).limited_by == "trainer"
    # A sample costs 0.005 s of the store side's two cores: 400 samples per second. The link passes 125.
    whole.x, whole.measured_bits_per_second = 0.1, 1e6
    slow_link = bounds.upper_bound(slow, whole)
    assert (slow_link.limited_by, slow_link.samples_per_second) == ("trainer", pytest.approx(100))


def test_the_simulator_receives_the_share_and_cost_of_a_mixture(monkeypatch) -> None:
    inputs = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        inputs.append(json.loads(pipes["input"])["auto"])
        return SimpleNamespace(stdout=json.dumps({"plain": 1, "pushed": 1, "auto": inputs[-1] and 3, "best": 1, "bound": "host"}))

    monkeypatch.setattr(subprocess, "run", simulator)
    scenario = Scenario("mixed", "", "read", False, samples=100, pipeline="decode", arms=("plain",))
    found = cell(plain=[1.0, 1.0], pushed=[1.0, 1.0], auto=[1.0, 1.0]).arms
    for each in found["auto"].trials:
        each.stages = {"0": 25, "4": 75}
    rounds = bounds.simulate_rounds(scenario, found, None)
    assert inputs[0] == pytest.approx({"plainly": 0.25, "bytes": 1000, "store_seconds": 0.005, "host_seconds": 0.005})
    assert bounds.epochs_by_arm(found, rounds) == {"plain": [1, 1], "pushed": [1, 1], "auto": [3, 3]}
    # The last of two epochs counts: its host CPU alone, and the other costs scaled to its mixture.
    both = found["auto"].trials[0]
    both.epoch_seconds, both.cpu_seconds["store"] = [1.0, 1.0], 2.0
    both.last_epoch_stages, both.last_epoch_cpu_seconds = {"0": 75, "4": 25}, 0.2
    found["plain"].trials[0].cpu_seconds |= {"store": 0.1, "gateway": 0.0}
    found["pushed"].trials[0].cpu_seconds |= {"store": 0.1, "gateway": 0.4}
    # Plain 0.001 s, pushed 0.005 s: expected are 0.004 s for both epochs and 0.002 s for the last one.
    cost = bounds.costs(both)["store_seconds"]
    bounds.simulate_rounds(scenario, found, None)
    assert inputs[-2] == pytest.approx({"plainly": 0.75, "bytes": 500, "store_seconds": cost / 2, "host_seconds": 0.002})
    # A round without stages cannot be compared with the clock.
    found["auto"].trials[1].stages = None
    assert "auto" not in bounds.epochs_by_arm(found, bounds.simulate_rounds(scenario, found, None))


def test_the_bound_uses_the_lowest_costs_of_any_round(monkeypatch) -> None:
    """With a round under background load, arms of other rounds would beat the bound."""
    inputs = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        inputs.append(json.loads(pipes["input"]))
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 0.5, "bound": "host"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    few = Scenario("few", "", "read", False, samples=100, pipeline="decode", arms=("plain",))
    busy, calm = trial(1.0, cpu=8.0, wire=500), trial(1.0, cpu=4.0, wire=800)
    whole = cell(**{name: Arm(name, "", [busy, calm, busy]) for name in ("plain", "pushed")})
    assert bounds.upper_bound(few, whole) == Bound(200, "host")
    (epoch,) = inputs
    assert epoch["plain"] == epoch["pushed"] == pytest.approx({"bytes": 500, "store_seconds": 0.02, "host_seconds": 0.02})
    # For one core, without the simulator.
    whole.x, whole.measured_bits_per_second = 0.1, 1e9
    slow_link = bounds.upper_bound(few, whole)
    assert (slow_link.limited_by, slow_link.samples_per_second) == ("gateway", pytest.approx(50))
    del calm.cpu_seconds["store"]
    assert bounds.upper_bound(few, whole) is None and bounds.simulate_rounds(few, whole.arms, None) == []


def took(seconds: float, store: float, gateway: float, host: float, wire: float = 1000) -> Trial:
    """A trial of 100 samples, with the CPU seconds of each tier."""
    result = trial(seconds, wire=wire)
    result.cpu_seconds = {"store": store, "gateway": gateway, "host": host}
    return result


def of(scenario: Scenario, found: Cell) -> tuple[float, str]:
    """The upper bound as a pair."""
    limit = bounds.upper_bound(scenario, found)
    return limit.samples_per_second, limit.limited_by


def apart(**arms: list[Trial]) -> Cell:
    kinds = {"gateway": "pushed", "nginx": "peer", "pyarrow": "alternative", "files": "ceiling", "keep": "layout"}
    found = cell(plain=[1.0])
    found.arms = {name: Arm(kinds.get(name, name), "", trials) for name, trials in arms.items()}
    found.baseline = next(iter(found.arms))
    return found


def test_without_mixing_the_slowest_tier_is_the_bound() -> None:
    # The lowest costs: 0.01 s of the store side's core in the second round, 0.004 s of the host in another arm.
    found = apart(plain=[took(2, 2.0, 0.0, 1.0), took(2, 1.0, 0.0, 0.8)], gateway=[took(2, 1.0, 1.0, 0.4)] * 2)
    for kind in ("forward", "growth", "table"):
        assert of(for_kind(kind), found) == (pytest.approx(100), "store")
    assert of(for_kind("table", store_cores=4), found) == (pytest.approx(250), "host")
    assert of(for_kind("table", store_cores=4, host_cores=2), found) == (pytest.approx(400), "store")
    busy = apart(plain=[took(2, 0.3, 0.7, 0.1)])
    assert bounds.upper_bound(for_kind("forward"), busy).limited_by == "gateway", "it uses more of the shared cores"


def test_a_link_bounds_by_the_fewest_bytes_and_an_open_link_does_not() -> None:
    found = apart(plain=[took(9, 0.1, 0.0, 0.1, wire=8000)], pyarrow=[took(9, 0.1, 0.0, 0.1, wire=2000)])
    assert of(for_kind("table"), found) == (pytest.approx(1000), "store")
    found.requested_bits_per_second = 1.6e6
    assert of(for_kind("table"), found) == (pytest.approx(100), "link"), "not measured"
    found.measured_bits_per_second = 0.8e6
    assert of(for_kind("table"), found) == (pytest.approx(50), "link")
    found.arms["plain"].trials[0].wire_down_bytes = None
    assert bounds.upper_bound(for_kind("table"), found).limited_by == "store", "the bytes of one arm are unknown"


def test_other_layouts_and_failed_samples_do_not_set_the_bound() -> None:
    found = apart(plain=[took(2, 1.0, 0.0, 0.1)], files=[took(2, 0.0, 0.0, 0.1)], keep=[took(2, 0.0, 0.0, 0.1)])
    found.arms["repeat"] = arm("repeat", [1.0], cpu=0.001, errors=1)
    assert of(for_kind("forward"), found) == (pytest.approx(100), "store")


def test_no_arm_exceeds_the_tier_bound() -> None:
    """Each arm needs at least its own CPU seconds of each side, and its own bytes of the link."""
    plain, gateway, ranges = took(1.0, 0.9, 0.0, 1.0, wire=9000), took(1.5, 0.8, 0.7, 0.2), took(0.9, 0.1, 0.1, 0.9)
    limit = bounds.upper_bound(for_kind("table"), apart(plain=[plain], gateway=[gateway], pyarrow=[ranges])).samples_per_second
    assert all(each.samples / each.epoch_seconds[0] <= limit for each in (plain, gateway, ranges))


def test_incomplete_costs_yield_no_bound() -> None:
    found = apart(plain=[took(2, 1.0, 0.0, 0.1)])
    for kind, group in (("scans", "scans"), ("growth", "listed keys")):
        found.group = group
        assert bounds.upper_bound(for_kind(kind), found) is None
    found.group = "connections"
    assert bounds.upper_bound(for_kind("growth"), found) is not None
    del found.arms["plain"].trials[0].cpu_seconds["store"]
    assert [bounds.upper_bound(for_kind(kind), found) for kind in ("read", "table", "tenants", "transfer")] == [None] * 4
    assert bounds.upper_bound(for_kind("forward"), cell()) is None
    text = report.markdown(results(found, kind="scans"))
    assert "open link; upper bound: -." in text


def test_tenants_and_transfer_are_bounded_by_the_best_mixture(monkeypatch) -> None:
    inputs = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        inputs.append(json.loads(pipes["input"]))
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 0.5, "bound": "gateway"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    found = apart(plain=[took(2, 1.0, 0.0, 1.0)], pushed=[took(2, 0.5, 1.5, 0.1)])
    found.x = 10.0
    assert bounds.upper_bound(for_kind("tenants"), found) == Bound(200, "gateway")
    assert inputs[0]["pushed"] == pytest.approx({"bytes": 1000, "store_seconds": 0.02, "host_seconds": 0.001})
    # One process reads by all methods, so the store's CPU per method is unknown.
    for each in found.arms.values():
        del each.trials[0].cpu_seconds["store"]
    assert bounds.upper_bound(for_kind("transfer"), found) == Bound(200, "gateway")
    assert inputs[1]["pushed"]["store_seconds"] == pytest.approx(0.015) and bounds.upper_bound(for_kind("tenants"), found) is None


def test_a_first_start_has_a_bound_and_is_not_compared_with_it() -> None:
    found = apart(pushed=[took(1.0, 0.1, 0.9, 0.1)] * 3, auto=[took(1.2, 0.1, 0.9, 0.1)] * 3)
    found.x = 0.3
    found.bound = bounds.upper_bound(for_kind("read"), found)
    assert (found.bound.samples_per_second, found.bound.limited_by) == (pytest.approx(100), "gateway")
    assert [each.rule for each in comparisons.comparisons(found)] == ["best"]
