"""The harness: shaped links have their rates, all byte counters agree, and nothing is left behind.

Tests that shape links require root and a kernel that permits namespaces. Otherwise they are skipped.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import links
import programs
import pytest
from stack import BUCKET, MODELS, RUNTIME, Stack

from e2e import __main__ as command
from e2e import arms, comparisons, guard, results
from e2e.data import StoredData
from e2e.scenario import OPEN, Scenario, load_all
from e2e.tiers import HEADER_BYTES, Tiers

from . import wire
from .processes import alive, descendants, wait

ROOT = programs.ROOT
SCENARIO = Path(__file__).parent / "fixtures/smoke.toml"
WHY_NOT = links.why_not_shapeable()
shaped = pytest.mark.skipif(bool(WHY_NOT), reason=f"links cannot be shaped: {WHY_NOT}")
built = pytest.mark.skipif(not arms.PUSHDOWN.exists(), reason=f"{arms.PUSHDOWN} is not built")
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT / 'bench'}:{ROOT / 'scripts'}"}
RUN = [sys.executable, "-m", "e2e", "run"]


@pytest.fixture(name="tiers", scope="module")
def tiers_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiers]:
    """Store, gateway and trainer in their namespaces."""
    folder = tmp_path_factory.mktemp("stack")
    with links.create() as link:
        stack = Stack(folder, link, [])
        try:
            yield Tiers(stack)
        finally:
            stack.stop()


@built
@shaped
@pytest.mark.parametrize("megabits", [10, 100, 1000])
def test_a_shaped_link_has_its_rate(tiers: Tiers, megabits: int) -> None:
    bits, gateway = megabits * 1e6, tiers.link.gateway
    assert tiers.shape(bits) == pytest.approx(bits, rel=0.05)
    # One second in each direction, measured by the receiver.
    for measure in (wire.down, wire.up):
        assert measure(gateway.command, gateway.address, int(bits / 8)) == pytest.approx(bits, rel=0.05), measure.__name__


@built
@shaped
def test_a_high_rate_is_measured_once(tiers: Tiers) -> None:
    measured = tiers.shape(8e9)
    assert 0 < measured < 8.4e9
    assert tiers.shape(8e9) == measured


@built
@shaped
@pytest.mark.parametrize("arm, pipeline", [("plain", "decode"), ("pushed", "decode | resize(short=256) | center_crop(224)")])
def test_reader_gateway_and_interface_count_the_same_bytes(tiers: Tiers, arm: str, pipeline: str) -> None:
    data, link = StoredData(tiers.stack), tiers.link
    photos = "testkit/fixtures/photos/jpeg_large.jpg"
    scenario = Scenario("bytes", "", "read", False, data=photos, samples=200, pipeline=pipeline, arms=(arm,))
    tiers.shape(200e6)
    command = arms.build_reader(arm, scenario, tiers, data, tiers.stack.folder).command
    # Plain reading also passes through the gateway, which forwards it.
    command[command.index("--endpoint-url") + 1] = tiers.stack.gateway
    before, wire = sent_by(tiers.stack.admin), link.counters()
    reader = tiers.run(command)
    after, passed = sent_by(tiers.stack.admin), link.counters()
    interface = passed["down"] - wire["down"] - HEADER_BYTES * (passed["packets_down"] - wire["packets_down"])
    assert after - before == pytest.approx(reader["value_bytes"], rel=0.02)
    assert reader["wire_bytes_down"] == pytest.approx(reader["value_bytes"], rel=0.02)
    assert interface == pytest.approx(reader["wire_bytes_down"], rel=0.02)


@built
@shaped
def test_a_slow_link_loses_no_packets_of_concurrent_requests(tiers: Tiers) -> None:
    """A lost packet can cost TCP seconds; the measurement should be of the link."""
    prefix = StoredData(tiers.stack).blobs(100_000, 96)
    sign = lambda index: {"Bucket": BUCKET, "Key": f"{prefix}/{index}"}
    urls = [tiers.stack.client.generate_presigned_url("get_object", sign(index)) for index in range(96)]
    tiers.shape(20e6)

    def length(url: str) -> int:
        with urllib.request.urlopen(url) as answer:
            return len(answer.read())

    with ThreadPoolExecutor(len(urls)) as pool:
        assert sum(pool.map(length, urls)) == 96 * 100_000
    assert dropped_packets(tiers.link) == 0


@built
@shaped
def test_a_new_link_setting_closes_gateway_connections_to_the_store(tiers: Tiers) -> None:
    """A connection keeps the single-packet limit of a slow link for its lifetime."""
    photos = "testkit/fixtures/photos/jpeg_large.jpg"
    settings = {"data": photos, "samples": 4, "pipeline": "decode | resize(32, 32)", "arms": ("pushed",)}
    scenario = Scenario("connections", "", "read", False, **settings)
    command = arms.build_reader("pushed", scenario, tiers, StoredData(tiers.stack), tiers.stack.folder).command
    tiers.shape(20e6)
    tiers.run(command)
    assert store_connections(tiers.link) > 0
    tiers.shape(OPEN)
    assert store_connections(tiers.link) == 0
    assert tiers.run(command)["errors"] == 0, "it opens new ones"


def store_connections(link: links.Links) -> int:
    """The number of connections between gateway and store."""
    show = [*link.gateway.command, "ss", "-Htn", "state", "established", "dst", link.store.address]
    return len(subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())


def dropped_packets(link: links.Links) -> int:
    """Packets dropped by the queues of a shaped link."""
    found = 0
    for command, device in link.ends:
        show = [*command, "tc", "-s", "-j", "qdisc", "show", "dev", device]
        ended = subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True)
        found += sum(queue["drops"] for queue in json.loads(ended.stdout))
    return found


def sent_by(admin: str) -> float:
    """Bytes of answers to clients, from the gateway's metric."""
    with urllib.request.urlopen(f"{admin}/metrics") as answer:
        text = answer.read().decode()
    return sum(float(value) for value in re.findall(r"^pushdown_client_sent_bytes_total(?:{[^}]*})? (\S+)$", text, re.M))


