"""How a run ends, and how each trial starts; without a store and a link."""

import contextlib
import dataclasses
import http.server
import json
import subprocess
import sys
import threading
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

import stack  # noqa: E402
from tqdm import tqdm  # noqa: E402

from .. import __main__ as command  # noqa: E402
from .. import arms, comparisons, machine, report, results, run  # noqa: E402
from ..kinds import RunContext, read  # noqa: E402
from ..scenario import Scenario, ScenarioError, load_all, repeated_arm  # noqa: E402
from ..tiers import ArmError, Tiers  # noqa: E402
from .build import cell, trial  # noqa: E402
from .build import results as of_cells  # noqa: E402

CACHED = Scenario(
    "cached", "", "read", False, pipeline="decode | resize(short=8)", arms=("value-cache", "auto-first", "split:1"), rounds=3
)


class FakeTiers:
    """Tiers whose arms write into their folders, and record whether a folder was empty."""

    def __init__(self, folder: Path) -> None:
        self.stack = SimpleNamespace(
            store="http://store", gateway="http://gateway", store_cores={0}, external_tiers=[], model_folder=lambda _: folder
        )
        self.host_cores, self.found, self.commands = {1}, [], []

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, **environment: str) -> dict:
        self.commands.append([str(part) for part in command])
        cache = environment.get("XDG_CACHE_HOME")
        folder = Path(cache) if cache else command[command.index("--value-cache") + 1] if "--value-cache" in command else None
        if folder is not None:
            self.found.append(folder.exists() and any(folder.iterdir()))
            folder.mkdir(exist_ok=True)
            (folder / "left").touch()
        return {}

    def run_trial(self, arm) -> results.Trial:
        arm()
        return trial(1.0)


def measured(tmp_path: Path, scenario: Scenario = CACHED) -> tuple[FakeTiers, results.Cell]:
    tiers = FakeTiers(tmp_path)
    data = SimpleNamespace(photos=lambda *_: "photos/")
    with tqdm(disable=True) as progress:
        (found,) = read.cells(scenario, RunContext(tiers, data, tmp_path, progress))
    return tiers, found


def test_every_trial_starts_with_empty_scratch_folders(tmp_path: Path) -> None:
    tiers, _ = measured(tmp_path)
    assert tiers.found == [False] * (2 * CACHED.rounds)


def test_a_fixed_split_is_a_pushed_arm(tmp_path: Path) -> None:
    tiers, found = measured(tmp_path)
    assert found.arms["split:1"].kind == "pushed"
    (split, *_) = [line for line in tiers.commands if "--split" in line]
    assert split[split.index("--split") + 1] == "1" and split[split.index("--endpoint-url") + 1] == "http://gateway"


def test_an_arm_that_runs_next_to_an_external_store_is_not_started(tmp_path: Path) -> None:
    tiers = FakeTiers(tmp_path)
    tiers.stack.external_tiers = ["store"]
    data = SimpleNamespace(photos=lambda *_: "photos/")
    both = Scenario("both", "", "read", False, pipeline="decode | resize(short=8)", arms=("plain", "tfdata"))
    with tqdm(disable=True) as progress:
        # These tiers cannot start a program.
        (found,) = read.cells(both, RunContext(tiers, data, tmp_path, progress))
    assert set(found.arms) == {"plain"}
    assert "tfdata is left out: its workers run next to the store, and the store is external" in found.notes


def test_auto_is_compared_with_a_fixed_split() -> None:
    found = cell(plain=[2.0] * 3, pushed=[3.0] * 3, auto=[2.0] * 3)
    found.arms["split:3"] = results.Arm("pushed", "", [trial(1.0)] * 3)
    (best,) = [each for each in comparisons.comparisons(found) if each.rule == "best"]
    assert best.is_missed and best.under == "best of plain, pushed, split:3"


