"""How a run ends, and what each turn begins with; without a store and without a link."""

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
from .. import arms, machine, report, results, run, stats  # noqa: E402
from ..kinds import Run, read  # noqa: E402
from ..scenario import Scenario, ScenarioError, again, all_of  # noqa: E402
from ..tiers import ArmError, Tiers  # noqa: E402
from .build import cell, turn  # noqa: E402
from .build import results as of_cells  # noqa: E402

KEEPS = Scenario(
    "keeps", "", "read", False, pipeline="decode | resize(short=8)", arms=("kept", "auto-first", "split:1"), repeats=3
)


class Still:
    """Tiers whose arms leave something in their folders, and find out what is there before."""

    def __init__(self, folder: Path) -> None:
        self.stack = SimpleNamespace(
            store="http://store", gateway="http://gateway", there={0}, elsewhere=[], model_folder=lambda _: folder
        )
        self.here, self.found, self.commands = {1}, [], []

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, **environment: str) -> dict:
        self.commands.append([str(part) for part in command])
        cache = environment.get("XDG_CACHE_HOME")
        folder = Path(cache) if cache else command[command.index("--keep") + 1] if "--keep" in command else None
        if folder is not None:
            self.found.append(folder.exists() and any(folder.iterdir()))
            folder.mkdir(exist_ok=True)
            (folder / "left").touch()
        return {}

    def turn(self, arm) -> results.Turn:
        arm()
        return turn(1.0)


def measured(tmp_path: Path, scenario: Scenario = KEEPS) -> tuple[Still, results.Cell]:
    tiers = Still(tmp_path)
    data = SimpleNamespace(photos=lambda *_: "photos/")
    with tqdm(disable=True) as progress:
        (found,) = read.cells(scenario, Run(tiers, data, tmp_path, progress))
    return tiers, found


def test_no_round_finds_what_an_earlier_one_has_kept(tmp_path: Path) -> None:
    tiers, _ = measured(tmp_path)
    assert tiers.found == [False] * (2 * KEEPS.repeats)


def test_a_fixed_split_is_an_arm_that_is_pushed(tmp_path: Path) -> None:
    tiers, found = measured(tmp_path)
    assert found.arms["split:1"].kind == "pushed"
    (split, *_) = [line for line in tiers.commands if "--split" in line]
    assert split[split.index("--split") + 1] == "1" and split[split.index("--endpoint-url") + 1] == "http://gateway"


def test_nothing_is_started_for_an_arm_that_belongs_beside_a_store_elsewhere(tmp_path: Path) -> None:
    tiers = Still(tmp_path)
    tiers.stack.elsewhere = ["store"]
    data = SimpleNamespace(photos=lambda *_: "photos/")
    both = Scenario("both", "", "read", False, pipeline="decode | resize(short=8)", arms=("plain", "tfdata"))
    with tqdm(disable=True) as progress:
        # These tiers have no place where a program could be started.
        (found,) = read.cells(both, Run(tiers, data, tmp_path, progress))
    assert set(found.arms) == {"plain"}
    assert "tfdata is left out: its workers run beside the store, which is elsewhere" in found.notes


def test_a_fixed_split_is_held_against_auto() -> None:
    found = cell(plain=[2.0] * 3, pushed=[3.0] * 3, auto=[2.0] * 3)
    found.arms["split:3"] = results.Arm("pushed", "", [turn(1.0)] * 3)
    (best,) = [each for each in stats.verdicts(found) if each.rule == "best"]
    assert best.outcome == "fail" and best.against == "plain or pushed or split:3"


def test_an_arm_that_is_named_is_run_once_more_just_as_it_is(tmp_path: Path) -> None:
    """Where nothing is read plainly, or that takes long, another arm is the one that ratios are taken against."""
    twice = dataclasses.replace(KEEPS, arms=("split:1", "again:split:1", "again:auto-first", "auto-first"), repeats=1)
    tiers, found = measured(tmp_path, twice)
    assert [line for line in tiers.commands if "--split" in line] == [tiers.commands[0]] * 2
    assert tiers.commands[2] == tiers.commands[3] and tiers.found == [False] * 2
    assert {name: arm.kind for name, arm in found.arms.items()}["again:split:1"] == "again"


def test_each_scenario_of_the_default_matrix_has_an_a_a_arm() -> None:
    """A cell that is run alone is to tell how calm its clock was. Some kinds always have one."""
    named = {name: each.arms for name, each in all_of().items() if each.default and each.arms}
    assert [name for name, arms_ in named.items() if not any(again(arm) for arm in arms_)] == []
    assert {each.kind for each in all_of().values() if each.default and not each.arms} == {"forward", "growth", "transfer"}


def test_somewhere_in_the_default_matrix_the_trainer_takes_its_time() -> None:
    """Everywhere else it waits all of the time, and the report's column of that tells nothing."""
    assert any(each.trainer_step_ms for each in all_of().values() if each.default and each.kind == "read")


