"""Whole data sets: what a trial runs, by one gateway and by replicas, and what is judged."""

import contextlib
import dataclasses
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import comparisons, report, run  # noqa: E402
from ..kinds import RunContext  # noqa: E402
from ..kinds import materialize as kind  # noqa: E402
from ..kinds import materialize_replicas as of_replicas  # noqa: E402
from ..results import Arm, Cell, Trial  # noqa: E402
from ..scenario import Scenario, load_all  # noqa: E402
from ..tiers import ArmError  # noqa: E402
from .build import results, trial  # noqa: E402
from .fake_gateway import argument  # noqa: E402

PIPELINE = "decode(min_short=300) | resize(short=256) | encode(jpeg, quality=90)"
SCENARIO = Scenario(
    "s", "", "materialize", False, group="small", pipeline=PIPELINE, samples=80, batch_size=16, rounds=2,
    arms=("pushdown", "warm", "webdataset"), gateway_flags=("--threads=1",), min_peer_ratio=1.5,
)  # fmt: skip


class FakeTiers:
    """Tiers that run nothing, and record commands, gateways and objects."""

    def __init__(self) -> None:
        self.gateways, self.commands, self.put, self.host_cores = [], [], {}, {1}
        self.samples = 80
        self.link = SimpleNamespace(gateway=SimpleNamespace(command=[]))
        client = SimpleNamespace(
            put_object=lambda Bucket, Key, Body: self.put.update({Key: Body}),
            get_object=lambda Bucket, Key: {"Body": io.BytesIO(Key.encode())},
        )
        self.stack = SimpleNamespace(
            store="http://store", gateway="http://gateway", store_cores={0}, external_tiers=[], client=client, spare_port=9900,
            restart_gateway=lambda *flags: self.gateways.append(flags),
        )  # fmt: skip

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, statuses: tuple[int, ...] = (0,), **_: str) -> dict:
        line = [str(part) for part in command]
        self.commands.append(line)
        counts = {"samples": self.samples, "errors": 0, "seconds": 2.0}
        if line[1] == "warm":
            assert statuses == (0, 1), "the cache has no room"
            return counts | {"wire_bytes_up": 1, "wire_bytes_down": 2}
        if line[1] == "materialize":
            return counts | {"bytes": 4000, "vanished": 0}
        return counts | {"epoch_seconds": [4.0], "value_bytes": 4000, "cpu_seconds": 1.0, "settings": "boto3"}

    def run_trial(self, arm) -> Trial:
        found = arm()
        return trial(*found["epoch_seconds"], samples=found["samples"], errors=found["errors"])


def context(tiers: FakeTiers, folder: Path, progress: tqdm) -> RunContext:
    return RunContext(tiers, SimpleNamespace(photos=lambda _, count: f"photos-{count}/"), folder, progress)


def measured(tiers: FakeTiers, folder: Path, monkeypatch: pytest.MonkeyPatch, scenario: Scenario = SCENARIO) -> Cell:
    monkeypatch.setattr(kind, "unavailable_reason", lambda name: "")
    with tqdm(disable=True) as progress:
        (cell,) = kind.cells(scenario, context(tiers, folder, progress))
    return cell


def test_each_trial_writes_into_a_target_of_its_own_with_the_recipe_of_an_earlier_run(tmp_path: Path, monkeypatch) -> None:
    tiers = FakeTiers()
    cell = measured(tiers, tmp_path, monkeypatch)
    written = [(line[2], line[3]) for line in tiers.commands if line[1] == "materialize"]
    warm_up, whole = "s3://samples/photos-10/", "s3://samples/photos-80/"
    assert written == [(whole, "s3://samples/s-recipe/")] + [
        (photos, f"s3://samples/s-pushdown-{number}{what}/") for number in range(2) for photos, what in ((warm_up, "-warm-up"), (whole, ""))
    ]
    assert tiers.put == {f"s-pushdown-{number}/_recipe.json": b"s-recipe/_recipe.json" for number in range(2)}
    (first, *_) = tiers.commands
    flags = {flag: argument(first, flag) for flag in ("--part-samples", "--format", "--endpoint-url", "--pipeline")}
    assert flags == {"--part-samples": "16", "--format": "wds", "--endpoint-url": "http://gateway", "--pipeline": PIPELINE}
    assert {name: [each.samples for each in arm.trials] for name, arm in cell.arms.items()} == {
        "pushdown": [80, 80], "warm": [80, 80], "webdataset": [80, 80],
    }  # fmt: skip