def test_a_named_arm_is_repeated_unchanged(tmp_path: Path) -> None:
    """Without plain reading, or if it is slow, the A/A test repeats the arm that ratios are taken against."""
    repeated = dataclasses.replace(CACHED, arms=("split:1", "repeat:split:1", "repeat:auto-first", "auto-first"), rounds=1)
    tiers, found = measured(tmp_path, repeated)
    assert [line for line in tiers.commands if "--split" in line] == [tiers.commands[0]] * 2
    assert tiers.commands[2] == tiers.commands[3] and tiers.found == [False] * 2
    assert {name: arm.kind for name, arm in found.arms.items()}["repeat:split:1"] == "repeat"


def test_every_scenario_of_the_default_matrix_has_an_a_a_arm() -> None:
    """A cell has to report its noise. Some kinds always have the arm."""
    named = {name: each.arms for name, each in load_all().items() if each.default and each.arms}
    assert [name for name, arms_ in named.items() if not any(repeated_arm(arm) for arm in arms_)] == []
    assert {each.kind for each in load_all().values() if each.default and not each.arms} == {"forward", "growth", "transfer"}


def test_a_scenario_of_the_default_matrix_simulates_an_accelerator() -> None:
    """In other scenarios the trainer always waits, so the stall column would have no information."""
    assert any(each.trainer_step_ms for each in load_all().values() if each.default and each.kind == "read")


@pytest.mark.parametrize("arms_", [("pushed", "repeat"), ("plain", "repeat:pushed"), ("plain", "repeat:again:plain")])
def test_a_repeated_arm_has_to_be_in_the_list(arms_: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=f"arms: {arms_[-1]} repeats an arm that is not in the list"):
        Scenario("lone", "", "read", False, pipeline="decode", arms=arms_)


@pytest.mark.parametrize("name", ["split:0", "split:K", "split:", "split:full", "splt:3", "repeat:"])
def test_a_split_requires_a_number_of_steps(name: str) -> None:
    faulty = Scenario("faulty", "", "read", False, pipeline="decode", arms=("plain", name))
    with pytest.raises(ScenarioError, match=f"expected some of .*split:K.*, found {name}"):
        run.Options([faulty], Path())


def test_every_scenario_names_known_arms() -> None:
    assert run.Options(list(load_all().values()), Path()).scenarios


class Stacks:
    """Stacks that start nothing."""

    def __init__(self, **options: object) -> None:
        self.options = SimpleNamespace(has_external_store=False, **options)
        self.progress = SimpleNamespace(write=lambda *_, **__: None)

    def context_for(self, _: Scenario) -> None:
        return None

    def stop(self) -> None:
        """Records the call."""
        self.stopped = True


@pytest.mark.parametrize(
    "error, message",
    [
        (ArmError("it ended with 1"), "it ended with 1"),
        (KeyError("samples"), "KeyError: 'samples'"),
        (stack.NotStarted("nginx did not start:\nno port"), "nginx did not start: no port"),
    ],
)
def test_a_failed_scenario_differs_from_a_skipped_one(monkeypatch, error: BaseException, message: str) -> None:
    def breaks(*_: object):
        yield cell(plain=[1.0] * 3)
        raise error

    monkeypatch.setattr(read, "cells", breaks)
    broken, skipped = (results.Scenario(name, name, {}) for name in ("broken", "skipped"))
    link = SimpleNamespace(reason="")
    stacks = Stacks()
    broken.cells = list(run.cells(CACHED, stacks, link, broken))
    assert (" ".join(broken.error.split()), broken.skip_reason, len(broken.cells), stacks.stopped) == (message, "", 1, True)
    assert broken.duration_seconds >= 0
    thin = Scenario("thin", "", "read", False, pipeline="decode", arms=("plain",), links=("0.3 B",))
    assert list(run.cells(thin, Stacks(), SimpleNamespace(reason="shaping requires root"), skipped)) == []
    assert skipped.error == "" and "shaping requires root" in skipped.skip_reason and skipped.duration_seconds is None

    found = of_cells()
    found.scenarios = [skipped]
    assert run.exit_status(found, check=True) == 0
    found.scenarios.append(broken)
    assert run.exit_status(found, check=False) == 1
    missed, met = (of_cells(cell(plain=[1.0] * 3, auto=auto)) for auto in ([1.0, 1.1, 1.1], [1.0, 1.0, 1.1]))
    assert [run.exit_status(each, check=check) for each in (missed, met) for check in (True, False)] == [1, 0, 0, 0]
    text = report.markdown(found)
    assert f"**broken failed**: {message}" in text and "skipped was skipped: it needs shaped links" in text
    assert "broken was skipped" not in text


