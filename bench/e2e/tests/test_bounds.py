"""What the simulator is told, and what bounds cells of each kind; without a store and without a link."""

import json
import subprocess
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from .. import report, stats  # noqa: E402
from ..kinds import bounds  # noqa: E402
from ..results import Arm, Bound, Cell, Turn  # noqa: E402
from ..scenario import Scenario  # noqa: E402
from .build import arm, cell, results, turn  # noqa: E402


def of_kind(kind: str, **more: object) -> Scenario:
    return Scenario(kind, "", kind, False, samples=100, pipeline="decode", arms=("plain",), **more)


def test_the_simulator_and_the_bound_know_of_cores_and_of_the_accelerator(monkeypatch) -> None:
    told = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        told.append(json.loads(pipes["input"]))
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 1, "bound": "trainer"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    whole = cell(plain=[1.0], pushed=[1.0])
    found = whole.arms
    slow = Scenario(
        "slow", "", "read", False, samples=100, batch_size=32, pipeline="decode", arms=("plain",), trainer_step_ms=250,
        store_cores=2, host_cores=3,
    )  # fmt: skip
    # Four batches, of which the last one is small.
    assert slow.trainer_seconds == pytest.approx(0.01)
    rounds = bounds.simulated(slow, found, None)
    assert (told[0]["store_cores"], told[0]["host_cores"], told[0]["trainer_seconds"]) == (2, 3, pytest.approx(0.01))
    assert bounds.by_way(found, rounds) == {"plain": [1], "pushed": [1]}
    assert bounds.of(slow, whole).by == "trainer"
    # A sample takes the store's side 0.005 s of its two cores, which are 400 in a second; the link brings 125.
    whole.x, whole.link_bits = 0.1, 1e6
    thin = bounds.of(slow, whole)
    assert (thin.by, thin.samples_per_second) == ("trainer", pytest.approx(100))


def test_the_simulator_is_told_what_a_mixture_was_and_cost(monkeypatch) -> None:
    told = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        told.append(json.loads(pipes["input"])["auto"])
        return SimpleNamespace(stdout=json.dumps({"plain": 1, "pushed": 1, "auto": told[-1] and 3, "best": 1, "bound": "host"}))

    monkeypatch.setattr(subprocess, "run", simulator)
    scenario = Scenario("mixed", "", "read", False, samples=100, pipeline="decode", arms=("plain",))
    found = cell(plain=[1.0, 1.0], pushed=[1.0, 1.0], auto=[1.0, 1.0]).arms
    for turn in found["auto"].turns:
        turn.stages = {"0": 25, "4": 75}
    rounds = bounds.simulated(scenario, found, None)
    assert told[0] == pytest.approx({"plainly": 0.25, "bytes": 1000, "store_seconds": 0.005, "host_seconds": 0.005})
    assert bounds.by_way(found, rounds) == {"plain": [1, 1], "pushed": [1, 1], "auto": [3, 3]}
    # Of two epochs the last one counts: its host without what came once, the rest as much less as its samples take alone.
    both = found["auto"].turns[0]
    both.seconds, both.cpu["store"], both.last_stages, both.last_cpu_seconds = [1.0, 1.0], 2.0, {"0": 75, "4": 25}, 0.2
    found["plain"].turns[0].cpu |= {"store": 0.1, "gateway": 0.0}
    found["pushed"].turns[0].cpu |= {"store": 0.1, "gateway": 0.4}
    # Plainly 0.001 s, pushed 0.005 s: both epochs took 0.004 s by that, and the last one by itself 0.002 s.
    cost = bounds.costs(both)["store_seconds"]
    bounds.simulated(scenario, found, None)
    assert told[-2] == pytest.approx({"plainly": 0.75, "bytes": 500, "store_seconds": cost / 2, "host_seconds": 0.002})
    # Of a round that does not tell there is nothing to hold against the clock.
    found["auto"].turns[1].stages = None
    assert "auto" not in bounds.by_way(found, bounds.simulated(scenario, found, None))


def test_the_bound_is_by_the_least_that_each_way_cost_in_any_round(monkeypatch) -> None:
    """A round in which the machine had other things to do would make it one that arms of the others beat."""
    told = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        told.append(json.loads(pipes["input"]))
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 0.5, "bound": "host"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    few = Scenario("few", "", "read", False, samples=100, pipeline="decode", arms=("plain",))
    busy, calm = turn(1.0, cpu=8.0, wire=500), turn(1.0, cpu=4.0, wire=800)
    whole = cell(**{name: Arm(name, "", [busy, calm, busy]) for name in ("plain", "pushed")})
    assert bounds.of(few, whole) == Bound(200, "host")
    (epoch,) = told
    assert epoch["plain"] == epoch["pushed"] == pytest.approx({"bytes": 500, "store_seconds": 0.02, "host_seconds": 0.02})
    # Of one core, without the simulator.
    whole.x, whole.link_bits = 0.1, 1e9
    thin = bounds.of(few, whole)
    assert (thin.by, thin.samples_per_second) == ("gateway", pytest.approx(50))
    del calm.cpu["store"]
    assert bounds.of(few, whole) is None and bounds.simulated(few, whole.arms, None) == []


def took(seconds: float, store: float, gateway: float, host: float, wire: float = 1000) -> Turn:
    """A turn of 100 samples by what each side took."""
    made = turn(seconds, wire=wire)
    made.cpu = {"store": store, "gateway": gateway, "host": host}
    return made


def of(scenario: Scenario, found: Cell) -> tuple[float, str]:
    """The bound as a pair."""
    limit = bounds.of(scenario, found)
    return limit.samples_per_second, limit.by