@built
def test_a_run_measures_compares_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ended = run("--results", tmp_path)
    assert ended.returncode == 0, ended.stderr
    (file,) = tmp_path.glob("*.json")
    found = results.load(file)
    (cell,) = found.scenarios[0].cells
    # Loaders of others that qualified take part, too.
    assert set(cell.arms) - set(arms.CONTENDERS) == {"plain", "repeat", "local", "pushed", "auto"}
    assert {"plain", "boto3", "webdataset"} <= set(cell.qualifying)
    assert all(run.samples_per_second > 0 and run.errors == 0 for run in cell.qualifying.values())
    sizes = {trial.value_bytes for name in ("local", "pushed") for trial in cell.arms[name].trials}
    assert sizes == {60 * 128 * 128 * 3}, "the same pipeline at the gateway and on local files"
    assert all(trial.errors == 0 and trial.samples == 60 for arm in cell.arms.values() for trial in arm.trials)
    assert found.environment.shaped == (WHY_NOT == "")
    assert "## Targets" in ended.stdout
    assert file.with_suffix(".md").exists()
    compared = e2e("compare", file, file)
    assert compared.returncode == 0 and "1.00" in compared.stdout
    assert leftovers() == []


@built
@shaped
def test_a_repetition_is_a_tie(tmp_path: Path) -> None:
    """Over a link that takes most of the time, so that background load does not matter."""
    text = SCENARIO.read_text(encoding="utf-8").replace('"pushed", "auto"', "")
    scenario = tmp_path / "tie.toml"
    scenario.write_text(f'{text}links = ["10 Mbit/s"]\n', encoding="utf-8")
    # With six rounds a single delayed one does not determine the median.
    ended = e2e("run", scenario, "--results", tmp_path, "--rounds", "6")
    assert ended.returncode == 0, ended.stderr
    (file,) = tmp_path.glob("*.json")
    (cell,) = results.load(file).scenarios[0].cells
    (repeat,) = [each for each in comparisons.comparisons(cell) if each.arm == "repeat"]
    assert 0.97 <= repeat.ratio.median <= 1.03, repeat