def test_a_run_ends_on_request(monkeypatch) -> None:
    def ends(*_: object):
        yield cell(plain=[1.0] * 3)
        sys.exit(143)

    monkeypatch.setattr(read, "cells", ends)
    with pytest.raises(SystemExit, match="143"):
        list(run.cells(CACHED, Stacks(), SimpleNamespace(reason=""), results.Scenario("ends", "", {})))


def test_the_duration_of_a_scenario_is_that_of_its_cells(monkeypatch) -> None:
    def slow(*_: object):
        for _ in range(2):
            time.sleep(0.05)
            yield cell(plain=[1.0] * 3)

    monkeypatch.setattr(read, "cells", slow)
    measured_ = results.Scenario("slow", "", {})
    so_far = [measured_.duration_seconds for _ in run.cells(CACHED, Stacks(), SimpleNamespace(reason=""), measured_)]
    assert 0.05 <= so_far[0] < so_far[1] - 0.04


def test_without_shaping_the_open_link_variant_runs() -> None:
    known = load_all()
    chosen = lambda **how: [each.name for each in run.Options([known["features-100mbit"]], Path(), **how).scenarios]
    assert chosen() == ["features-100mbit"]
    assert chosen(shaping=False) == ["features-100mbit", "features-open"]
    link = SimpleNamespace(reason="shaping requires root")
    why = run.skip_reason(known["features-100mbit"], SimpleNamespace(has_external_store=False), link)
    assert why.startswith("it needs shaped links, and shaping requires root; features-open, ") and why.endswith("runs instead")
    # This scenario has no variant.
    assert run.Options([known["augmented"]], Path(), shaping=False).scenarios == [known["augmented"]]


def test_a_scenario_with_latency_requires_netem() -> None:
    late = load_all()["features-latency"]
    why = lambda **link: run.skip_reason(late, SimpleNamespace(has_external_store=False), SimpleNamespace(**link))
    assert late.latency_ms == 20 and not late.default
    assert "netem" in why(reason="", can_delay=lambda: False)
    assert why(reason="", can_delay=lambda: True) == ""
    assert "shaping requires root" in why(reason="shaping requires root")


def test_webdataset_is_a_candidate_plain_reader() -> None:
    peers = {name for name, (kind, _) in arms.PEERS.items() if kind == "peer"}
    assert peers == {"boto3", "urllib3", "webdataset", "s3torchconnector"}