def apart(**arms: list[Turn]) -> Cell:
    kinds = {"gateway": "pushed", "nginx": "peer", "pyarrow": "rival", "files": "ceiling", "keep": "layout"}
    found = cell(plain=[1.0])
    found.arms = {name: Arm(kinds.get(name, name), "", turns) for name, turns in arms.items()}
    found.baseline = next(iter(found.arms))
    return found


def test_where_nothing_mixes_ways_the_slowest_side_by_the_least_of_any_arm_is_the_bound() -> None:
    # The store's side takes 0.01 s of its core at the least, in the second round; the host 0.004 s, of another arm.
    found = apart(plain=[took(2, 2.0, 0.0, 1.0), took(2, 1.0, 0.0, 0.8)], gateway=[took(2, 1.0, 1.0, 0.4)] * 2)
    for kind in ("forward", "growth", "table"):
        assert of(of_kind(kind), found) == (pytest.approx(100), "store")
    assert of(of_kind("table", store_cores=4), found) == (pytest.approx(250), "host")
    assert of(of_kind("table", store_cores=4, host_cores=2), found) == (pytest.approx(400), "store")
    busy = apart(plain=[took(2, 0.3, 0.7, 0.1)])
    assert bounds.of(of_kind("forward"), busy).by == "gateway", "which takes more of the cores that both have"


def test_a_link_is_a_bound_by_the_fewest_bytes_of_any_arm_and_an_open_one_is_none() -> None:
    found = apart(plain=[took(9, 0.1, 0.0, 0.1, wire=8000)], pyarrow=[took(9, 0.1, 0.0, 0.1, wire=2000)])
    assert of(of_kind("table"), found) == (pytest.approx(1000), "store")
    found.asked_link_bits = 1.6e6
    assert of(of_kind("table"), found) == (pytest.approx(100), "link"), "nobody measured it"
    found.link_bits = 0.8e6
    assert of(of_kind("table"), found) == (pytest.approx(50), "link")
    found.arms["plain"].turns[0].wire_down = None
    assert bounds.of(of_kind("table"), found).by == "store", "of one arm nobody knows its bytes"


def test_what_reads_something_else_or_failed_samples_makes_no_bound() -> None:
    found = apart(plain=[took(2, 1.0, 0.0, 0.1)], files=[took(2, 0.0, 0.0, 0.1)], keep=[took(2, 0.0, 0.0, 0.1)])
    found.arms["again"] = arm("again", [1.0], cpu=0.001, errors=1)
    assert of(of_kind("forward"), found) == (pytest.approx(100), "store")


def test_no_arm_that_is_timed_as_it_is_counted_is_above_such_a_bound() -> None:
    """Each takes at least its own CPU seconds of each side, and its own bytes of the link."""
    plain, gateway, ranges = took(1.0, 0.9, 0.0, 1.0, wire=9000), took(1.5, 0.8, 0.7, 0.2), took(0.9, 0.1, 0.1, 0.9)
    limit = bounds.of(of_kind("table"), apart(plain=[plain], gateway=[gateway], pyarrow=[ranges])).samples_per_second
    assert all(1 / stats.seconds(each) <= limit for each in (plain, gateway, ranges))


def test_where_store_or_gateway_is_elsewhere_or_costs_are_not_those_of_the_seconds_there_is_no_bound() -> None:
    found = apart(plain=[took(2, 1.0, 0.0, 0.1)])
    for kind, group in (("scans", "scans"), ("growth", "listed keys")):
        found.group = group
        assert bounds.of(of_kind(kind), found) is None
    found.group = "connections"
    assert bounds.of(of_kind("growth"), found) is not None
    del found.arms["plain"].turns[0].cpu["store"]
    assert [bounds.of(of_kind(kind), found) for kind in ("read", "table", "tenants", "transfer")] == [None] * 4
    assert bounds.of(of_kind("forward"), cell()) is None
    text = report.markdown(results(found, kind="scans"))
    assert "open link; bound: -." in text


def test_jobs_and_a_whole_transfer_are_bound_by_the_best_mixture(monkeypatch) -> None:
    told = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        told.append(json.loads(pipes["input"]))
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 0.5, "bound": "gateway"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    found = apart(plain=[took(2, 1.0, 0.0, 1.0)], pushed=[took(2, 0.5, 1.5, 0.1)])
    found.x = 10.0
    assert bounds.of(of_kind("tenants"), found) == Bound(200, "gateway")
    assert told[0]["pushed"] == pytest.approx({"bytes": 1000, "store_seconds": 0.02, "host_seconds": 0.001})
    # Its ways are read by one process, so that nobody knows what each took of the store.
    for each in found.arms.values():
        del each.turns[0].cpu["store"]
    assert bounds.of(of_kind("transfer"), found) == Bound(200, "gateway")
    assert told[1]["pushed"]["store_seconds"] == pytest.approx(0.015) and bounds.of(of_kind("tenants"), found) is None


def test_a_first_start_has_a_bound_and_no_verdict_by_it() -> None:
    found = apart(pushed=[took(1.0, 0.1, 0.9, 0.1)] * 3, auto=[took(1.2, 0.1, 0.9, 0.1)] * 3)
    found.x = 0.3
    found.bound = bounds.of(of_kind("read"), found)
    assert (found.bound.samples_per_second, found.bound.by) == (pytest.approx(100), "gateway")
    assert [each.rule for each in stats.verdicts(found)] == ["best"]


def test_an_arm_above_the_bound_is_shown_as_such() -> None:
    text = report.markdown(results(cell(bound=90, plain=[1.0] * 3, auto=[2.0] * 3)))
    assert "| **above it**: 111 % of 90.0, gateway |" in text and "| 56 % of 90.0, gateway |" in text