@pytest.mark.parametrize("arms_", [("pushed", "again"), ("plain", "again:pushed"), ("plain", "again:again:plain")])
def test_what_is_run_once_more_is_one_of_the_arms(arms_: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=f"arms: {arms_[-1]} found without what is run once more"):
        Scenario("lone", "", "read", False, pipeline="decode", arms=arms_)


@pytest.mark.parametrize("name", ["split:0", "split:K", "split:", "split:full", "splt:3", "again:"])
def test_a_split_that_is_no_number_of_steps_is_no_arm(name: str) -> None:
    faulty = Scenario("faulty", "", "read", False, pipeline="decode", arms=("plain", name))
    with pytest.raises(ScenarioError, match=f"{name} found, expected some of .*split:K"):
        run.Options([faulty], Path())


def test_every_scenario_names_arms_that_there_are() -> None:
    assert run.Options(list(all_of().values()), Path()).scenarios


class Stacks:
    """Where nothing is started."""

    def __init__(self, **options: object) -> None:
        self.options = SimpleNamespace(elsewhere=False, **options)
        self.progress = SimpleNamespace(write=lambda *_, **__: None)

    def of(self, _: Scenario) -> None:
        return None

    def stop(self) -> None:
        """The next scenario has another one."""
        self.stopped = True


@pytest.mark.parametrize(
    "error, said",
    [
        (ArmError("it ended with 1"), "it ended with 1"),
        (KeyError("samples"), "KeyError: 'samples'"),
        (stack.NotStarted("nginx did not start:\nno port"), "nginx did not start: no port"),
    ],
)
def test_a_scenario_that_breaks_is_told_apart_from_one_that_is_skipped(monkeypatch, error: BaseException, said: str) -> None:
    def breaks(*_: object):
        yield cell(plain=[1.0] * 3)
        raise error

    monkeypatch.setattr(read, "cells", breaks)
    broken, skipped = (results.Scenario(name, name, {}) for name in ("broken", "skipped"))
    link = SimpleNamespace(reason="")
    stacks = Stacks()
    broken.cells = list(run.cells(KEEPS, stacks, link, broken))
    assert (" ".join(broken.broke.split()), broken.skipped, len(broken.cells), stacks.stopped) == (said, "", 1, True)
    assert broken.seconds >= 0
    thin = Scenario("thin", "", "read", False, pipeline="decode", arms=("plain",), links=("0.3 b*",))
    assert list(run.cells(thin, Stacks(), SimpleNamespace(reason="that takes root"), skipped)) == []
    assert skipped.broke == "" and "that takes root" in skipped.skipped and skipped.seconds is None

    found = of_cells()
    found.scenarios = [skipped]
    assert run.status(found, check=True) == 0
    found.scenarios.append(broken)
    assert run.status(found, check=False) == 1
    text = report.markdown(found)
    assert f"**broken broke**: {said}" in text and "skipped was skipped: its links" in text
    assert "broken was skipped" not in text


def test_a_run_that_is_asked_to_end_does_so(monkeypatch) -> None:
    def ends(*_: object):
        yield cell(plain=[1.0] * 3)
        sys.exit(143)

    monkeypatch.setattr(read, "cells", ends)
    with pytest.raises(SystemExit, match="143"):
        list(run.cells(KEEPS, Stacks(), SimpleNamespace(reason=""), results.Scenario("ends", "", {})))


def test_a_scenario_takes_as_long_as_its_cells(monkeypatch) -> None:
    def slow(*_: object):
        for _ in range(2):
            time.sleep(0.05)
            yield cell(plain=[1.0] * 3)

    monkeypatch.setattr(read, "cells", slow)
    measured_ = results.Scenario("slow", "", {})
    so_far = [measured_.seconds for _ in run.cells(KEEPS, Stacks(), SimpleNamespace(reason=""), measured_)]
    assert 0.05 <= so_far[0] < so_far[1] - 0.04


def test_where_links_stay_as_they_are_what_measures_the_same_over_an_open_one_runs_instead() -> None:
    known = all_of()
    chosen = lambda **how: [each.name for each in run.Options([known["features-100mbit"]], Path(), **how).scenarios]
    assert chosen() == ["features-100mbit"]
    assert chosen(shaping=False) == ["features-100mbit", "features-open"]
    why = run.why_not(known["features-100mbit"], SimpleNamespace(elsewhere=False), SimpleNamespace(reason="that takes root"))
    assert why.startswith("its links are to be shaped, and that takes root; features-open, ") and why.endswith("runs instead")
    # Of which there is no other.
    assert run.Options([known["augmented"]], Path(), shaping=False).scenarios == [known["augmented"]]


def test_a_scenario_with_latency_is_skipped_where_the_kernel_has_no_netem() -> None:
    late = all_of()["features-latency"]
    why = lambda **link: run.why_not(late, SimpleNamespace(elsewhere=False), SimpleNamespace(**link))
    assert late.latency_ms == 20 and not late.default
    assert "netem" in why(reason="", can_delay=lambda: False)
    assert why(reason="", can_delay=lambda: True) == ""
    assert "that takes root" in why(reason="that takes root")