def test_a_cell_without_arms_says_why(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(arms.programs, "ROOT", tmp_path)
    lone = Scenario("lone", "", "read", False, pipeline="decode", arms=("tfdata", "boto3"), links=("open",))
    message = "no arm of lone can run on this machine: tfdata is left out"
    with tqdm(disable=True) as progress, pytest.raises(ArmError, match=message):
        list(read.cells(lone, RunContext(FakeTiers(tmp_path), SimpleNamespace(), tmp_path, progress)))


def test_a_fail_sets_the_status_only_with_check() -> None:
    lost = of_cells(cell(plain=[1.0] * 3, auto=[2.0] * 3))
    assert (run.exit_status(lost, check=False), run.exit_status(lost, check=True)) == (0, 1)
    won = of_cells(cell(plain=[1.0] * 3, auto=[0.5] * 3))
    assert run.exit_status(won, check=True) == 0


def test_each_side_has_the_cores_of_the_scenario(monkeypatch) -> None:
    monkeypatch.setattr(stack, "CORES", [0, 1, 4, 5])
    assert stack.split_cores() == ({5}, {0})
    assert stack.split_cores(store=1, host=3) == ({1, 4, 5}, {0})
    assert stack.split_cores(store=2, host=2) == ({4, 5}, {0, 1})
    with pytest.raises(ValueError, match="expected 3 for the store's side and 2 for the host, found 4"):
        stack.split_cores(store=3, host=2)
    monkeypatch.setattr(stack, "CORES", [7])
    assert stack.split_cores() == ({7}, {7})
    wide = Scenario("wide", "", "forward", False, host_cores=2)
    assert "found 1" in run.skip_reason(wide, SimpleNamespace(has_external_store=False), SimpleNamespace(reason=""))


def test_a_scenario_without_its_model_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image may have one model only, and the others would fail in every arm."""
    monkeypatch.setattr(run, "MODELS", tmp_path)
    why = lambda: run.skip_reason(load_all()["features-open"], SimpleNamespace(has_external_store=False), SimpleNamespace(reason=""))
    assert "it needs the model efficientnet_lite0: `scripts/models.sh efficientnet_lite0`" in why()
    (tmp_path / "efficientnet_lite0.onnx").touch()
    assert why() == ""



def test_a_command_runs_on_the_cores_of_its_side() -> None:
    core = stack.CORES[0]
    tiers = Tiers(SimpleNamespace(link=None, store_cores={core}), {core})
    inputs = tiers.run([sys.executable, "-c", "import os; print(list(os.sched_getaffinity(0)))"])
    assert inputs == [core]


def test_the_measured_rate_of_a_fast_link_is_used_and_printed(tmp_path: Path, monkeypatch) -> None:
    """The request may exceed what this machine's link passes."""
    inputs = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        inputs.append(json.loads(pipes["input"])["link_bits"])
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 1, "bound": "link"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    tiers, data = FakeTiers(tmp_path), SimpleNamespace(photos=lambda *_: "photos/")
    tiers.shape = lambda bits, _: 1.6e9 if bits == 2.5e9 else None
    wide = Scenario("wide", "", "read", False, pipeline="decode", arms=("plain", "pushed"), links=("2500 Mbit/s",))
    with tqdm(disable=True) as progress:
        (found,) = read.cells(wide, RunContext(tiers, data, tmp_path, progress))
    assert (found.requested_bits_per_second, found.measured_bits_per_second, found.bandwidth) == (2.5e9, 1.6e9, 1.6e9)
    assert inputs == [1.6e9] * wide.rounds
    assert "link: 2.50 Gbit/s requested, 1.60 Gbit/s measured" in report.markdown(of_cells(found))


class Named(http.server.BaseHTTPRequestHandler):
    """A store that names itself and refuses all requests."""

    def version_string(self) -> str:
        return "SomeStore/7"

    def do_GET(self) -> None:
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def test_an_external_store_and_its_command_are_in_the_report() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Named) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(server.shutdown)
            url = f"http://me:secret@127.0.0.1:{server.server_port}"
            named = machine.describe_store(url)
    plain = machine.without_credentials(url)
    assert named == f"{plain} (SomeStore/7)"
    assert machine.describe_store(f"{plain}0") == f"{plain}0"
    arguments = Namespace(upstream=url, gateway=None, gateway_admin=None, interface=None, rounds=5, no_shaping=True)
    found = of_cells(cell(plain=[1.0]))
    found.environment.store, found.environment.flags = named, list(command.flags(arguments))
    text = report.markdown(found)
    assert f"| store | {plain} (SomeStore/7), external |" in text
    assert f"| command | `scripts/e2e.sh run --upstream {plain} --rounds 5 --no-shaping` |" in text
    assert f"\n`scripts/e2e.sh run --upstream {plain} --rounds 5 --no-shaping s`\n" in text
    assert "secret" not in text and "make bench-e2e" not in text