@built
@pytest.mark.parametrize("killed, number", [("outer", signal.SIGTERM), ("outer", signal.SIGKILL), ("inner", signal.SIGKILL)])
def test_a_killed_run_leaves_nothing_behind(tmp_path: Path, killed: str, number: signal.Signals) -> None:
    sockets = set(Path("/tmp").glob("seaweedfs-*"))
    outer = subprocess.Popen([*RUN, str(SCENARIO), "--results", tmp_path, *shaping_flags()], env=ENVIRONMENT, cwd=ROOT)
    wait("a reader runs", lambda: any("pushdown read" in line for line in descendants(outer.pid).values()))
    inner = next(process for process, line in descendants(outer.pid).items() if " inner" in line)
    started = [outer.pid, *descendants(outer.pid)]
    os.kill(outer.pid if killed == "outer" else inner, number)
    outer.wait(30)
    wait("all have ended", lambda: not any(alive(process) for process in started))
    wait("nothing is left", lambda: leftovers() == [])
    assert set(Path("/tmp").glob("seaweedfs-*")) <= sockets


def test_missing_shaping_rights_name_the_flag_without_shaping(tmp_path: Path) -> None:
    allowed = ENVIRONMENT | {"PATH": "/nonexistent"}
    ended = subprocess.run(
        [*RUN, str(SCENARIO), "--results", str(tmp_path)], env=allowed, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0
    assert "links cannot be shaped" in ended.stderr and "--no-shaping" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_missing_shaping_rights_are_reported_before_the_set_up(tmp_path: Path) -> None:
    """The message names both the flag of the script and the variable of make."""
    for name, text in {"id": "echo 1000", "cargo": "exit 9"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "E2E_SETUP": "0"}
    command = [ROOT / "scripts/e2e.sh", "run", "forward"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2 and ended.stdout == ""
    assert "requires root" in ended.stderr and "--no-shaping" in ended.stderr and "NO_SHAPING=1" in ended.stderr


@pytest.mark.parametrize("flags", [["--no-shaping"], ["--interface", "lo"]])
def test_an_unreachable_external_store_is_refused(flags: list[str]) -> None:
    ended = e2e("run", SCENARIO, "--upstream", "http://me:secret@store.example:9000")
    assert ended.returncode == 2 and "--no-shaping" in ended.stderr and "--interface" in ended.stderr
    assert "http://store.example:9000" in ended.stderr and "secret" not in ended.stderr
    # The next check fails.
    ended = e2e("run", "--upstream", "http://store.example:9000", *flags, "no-such-scenario")
    assert "unknown scenario" in ended.stderr


def test_rounds_are_a_number_or_those_of_the_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = lambda text: command.parser().parse_args(["run", f"--rounds={text}"]).rounds
    assert (rounds("2"), rounds("scenario")) == (2, None)
    for invalid in ("", "0", "-1", "two"):
        with pytest.raises(SystemExit):
            rounds(invalid)
        assert "expected a whole number from 1 on" in capsys.readouterr().err


@pytest.mark.parametrize("names", [[], ["default"], ["default "], [""]])
def test_no_scenario_and_the_name_default_are_the_default_matrix(names: list[str]) -> None:
    """Compose files pass one argument, whatever it contains."""
    chosen = lambda *given: [each.name for each in command.selected_scenarios(command.parser().parse_args(["run", *given]))]
    assert chosen(*names) == [name for name, each in load_all().items() if each.default]
    assert chosen("pixels shards-open") == ["pixels", "shards-open"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("title = 'T'\nkind = 'read'\n", "missing: default"),
        ("title = 'T'\nkind = 'reed'\ndefault = true\n", "kind: expected one of read, forward, table, "),
        ("title = 'T'\nkind = 'forward'\ndefault = true\nlinks = ['fast']\n", "expected a link such as '0.3 B'"),
        ("title = 'T'\nkind = 'forward'\ndefault = true\nsamplse = 3\n", "unknown: samplse"),
        ("title = 'T'\nkind = 'forward'\ndefault = true\nsamples = 'many'\n", "samples: expected int, found 'many'"),
        ("title = 'T'\nkind = 'read'\ndefault = true\n", "pipeline: expected one for the kind read, found none"),
        ("title = 'T'\nkind = 'growth'\ndefault = true\nsizes = [9]\n", "expected one for the kind growth"),
        ("title = 'T'\nkind = 'tenants'\ndefault = true\narms = ['plain']\n", "expected one for the kind tenants"),
        ("title = 'T'\nkind = 'read'\ndefault = true\npipeline = 'decode'\n", "arms: expected some for the kind read, found none"),
        ("title = 'T'\nkind = 'table'\ndefault = true\n", "arms: expected some for the kind table, found none"),
        ("title = ", "Invalid value"),
    ],
)
def test_a_faulty_scenario_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "faulty.toml").write_text(text, encoding="utf-8")
    ended = e2e("run", tmp_path / "faulty.toml")
    assert ended.returncode == 1 and message in ended.stderr and "faulty.toml" in ended.stderr


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    ended = e2e("run", "fetures-100mbit")
    assert ended.returncode == 1 and "features-100mbit" in ended.stderr