def test_the_steps_alone_run_at_a_new_gateway_whose_cache_has_no_room(tmp_path: Path, monkeypatch) -> None:
    tiers = FakeTiers()
    measured(tiers, tmp_path, monkeypatch)
    own, warm = ("--threads=1",), ("--threads=1", "--cache-memory=1MiB")
    assert sorted(tiers.gateways) == sorted([own, warm, warm, own, own]), "one per trial of ours, and at the end"
    assert [line[2] for line in tiers.commands if line[1] == "warm"] == ["s3://samples/photos-10/", "s3://samples/photos-80/"] * 2


def test_programs_of_others_get_the_work_of_the_pipeline(tmp_path: Path, monkeypatch) -> None:
    tiers = FakeTiers()
    cell = measured(tiers, tmp_path, monkeypatch)
    (line, *_) = [line for line in tiers.commands if line[2] == "webdataset"]
    flags = ("--endpoint", "--prefix", "--target", "--short", "--quality", "--min-short", "--shard-samples")
    assert [argument(line, flag) for flag in flags] == ["http://store", "photos-80/", "s-webdataset-0/", "256", "90", "300", "16"]
    assert cell.arms["webdataset"].settings == "boto3"
    assert kind.number_after("decode | resize(short=256)", "min_short=") == 0


def test_a_trial_without_all_samples_fails(tmp_path: Path, monkeypatch) -> None:
    tiers = FakeTiers()
    tiers.samples = 79
    with pytest.raises(ArmError, match="expected 80 samples, found 79 and 0 failed ones"):
        measured(tiers, tmp_path, monkeypatch)


def test_programs_that_are_not_installed_are_left_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(kind, "python_of", lambda name: tmp_path / name)
    assert kind.unavailable_reason("litdata") == "litdata is left out: .venv-e2e-torch is not installed"
    assert kind.unavailable_reason("pushdown") == kind.unavailable_reason("warm") == ""


def judged(**cpu: dict[str, float]) -> Cell:
    """Arms with the CPU seconds of 1,000 samples on each tier."""
    kinds = {"pushdown": "pushed", "warm": "ceiling"}
    arms = {}
    for name, seconds in cpu.items():
        trials = [dataclasses.replace(trial(1.0, samples=1000), cpu_seconds=seconds) for _ in range(3)]
        arms[name] = Arm(kinds.get(name, "peer"), "", trials)
    required = {"peer-cpu": 2.0, "client-cpu": 1.0}
    return Cell("small", "materialize", None, "", None, None, None, "pushdown", [], None, arms, required=required)


def tiers_of(store: float, gateway: float, host: float) -> dict[str, float]:
    return {"store": store, "gateway": gateway, "host": host}


def test_cpu_is_compared_with_the_best_peer_the_limit_of_the_client_and_the_steps_alone() -> None:
    cell = judged(pushdown=tiers_of(1, 1.95, 0.05), warm=tiers_of(1, 1.755, 0.1), litdata=tiers_of(1, 0, 9), webdataset=tiers_of(2, 0, 5))
    found = {each.rule: each for each in comparisons.comparisons(cell)}
    assert list(found) == ["peer-cpu", "peer-total-cpu", "client-cpu", "step-cpu"]
    assert found["peer-cpu"].ratio.median == pytest.approx(2.5) and not found["peer-cpu"].is_missed
    assert found["peer-total-cpu"].ratio.median == pytest.approx(7 / 3) and found["peer-total-cpu"].target is None
    assert found["client-cpu"].ratio.median == pytest.approx(1.2) and not found["client-cpu"].is_missed
    assert found["step-cpu"].ratio.median == pytest.approx(0.9) and found["step-cpu"].is_missed
    text = report.markdown(results(cell, kind="materialize"))
    assert "| CPU s of gateway and host: `best of litdata, webdataset / pushdown` | 2.50 (2.50 to 2.50 over 3 rounds) | ≥ 2 |" in text
    assert "| CPU s of the host: `60 us / pushdown` |" in text and "| samples per CPU s of gateway and host |" in text
    assert "## Whole data sets" in text


def test_a_peer_that_failed_samples_is_not_compared() -> None:
    cell = judged(pushdown=tiers_of(1, 1, 0.01), webdataset=tiers_of(1, 0, 1))
    cell.arms["webdataset"].trials[0].errors = 1
    assert [each.rule for each in comparisons.comparisons(cell)] == ["client-cpu"]