def test_webdataset_is_one_of_the_loaders_that_are_tried_as_plain() -> None:
    peers = {name for name, (kind, _) in arms.PEERS.items() if kind == "peer"}
    assert peers == {"boto3", "urllib3", "webdataset", "s3torchconnector"}


def test_a_cell_of_which_every_arm_is_left_out_says_why(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(arms.programs, "ROOT", tmp_path)
    rivals = Scenario("rivals", "", "read", False, pipeline="decode", arms=("tfdata", "boto3"), links=("open",))
    with tqdm(disable=True) as progress, pytest.raises(ArmError, match="no arm of rivals can be run here: tfdata is left out"):
        list(read.cells(rivals, Run(Still(tmp_path), SimpleNamespace(), tmp_path, progress)))


def test_a_fail_is_a_status_only_where_that_is_asked_for() -> None:
    lost = of_cells(cell(plain=[1.0] * 3, auto=[2.0] * 3))
    assert (run.status(lost, check=False), run.status(lost, check=True)) == (0, 1)
    won = of_cells(cell(plain=[1.0] * 3, auto=[0.5] * 3))
    assert run.status(won, check=True) == 0


def test_sides_have_the_cores_that_a_scenario_asks_for(monkeypatch) -> None:
    monkeypatch.setattr(stack, "CORES", [0, 1, 4, 5])
    assert stack.sides() == ({5}, {0})
    assert stack.sides(store=1, host=3) == ({1, 4, 5}, {0})
    assert stack.sides(store=2, host=2) == ({4, 5}, {0, 1})
    with pytest.raises(ValueError, match="4 cores found, expected 3 for the store's side and 2"):
        stack.sides(store=3, host=2)
    monkeypatch.setattr(stack, "CORES", [7])
    assert stack.sides() == ({7}, {7})
    wide = Scenario("wide", "", "forward", False, host_cores=2)
    assert "1 cores found" in run.why_not(wide, SimpleNamespace(elsewhere=False), SimpleNamespace(reason=""))


def test_a_command_runs_on_the_cores_of_its_side() -> None:
    core = stack.CORES[0]
    tiers = Tiers(SimpleNamespace(link=None, there={core}), {core})
    told = tiers.run([sys.executable, "-c", "import os; print(list(os.sched_getaffinity(0)))"])
    assert told == [core]


def test_what_a_link_above_a_gigabit_was_measured_at_is_what_is_reckoned_with_and_printed(tmp_path: Path, monkeypatch) -> None:
    """What is asked may be more than this machine's link lets through."""
    told = []

    def simulator(_: list, **pipes: object) -> SimpleNamespace:
        told.append(json.loads(pipes["input"])["link_bits"])
        return SimpleNamespace(stdout='{"plain": 1, "pushed": 1, "auto": null, "best": 1, "bound": "link"}')

    monkeypatch.setattr(subprocess, "run", simulator)
    tiers, data = Still(tmp_path), SimpleNamespace(photos=lambda *_: "photos/")
    tiers.shape = lambda bits, _: 1.6e9 if bits == 2.5e9 else None
    wide = Scenario("wide", "", "read", False, pipeline="decode", arms=("plain", "pushed"), links=("2500 Mbit/s",))
    with tqdm(disable=True) as progress:
        (found,) = read.cells(wide, Run(tiers, data, tmp_path, progress))
    assert (found.asked_link_bits, found.link_bits, found.width) == (2.5e9, 1.6e9, 1.6e9)
    assert told == [1.6e9] * wide.repeats
    assert "link: 2.50 Gbit/s asked, 1.60 Gbit/s measured" in report.markdown(of_cells(found))


class Named(http.server.BaseHTTPRequestHandler):
    """A store that says what it is, and lets nobody in."""

    def version_string(self) -> str:
        return "SomeStore/7"

    def do_GET(self) -> None:
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_store_that_ran_already_is_named_and_so_is_the_command_that_reads_it_again() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Named) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with contextlib.ExitStack() as after:
            after.callback(server.shutdown)
            url = f"http://me:secret@127.0.0.1:{server.server_port}"
            named = machine.store(url)
    plain = machine.public(url)
    assert named == f"{plain} (SomeStore/7)"
    assert machine.store(f"{plain}0") == f"{plain}0"
    said = Namespace(upstream=url, gateway=None, gateway_admin=None, interface=None, repeats=5, no_shaping=True)
    found = of_cells(cell(plain=[1.0]))
    found.environment.store, found.environment.flags = named, list(command.flags(said))
    text = report.markdown(found)
    assert f"- Store: {plain} (SomeStore/7), which ran already" in text
    assert text.count(f"`scripts/e2e.sh run --upstream {plain} --repeats 5 --no-shaping s`") == 2
    assert "secret" not in text and "make bench-e2e" not in text
