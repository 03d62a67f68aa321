"""Replicas of a gateway: how they are started, what a trial reads, and what is judged."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

import stack  # noqa: E402
from tqdm import tqdm  # noqa: E402

from .. import cgroups, comparisons, report, run, targets  # noqa: E402
from ..kinds import RunContext  # noqa: E402
from ..kinds import replicas as kind  # noqa: E402
from ..results import Arm, Cell, Trial  # noqa: E402
from ..scenario import Scenario, load_all  # noqa: E402
from ..tiers import ArmError, Tiers  # noqa: E402
from .build import results, trial  # noqa: E402
from .fake_gateway import argument  # noqa: E402

SCENARIO = Scenario(
    "s", "", "replicas", False, group="pixels", pipeline="decode | to_tensor", samples=40, rounds=2, sizes=(3,),
    gateway_flags=("--log-level=warn",),
)  # fmt: skip


class FakeTiers:
    """Tiers whose replicas use the CPU of a whole quota in each trial of 2 s, and record what runs."""

    def __init__(self, folder: Path) -> None:
        self.started, self.groups, self.reads, self.counted = {}, {}, [], 0
        self.host_cores = {1}
        self.link = SimpleNamespace(gateway=SimpleNamespace(command=[]))
        self.stack = SimpleNamespace(
            store="http://127.0.0.1:9000", spare_port=9900, store_cores={0}, external_tiers=[], models=folder / "models",
            wait=lambda _, is_done: is_done(), model_folder=lambda _: folder / "models",
        )  # fmt: skip
        self.used_cores, self.stages = 0.1, {"2": 1}

    @contextlib.contextmanager
    def limited(self, name: str, cores: float) -> Iterator[SimpleNamespace]:
        assert cores == 0.1
        self.groups[name] = SimpleNamespace(cpu_seconds=lambda: self.counted * 2 * self.used_cores, command=lambda command: command)
        yield self.groups[name]
        del self.groups[name]

    @contextlib.contextmanager
    def running(self, _: "FakeTiers", name: str, command: list) -> Iterator[None]:
        self.started[name] = [str(part) for part in command]
        yield

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, **environment: str) -> dict:
        hosts = Path(environment["PUSHDOWN_HOSTS_FILE"]).read_text(encoding="ascii").splitlines()
        self.reads.append(([str(part) for part in command], [line.split() for line in hosts]))
        assert len(self.groups) == 3 and self.host_cores == {0}
        return {}

    def run_trial(self, arm) -> Trial:
        arm()
        self.counted += 1
        addresses = len(self.reads[-1][1])
        return dataclasses.replace(trial(2.0, samples=addresses * 40), stages=self.stages)


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, tiers: FakeTiers, scenario: Scenario = SCENARIO) -> Cell:
    monkeypatch.setattr(kind, "running", tiers.running)
    monkeypatch.setattr(kind.cgroups, "limited", tiers.limited)
    prefixes = SimpleNamespace(photos=lambda _, count: f"photos-{count}/")
    with tqdm(disable=True) as progress:
        (cell,) = kind.cells(scenario, RunContext(tiers, prefixes, folder, progress))
    return cell


def test_replicas_share_a_port_and_have_quotas_ids_and_the_core_without_the_store(tmp_path: Path, monkeypatch) -> None:
    tiers = FakeTiers(tmp_path)
    cell = measured(tmp_path, monkeypatch, tiers)
    assert list(tiers.started) == ["replica-1", "replica-2", "replica-3"] and tiers.groups == {}
    for number, command in enumerate(tiers.started.values(), 1):
        assert command[:3] == ["taskset", "--cpu-list", "1"] and command[-1] == "--log-level=warn"
        flags = {flag: argument(command, flag) for flag in ("--listen", "--admin-listen", "--allow-store", "--replica-id")}
        assert flags == {
            "--listen": f"127.0.0.{number + 1}:9900", "--admin-listen": f"127.0.0.{number + 1}:0",
            "--allow-store": "http://127.0.0.1:9000", "--replica-id": f"gw-{number}",
        }  # fmt: skip
        assert (argument(command, "--threads"), argument(command, "--io-threads")) == ("1", "1")
    assert "replicas on core 1, store and reader on core 0" in cell.notes


def test_both_arms_read_as_many_samples_of_each_replica_by_one_name(tmp_path: Path, monkeypatch) -> None:
    tiers = FakeTiers(tmp_path)
    cell = measured(tmp_path, monkeypatch, tiers)
    read = [(command[2], len(hosts)) for command, hosts in tiers.reads]
    one, all_ = ("s3://samples/photos-40/", 1), ("s3://samples/photos-120/", 3)
    # After a warm-up of all; each round starts with another arm.
    assert read == [("s3://samples/photos-30/", 3), one, all_, all_, one]
    for command, hosts in tiers.reads:
        assert argument(command, "--gateway") == "http://gateway.internal:9900"
        assert argument(command, "--endpoint-url") == "http://127.0.0.1:9000" and argument(command, "--split") == "full"
        assert hosts == [[f"127.0.0.{number}", "gateway.internal"] for number in range(2, 2 + len(hosts))]
    assert {name: [each.samples for each in arm.trials] for name, arm in cell.arms.items()} == {
        "one-replica": [40, 40], "all-replicas": [120, 120],
    }  # fmt: skip
    assert cell.baseline == "one-replica" and cell.x == 3
    assert "`one-replica`: cores used by each replica: 0.100 of 0.1" in cell.notes
    assert "`all-replicas`: cores used by each replica: 0.100, 0.100, 0.100 of 0.1" in cell.notes


def test_in_a_namespace_replicas_have_addresses_of_its_own(monkeypatch) -> None:
    added = []
    monkeypatch.setattr(kind.subprocess, "run", lambda command, check: added.append(command))
    inside = ["ip", "netns", "exec", "gateway"]
    found = kind.add_addresses(SimpleNamespace(gateway=SimpleNamespace(command=inside)), 2)
    assert found == ["198.18.1.2", "198.18.1.3"]
    assert added == [[*inside, "ip", "address", "replace", f"{address}/32", "dev", "lo"] for address in found]


def test_a_quota_that_does_not_hold_fails(tmp_path: Path, monkeypatch) -> None:
    tiers = FakeTiers(tmp_path)
    tiers.used_cores = 0.12
    with pytest.raises(ArmError, match="a CPU quota does not hold: expected at most 0.1 core, found 0.120"):
        measured(tmp_path, monkeypatch, tiers)


@pytest.mark.parametrize("stages", [{"0": 40}, {"0": 3, "2": 37}, {"1": 3, "2": 37}])
def test_samples_that_replicas_did_not_compute_fail(tmp_path: Path, monkeypatch, stages: dict) -> None:
    tiers = FakeTiers(tmp_path)
    tiers.stages = stages
    with pytest.raises(ArmError, match="expected all steps of all samples at the replicas"):
        measured(tmp_path, monkeypatch, tiers)


def scaled(*seconds: float, errors: int = 0) -> Cell:
    """One replica reads 100 samples in 1 s, eight read 800 in these seconds."""
    arms = {targets.ONE_REPLICA: Arm("pushed", "", [trial(1.0) for _ in seconds])}
    arms[targets.ALL_REPLICAS] = Arm("pushed", "", [trial(each, samples=800, errors=errors) for each in seconds])
    return Cell("features, 8 replicas", "replicas", 8.0, "replicas", None, None, None, targets.ONE_REPLICA, [], None, arms)


def test_all_replicas_are_compared_with_that_many_times_one() -> None:
    (found,) = comparisons.comparisons(scaled(1.0, 1.25, 1.25))
    assert (found.rule, found.name, found.ratio.median) == ("linear", "`all-replicas / 8 x one-replica`", pytest.approx(0.8))
    assert found.is_missed
    (met,) = comparisons.comparisons(scaled(1.0, 1.1, 1.2))
    assert met.ratio.median == pytest.approx(1 / 1.1) and not met.is_missed
    (failed,) = comparisons.comparisons(scaled(1.0, 1.0, errors=1))
    assert failed.is_missed
    text = report.markdown(results(scaled(1.25), kind="replicas"))
    assert "## Replicas" in text
    assert "| `all-replicas / 8 x one-replica` | 0.800 (0.800 to 0.800 over 1 round) | ≥ 0.9: **missed** |" in text


def test_nothing_is_compared_with_a_replica_that_failed_samples() -> None:
    cell = scaled(1.0)
    cell.arms[targets.ONE_REPLICA].trials[0].errors = 1
    assert comparisons.comparisons(cell) == []


def test_cpu_of_all_replicas_is_that_of_the_gateway() -> None:
    process = SimpleNamespace(pid=1)
    names = ["weed", "gateway", "replica-1", "replica-2", "other-1"]
    tiers = Tiers(SimpleNamespace(link=None, external_tiers=[], started=[(name, process) for name in names]))
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr("e2e.tiers.psutil.Process", lambda _: SimpleNamespace(children=lambda recursive: []))
        assert {tier: len(found) for tier, found in tiers.store_side_processes().items()} == {"store": 1, "gateway": 3}


def test_a_machine_without_quotas_or_a_second_core_skips_them(monkeypatch) -> None:
    options = lambda external: SimpleNamespace(has_external_store=external, gateway=None, upstream="http://store")
    why = lambda external=False: run.skip_reason(SCENARIO, options(external), SimpleNamespace(reason=""))
    monkeypatch.setattr(stack, "CORES", [0, 1])
    monkeypatch.setattr(cgroups, "unavailable_reason", lambda: "")
    assert why() == ""
    assert "the store is external" in why(external=True)
    monkeypatch.setattr(cgroups, "unavailable_reason", lambda: "CPU quotas require root")
    assert why() == "it needs CPU quotas. CPU quotas require root"
    monkeypatch.setattr(stack, "CORES", [0])
    assert "this machine has one core" in why()


def test_features_and_pixels_are_measured_with_eight_replicas_outside_of_the_default_matrix() -> None:
    scenarios = {name: each for name, each in load_all().items() if each.kind == "replicas"}
    assert {name: each.models for name, each in scenarios.items()} == {"replicas": ("efficientnet_lite0",), "replicas-pixels": ()}
    assert all(each.sizes == (8,) and not each.default for each in scenarios.values())
