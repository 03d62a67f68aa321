"""Jobs on one data set: what a trial runs, how the first epoch is computed, and what the cost of jobs is compared with."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import comparisons, figures, report, targets  # noqa: E402
from ..kinds import RunContext  # noqa: E402
from ..kinds import sharing as kind  # noqa: E402
from ..results import ORIGINS, Arm, Cell, Trial  # noqa: E402
from ..scenario import Scenario, load_all  # noqa: E402
from .build import results, trial  # noqa: E402
from .fake_gateway import FakeTiers, argument, counting_gateway  # noqa: E402


def shared(count: float = 4, **required: float) -> Cell:
    """A cell of three rounds: one job needs 1 s of CPU and 1,000 bytes; four need 1.1 s and 1,010 bytes with a cache."""
    costs = {"memory": (1.1, 1010), "off": (4.0, 4000), "one": (1.0, 1000), "memory:later": (0.1, 10)}
    built = {}
    for name, (cpu, sent) in costs.items():
        trials = [trial(1.0, cpu=cpu, samples=100 if name == "one" else 400) for _ in range(3)]
        built[name] = Arm("pushed", "", [with_counters(each, sent) for each in trials])
    cell = Cell(f"{count:g} jobs", "sharing", count, "jobs", None, None, None, "one", [], None, built)
    return dataclasses.replace(cell, required=required)


def with_counters(one: Trial, sent: float, **values: float) -> Trial:
    return dataclasses.replace(one, store_bytes=sent, cache_values=dict.fromkeys(ORIGINS, 0.0) | values)


def test_the_first_epoch_is_what_two_cost_less_a_later_one() -> None:
    both = with_counters(trial(3.0, cpu=5.0, samples=800), 110_000, computed=100, memory=600, shared=100)
    last = with_counters(trial(1.0, cpu=1.0, samples=400), 10_000, memory=400)
    first = kind.first_epoch(both, last)
    assert (first.samples, first.epoch_seconds, first.store_bytes) == (400, [3.0], 100_000)
    assert first.cpu_seconds == pytest.approx({"store": 1.0, "gateway": 1.0, "host": 2.0})
    assert first.cache_values == {"computed": 100, "memory": 200, "disk": 0, "shared": 100, "prefix": 0}
    assert first.wire_down_bytes == 400 * 1000
    assert (first.stored_bytes, first.batch_wait_p50_seconds, first.stall_seconds) == (None, None, None)


def test_an_external_store_has_no_cpu_and_noise_is_never_negative() -> None:
    both, last = (with_counters(trial(1.0, cpu=cpu), 0) for cpu in (1.0, 1.1))
    del both.cpu_seconds["store"], last.cpu_seconds["store"]
    assert kind.first_epoch(both, last).cpu_seconds == {"gateway": 0.0, "host": 0.0}


def test_all_jobs_together_are_compared_with_one_job_of_the_same_round() -> None:
    found = {each.rule: each for each in comparisons.comparisons(shared(**{"store-bytes": 1 / 1.02, "jobs-cpu": 1 / 1.15}))}
    assert {rule: (each.target is None, each.is_missed) for rule, each in found.items()} == {
        "store-bytes": (False, False), "jobs-cpu": (True, False),
    }  # fmt: skip
    assert found["jobs-cpu"].ratio.median == pytest.approx(1 / 1.1)
    assert found["store-bytes"].ratio.median == pytest.approx(1 / 1.01)
    greedy = shared(**{"store-bytes": 1 / 1.02})
    for each in greedy.arms["memory"].trials:
        each.store_bytes = 1030
    assert [each.is_missed for each in comparisons.comparisons(greedy)] == [True]


def test_a_later_epoch_is_compared_with_the_first_one_by_cpu_of_store_and_gateway() -> None:
    (found,) = comparisons.comparisons(shared(count=1, **{"later-cpu": 10}))
    assert (found.arm, found.over, found.is_missed) == ("memory:later", "memory", False)
    assert found.ratio.median == pytest.approx(11)
    unknown = shared(count=1, **{"later-cpu": 10})
    for each in unknown.arms["memory"].trials:
        del each.cpu_seconds["store"]
    assert [each.ratio for each in comparisons.comparisons(unknown)] == [None]


def test_requirements_depend_on_the_number_of_jobs() -> None:
    features, pixels = load_all()["sharing"], load_all()["sharing-pixels"]
    assert kind.requirements(features, 1) == pytest.approx({"store-bytes": 1 / 1.02, "later-cpu": 10, "hit-cpu": 1})
    assert kind.requirements(features, 4) == pytest.approx({"store-bytes": 1 / 1.02, "jobs-cpu": 1 / 1.15})
    assert kind.requirements(pixels, 4) == pytest.approx({"store-bytes": 1 / 1.02, "jobs-cpu": 1 / 1.65})
    assert kind.requirements(pixels, 1) == pytest.approx({"store-bytes": 1 / 1.02, "hit-cpu": 1})
    assert list(kind.requirements(pixels, 10)) == ["store-bytes"]


def hits(cpu: float, samples: int = 100, computed: float = 0) -> Trial:
    """Four epochs; all tiers need `cpu` seconds in each, store and gateway half of that."""
    one = trial(*[1.0] * 4, cpu=4 * cpu, samples=samples)
    return with_counters(one, 4000, memory=4 * samples - computed, computed=computed)


def test_cpu_per_hit_is_compared_with_its_aim() -> None:
    cell = shared(count=1, **{"hit-cpu": 1})
    # 0.4 ms of 0.45, and 0.2 ms of 0.15.
    cell.arms |= {name: Arm("pushed", "", [hits(cpu)] * 3) for name, cpu in (("revalidated", 0.08), ("remembered", 0.04))}
    found = {each.arm: (each.over, each.is_missed, each.ratio.median) for each in comparisons.comparisons(cell)}
    assert found["revalidated"] == ("0.45 ms", False, pytest.approx(1.125))
    assert found["remembered"] == ("0.15 ms", True, pytest.approx(0.75))
    rows = arm_rows(cell)
    assert rows["remembered"][-8:] == ["1.00 KB", "1.00", "0.200 ms", "0", "100", "0", "0", "0"]
    assert rows["memory"][-6] == "-", "not all are hits"
    assert "| CPU s per hit: `0.15 ms / remembered` |" in report.markdown(results(cell, kind="sharing"))
    for each in cell.arms["remembered"].trials:
        each.cache_values["computed"], each.cache_values["memory"] = 40, 360
    assert [each.ratio for each in comparisons.comparisons(cell) if each.arm == "remembered"] == [None]


def test_a_trial_of_hits_waits_for_a_minute_with_enough_time() -> None:
    assert kind.seconds_to_wait(120) == kind.seconds_to_wait(159.9) == 0
    assert kind.seconds_to_wait(170) == 10


def arm_rows(cell: Cell) -> dict[str, list[str]]:
    """The rows of the first table of its section, by arm."""
    table = report.markdown(results(cell, kind="sharing")).split("\n| arm | samples/s |", 1)[1].split("\n\n", 1)[0]
    return {line.split("`")[1]: line.strip("| ").split(" | ")[1:] for line in table.splitlines()[2:]}


def test_the_table_has_the_rates_and_the_costs() -> None:
    rows = arm_rows(shared())
    assert list(rows) == ["memory", "off", "one", "memory:later"]
    assert rows["memory"][0] == "400 (400 to 400)" and rows["one"][0] == "100 (100 to 100)"
    assert rows["memory"][-7:] == ["1.01 KB", "0", *["0"] * 5]
    text = report.markdown(results(shared(**{"jobs-cpu": 1 / 1.15}), kind="sharing"))
    assert "| CPU s: `one / memory` | 0.909 (0.909 to 0.909 over 3 rounds) | - |" in text


def test_lines_have_the_cost_over_the_number_of_jobs(tmp_path: Path) -> None:
    run = results(shared(1), shared(4), kind="sharing")
    costs = figures.costs_of_jobs(run.scenarios[0])
    assert list(costs) == ["CPU seconds of store, gateway and host", "bytes from the store"]
    for lines in costs.values():
        assert [(line.group, [point.x for point in line.points]) for line in lines] == [("off", [1, 4]), ("memory", [1, 4])]
    assert costs["bytes from the store"][1].points[1].ratio.median == pytest.approx(1.01)
    plots = pytest.importorskip("e2e.plots", reason="matplotlib is in .venv-e2e", exc_type=ImportError)
    run.scenarios.append(dataclasses.replace(run.scenarios[0], name="pixels", settings={"group": "pixels"}))
    assert [path.name for path in plots.draw(run, tmp_path, {"jobs"})] == ["jobs.png", "jobs.svg"]


def test_each_trial_has_an_empty_gateway_and_readers_with_orders_of_their_own(tmp_path: Path) -> None:
    scenario = Scenario(
        "s", "", "sharing", False, pipeline="decode", arms=("disk", "off", "tfdata"), sizes=(2,), rounds=1, samples=100,
        gateway_flags=("--threads=1",),
    )  # fmt: skip
    tiers, (cell,) = measured(scenario, tmp_path)
    folder = f"--cache-dir={tmp_path / 'result-cache'}"
    plain = ("--threads=1",)
    assert tiers.gateways == [(*plain, "--cache-disk=1GiB", folder), plain, plain, plain], "one per trial, and at the end"
    disk = tiers.commands[:5]
    flags = [tuple(argument(line, flag) for flag in ("--seed", "--epoch", "--epochs")) for line in disk]
    # Other photos warm the gateway up; then two readers read two epochs, and another one.
    assert flags[0] == ("1", "0", "1") and disk[0][2].endswith("photos-25/")
    assert sorted(flags[1:3]) == [("1", "0", "2"), ("2", "0", "2")] and disk[1][2].endswith("photos-100/")
    assert sorted(flags[3:]) == [("1", "2", "1"), ("2", "2", "1")]
    assert list(cell.arms) == ["disk", "off", "one", "disk:later", "off:later", "one:later"]
    assert [cell.arms[name].trials[0].samples for name in cell.arms] == [200, 200, 100, 200, 200, 100]
    assert cell.baseline == "one" and cell.arms["disk:later"].trials[0].cache_values["memory"] > 0
    assert "tfdata is measured with 4 jobs only" in cell.notes


def measured(scenario: Scenario, folder: Path) -> tuple[FakeTiers, list[Cell]]:
    prefixes = SimpleNamespace(photos=lambda _, count: f"photos-{count}/")
    with counting_gateway() as admin, tqdm(disable=True) as progress:
        tiers = FakeTiers(admin)
        return tiers, list(kind.cells(scenario, RunContext(tiers, prefixes, folder, progress)))


def test_nothing_is_judged_by_jobs_without_a_cache_so_they_run_once(tmp_path: Path) -> None:
    scenario = Scenario("s", "", "sharing", False, pipeline="decode", arms=("memory", "off"), sizes=(1,), rounds=3, samples=100)
    _, (cell,) = measured(scenario, tmp_path)
    assert {name: len(arm.trials) for name, arm in cell.arms.items()} == {
        "memory": 3, "off": 1, "one": 3, "memory:later": 3, "off:later": 1, "one:later": 3,
    }  # fmt: skip


def test_hits_are_measured_with_one_job_after_an_epoch_that_the_gateway_remembers(tmp_path: Path) -> None:
    scenario = Scenario("s", "", "sharing", False, pipeline="decode", arms=("remembered",), sizes=(1, 2), rounds=1, samples=100)
    tiers, (one, two) = measured(scenario, tmp_path)
    assert tiers.gateways[0] == ("--cache-memory=512MiB", "--auth-cache-ttl=60s")
    flags = [tuple(argument(line, flag) for flag in ("--epoch", "--epochs")) for line in tiers.commands[1:4]]
    assert flags == [("0", "2"), ("2", "1"), ("3", "4")]
    assert one.arms["remembered"].trials[0].samples == 100 and targets.later("remembered") not in one.arms
    assert any(note.startswith("`remembered`: the store confirmed ") for note in one.notes)
    assert "remembered" not in two.arms and "remembered is measured with 1 job only" in two.notes


def test_both_pipelines_are_measured_with_all_settings_outside_of_the_default_matrix() -> None:
    scenarios = [each for each in load_all().values() if each.kind == "sharing"]
    assert {each.name for each in scenarios} == {"sharing", "sharing-pixels"}
    for each in scenarios:
        assert not each.default and each.sizes == (1, 2, 4, 10) and {"memory", "disk", "off"} <= set(each.arms) <= set(kind.ARMS)