def test_few_samples_do_not_judge_the_client() -> None:
    requirements = {name: kind.requirements(each) for name, each in load_all().items() if each.kind == "materialize"}
    assert requirements == {
        "materialize": {"peer-cpu": 1.0, "client-cpu": 1.0}, "materialize-12mp": {"peer-cpu": 2.0}, "materialize-12mp-scaled": {"peer-cpu": 1.0},
    }  # fmt: skip
    assert all(set(each.arms) <= set(kind.ARMS) and not each.default for each in load_all().values() if each.kind == "materialize")


def test_replicas_write_as_many_samples_each_as_one_alone(tmp_path: Path, monkeypatch) -> None:
    tiers, reads = FakeTiers(), []

    @contextlib.contextmanager
    def started(_: Scenario, __: RunContext, count: int, cores: set[int], quota: float) -> Iterator[list[SimpleNamespace]]:
        assert (count, cores, quota) == (3, {1}, 0.3)
        yield [SimpleNamespace(address=f"127.0.0.{number}") for number in (2, 3, 4)]

    def within_quotas(_: RunContext, replicas: list, client, quota: float) -> tuple[Trial, list[float]]:
        assert quota == 0.3 and tiers.host_cores == {0}
        tiers.samples = 80 * len(replicas)
        figures = client()
        reads.append(len(replicas))
        return trial(2.0, samples=figures["samples"]), [0.3] * len(replicas)

    monkeypatch.setattr(of_replicas.replicas, "started_replicas", started)
    monkeypatch.setattr(of_replicas.replicas, "run_within_quotas", within_quotas)
    scenario = dataclasses.replace(SCENARIO, kind="materialize-replicas", sizes=(3,))
    with tqdm(disable=True) as progress:
        (cell,) = of_replicas.cells(scenario, context(tiers, tmp_path, progress))
    # Each round starts with another arm.
    assert reads == [1, 3, 3, 1] and (cell.x, cell.group) == (3, "materialize-replicas")
    one, all_ = "http://127.0.0.2:9900", "http://127.0.0.2:9900,http://127.0.0.3:9900,http://127.0.0.4:9900"
    written = [(line[2], line[3], argument(line, "--gateway")) for line in tiers.commands]
    assert written[:3] == [
        ("s3://samples/photos-80/", "s3://samples/s-one-replica-recipe/", one),
        ("s3://samples/photos-240/", "s3://samples/s-all-replicas-recipe/", all_),
        ("s3://samples/photos-80/", "s3://samples/s-one-replica-1/", one),
    ]
    assert set(tiers.put) == {f"s-{name}-{number}/_recipe.json" for name in cell.arms for number in (1, 2)}
    assert "`all-replicas`: cores used by each replica: 0.300, 0.300, 0.300 of 0.3" in cell.notes
    (found,) = comparisons.comparisons(cell)
    assert (found.rule, found.ratio.median, str(found.target)) == ("linear-parts", pytest.approx(1.0), "≥ 0.85")


def test_whole_data_sets_need_gateways_of_their_own() -> None:
    options = SimpleNamespace(has_external_store=True, gateway="http://gateway", upstream="http://store")
    why = lambda kind_: run.missing_requirement(dataclasses.replace(SCENARIO, kind=kind_, gateway_flags=()), options)
    assert "restarts the gateway" in why("materialize") and "restarts the gateway" in why("warm-link")
    assert "the store is external" in why("materialize-replicas")


SIZES = """
import cv2, numpy
import resizers
photo = cv2.imencode(".jpg", numpy.random.default_rng(1).integers(0, 256, (200, 301, 3), dtype=numpy.uint8))[1].tobytes()
for name, min_short in (("simplejpeg", 0), ("simplejpeg", 100), ("img2dataset", 0)):
    resize, settings = getattr(resizers, name)(64, 90, min_short)
    print(cv2.imdecode(numpy.frombuffer(resize(photo), numpy.uint8), cv2.IMREAD_COLOR).shape, settings)
"""


def test_programs_of_others_make_photos_of_the_same_size() -> None:
    python = kind.python_of("webdataset")
    if not python.exists():
        pytest.skip(".venv-e2e-materialize is not installed")
    ended = subprocess.run([python, "-c", SIZES], cwd=kind.arms.FOLDER, capture_output=True, text=True, check=True)
    lines = ended.stdout.splitlines()
    assert [line[: len("(64, 96, 3)")] for line in lines] == ["(64, 96, 3)"] * 3
    assert "decoding to at least 100 pixels" in lines[1] and "`Resizer` of img2dataset" in lines[2]