@built
def test_an_unknown_arm_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    text = SCENARIO.read_text(encoding="utf-8").replace('"pushed"', '"pusht"')
    (tmp_path / "faulty.toml").write_text(text, encoding="utf-8")
    ended = e2e("run", tmp_path / "faulty.toml", "--results", tmp_path)
    assert ended.returncode == 1 and "found pusht" in ended.stderr and "boto3" in ended.stderr


@built
def test_every_pipeline_of_a_scenario_is_valid(tmp_path: Path) -> None:
    """A run would report a faulty pipeline only after the upload."""
    env = ENVIRONMENT | {"ORT_DYLIB_PATH": str(RUNTIME)}
    # Many scenarios share a pipeline.
    for each in {each.pipeline: each for each in load_all().values()}.values():
        weights = [MODELS / f"{model}.onnx" for model in each.models]
        # A model without weights is unknown, and large ones take seconds.
        is_local = all(file.exists() and file.stat().st_size < 64 << 20 for file in weights)
        pipeline = each.pipeline if is_local else each.pipeline.partition(" | normalize")[0]
        # The command opens every model in the folder.
        folder = tmp_path / each.name
        folder.mkdir()
        for file in (file for model in each.models if is_local for file in MODELS.glob(f"{model}.*")):
            (folder / file.name).symlink_to(file)
        if pipeline:
            command = [arms.PUSHDOWN, "check", pipeline, "--models", folder]
            ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, f"{each.name}: {ended.stderr}"


def test_every_scenario_can_be_listed() -> None:
    ended = e2e("list")
    assert ended.returncode == 0
    assert len(ended.stdout.splitlines()) == len(list((ROOT / "bench/e2e/scenarios").glob("*.toml")))


def shaping_flags() -> list[str]:
    """Without the right to shape links, test without shaping."""
    return ["--no-shaping"] if WHY_NOT else []


def run(*arguments: object) -> subprocess.CompletedProcess:
    return e2e("run", SCENARIO, *shaping_flags(), *arguments)


def e2e(*arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "e2e", *map(str, arguments)]
    return subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False)


def leftovers() -> list[str]:
    """Namespaces and folders of runs that have ended."""
    namespaces = links.NAMESPACES.glob("pushdown-*-*")
    mine = [path.name for path in namespaces if not alive(int(path.name.split("-")[1]))]
    folders = Path(tempfile.gettempdir()).glob(f"{guard.PREFIX}*")
    # Other runs may be active.
    return mine + [path.name for path in folders if not alive(int(path.name.removeprefix(guard.PREFIX).split("-")[0]))]
