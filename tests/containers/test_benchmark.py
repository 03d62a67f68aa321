"""The end-to-end benchmark as docker/README.md starts it, and its figures beside those of a run without containers."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

import engine as engines
import pytest
from conftest import ARGUMENTS, CPUS
from engine import Compose, Engine

PORTS = {f"{service}_PORT": "0" for service in ("STORE", "GATEWAY", "ADMIN")}
# What both kinds of runs measure: shaped link, store and gateway on one CPU, trainer on the other.
COMPARED = "features-100mbit"
# What a container's network and limits may cost, beyond the range of the rounds.
TOLERANCE = 0.1
# Scenarios that an external store or gateway, or one model, cannot measure, by the reason that the run states.
SKIPPED = {"tenants": "the store refuses", "shufflenet": "it needs the model shufflenet"}


def measured(results: pathlib.Path) -> dict[str, dict]:
    """The scenarios of the only run in a folder, by name."""
    (file,) = results.glob("e2e-*.json")
    print(file.with_suffix(".md").read_text(encoding="utf-8"))
    return {scenario["name"]: scenario for scenario in json.loads(file.read_text(encoding="utf-8"))["scenarios"]}


def run_in_containers(
    engine: Engine, overlay: str, results: pathlib.Path, scenarios: str, rounds: str = "scenario"
) -> dict[str, dict]:
    """Runs the profile `bench` to its end, and returns the scenarios that it measured."""
    variables = CPUS | ARGUMENTS | PORTS | {"RESULTS": str(results), "SCENARIOS": scenarios, "ROUNDS": rounds}
    with Compose(engine, overlay, profiles=("bench",), **variables) as compose:
        assert compose.show("up", "--detach", "--no-build") == 0, compose.run("logs", "--tail", 40).stdout
        engine.show("logs", "--follow", compose.container("bench"))
        assert compose.inspect("bench", ".State.ExitCode") == "0", compose.run("logs", "--tail", 40).stdout
    return measured(results)


def run_without_containers(engine: Engine, image: str, folder: pathlib.Path) -> dict[str, dict]:
    """Runs the same programs on this machine."""
    for command in (["scripts/setup.sh", "e2e"], ["scripts/photos.sh", "all"], ["scripts/photos.sh", "elpv"]):
        subprocess.run(command, cwd=engines.ROOT, check=True)
    subprocess.run(["scripts/models.sh", ARGUMENTS["MODELS"]], cwd=engines.ROOT, check=True)
    container = engine.docker("create", image).stdout.strip()
    engine.docker("cp", f"{container}:/opt/pushdown/target", folder)
    engine.docker("rm", container)
    command = ["scripts/e2e.sh", "run", COMPARED, f"--results={folder / 'results'}"]
    environment = os.environ | {"E2E_SETUP": "0", "CARGO_TARGET_DIR": str(folder / "target")}
    ended = subprocess.run(command, cwd=engines.ROOT, env=environment, stdin=subprocess.DEVNULL, check=False)
    if ended.returncode == 2:
        pytest.skip("links cannot be shaped on this machine")
    assert ended.returncode == 0
    return measured(folder / "results")


def rates(scenario: dict) -> dict[str, list[float]]:
    """Samples per second of each round, by arm."""
    (cell,) = scenario["cells"]
    rate = lambda trial: trial["samples"] * len(trial["epoch_seconds"]) / sum(trial["epoch_seconds"])
    return {name: [rate(trial) for trial in arm["trials"]] for name, arm in cell["arms"].items() if arm["trials"]}


def check_complete(scenario: dict) -> None:
    """A scenario has delivered every sample of every arm."""
    assert not scenario["error"] and not scenario["skip_reason"], scenario
    assert scenario["cells"], scenario["name"]
    for cell in scenario["cells"]:
        for name, arm in cell["arms"].items():
            assert all(trial["errors"] == 0 for trial in arm["trials"]), f"{scenario['name']}: {name}"


def test_the_default_matrix_with_juicefs(engine: Engine, images: dict[str, str], tmp_path: pathlib.Path) -> None:
    # This shows that every scenario runs in containers, in front of one more store. Two rounds are the fewest that have a range.
    scenarios = run_in_containers(engine, "juicefs", tmp_path, "default", rounds="2")
    for name, scenario in scenarios.items():
        if name in SKIPPED:
            assert SKIPPED[name] in scenario["skip_reason"], scenario
        else:
            check_complete(scenario)
    assert {COMPARED, *SKIPPED} <= set(scenarios)


def find_outliers(contained: dict[str, list[float]], direct: dict[str, list[float]]) -> list[str]:
    """The arms whose rates in containers and without them have ranges apart, each with both ranges."""
    outliers = []
    for name in contained.keys() & direct.keys():
        found, expected = contained[name], direct[name]
        if max(found) < min(expected) * (1 - TOLERANCE) or min(found) > max(expected) * (1 + TOLERANCE):
            outliers.append(
                f"{name}: {min(found):.1f} to {max(found):.1f} in containers, {min(expected):.1f} to {max(expected):.1f} without"
            )
    return outliers


def test_figures_equal_those_without_containers(
    engine: Engine, images: dict[str, str], tmp_path: pathlib.Path
) -> None:
    """SeaweedFS, gateway and trainer in containers are as fast as on the machine itself, within the range of either."""
    (results := tmp_path / "results").mkdir()
    scenario = run_in_containers(engine, "seaweedfs", results, COMPARED)[COMPARED]
    check_complete(scenario)
    contained = rates(scenario)
    direct: dict[str, list[float]] = {}
    # Rounds of one sitting are closer to one another than two sittings are, so what is apart is measured once more.
    for sitting in range(2):
        (folder := tmp_path / f"direct-{sitting}").mkdir()
        for name, found in rates(run_without_containers(engine, images["bench"], folder)[COMPARED]).items():
            direct.setdefault(name, []).extend(found)
        outliers = find_outliers(contained, direct)
        if not outliers:
            break
    for name in contained.keys() & direct.keys():
        medians = statistics.median(contained[name]), statistics.median(direct[name])
        print("{:16} {:8.1f} samples/s in containers, {:8.1f} without".format(name, *medians), file=sys.stderr)
    assert not outliers, "\n".join(outliers)
    assert {"plain", "pushed", "auto"} <= contained.keys() & direct.keys()
