"""Layouts: what is stored, which loaders run, and what is judged and shown."""

import io
import json
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")
pytest.importorskip("pyarrow", reason="it is in .venv-e2e")

import pyarrow.parquet as pq  # noqa: E402
from tqdm import tqdm  # noqa: E402

from .. import comparisons, image_column, layout_data, report, run  # noqa: E402
from ..data import StoredData  # noqa: E402
from ..kinds import RunContext  # noqa: E402
from ..kinds import layouts as kind  # noqa: E402
from ..layout_data import DataSet  # noqa: E402
from ..results import Arm, Cell, Results  # noqa: E402
from ..scenario import LAYOUTS, Scenario, load_all, needs_shaping, open_link_variant  # noqa: E402
from ..tiers import ArmError  # noqa: E402
from .build import arm, results, trial  # noqa: E402

PIPELINE = "decode | resize(short=48) | center_crop(32) | to_float | normalize(imagenet)"
SCENARIO = Scenario(
    "s", "", "layouts", False, pipeline=PIPELINE, samples=25, rounds=2, layouts=tuple(LAYOUTS),
    arms=("plain", "repeat", "pushed", "auto", "webdataset-pil", "datasets"),
)  # fmt: skip
LABELS = sum(number % layout_data.CLASSES for number in range(SCENARIO.samples))
# Answers each request like `tensors.py`, with a worker process that uses CPU time.
LOADER = """
import json, subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", "import sys, time\\nfor _ in sys.stdin:\\n e = time.process_time() + 0.1\\n"
    " while time.process_time() < e: pass\\n print(flush=True)"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
figures = json.loads(sys.argv[1])
for line in sys.stdin:
    print("\\n", end="", file=worker.stdin, flush=True)
    worker.stdout.readline()
    print(json.dumps(figures | {"request": line.strip()}), flush=True)
"""
FIGURES = {"samples": 25, "labels": LABELS, "errors": 0, "epoch_seconds": [1.0], "cpu_seconds": 0.0, "peak_bytes": 0,
           "value_bytes": None, "settings": "as documented", "value_mean": 0.1}


class FakeTiers:
    """Tiers without a link."""

    def __init__(self) -> None:
        self.stack = SimpleNamespace(store="http://store", gateway="http://gateway", store_cores={0}, external_tiers=[])
        self.host_cores, self.rates, self.commands, self.figures = {0}, [], [], []

    def shape(self, bits: float, _latency_ms: float = 0.0) -> None:
        self.rates.append(bits)

    def run(self, command: list) -> dict:
        self.commands.append([*map(str, command)])
        return {}

    def run_trial(self, arm_) -> object:
        self.figures.append(arm_())
        return trial(1.0)


def fake_loader(monkeypatch, **figures: object) -> list[tuple]:
    """Replaces the command of loaders. Returns the arguments with which they start."""
    started = []

    def command(*arguments: object) -> list:
        started.append(arguments)
        return [sys.executable, "-c", LOADER, json.dumps(FIGURES | figures)]

    monkeypatch.setattr(kind, "command", command)
    monkeypatch.setattr(layout_data, "UPLOAD", dict.fromkeys(LAYOUTS, lambda *_: DataSet("s3://samples/x", "label")))
    return started


def measured(folder: Path, scenario: Scenario = SCENARIO) -> tuple[FakeTiers, list[Cell]]:
    tiers = FakeTiers()
    with tqdm(disable=True) as progress:
        return tiers, list(kind.cells(scenario, RunContext(tiers, SimpleNamespace(), folder, progress)))


def test_each_layout_is_read_by_our_loader_and_by_the_loader_made_for_it(tmp_path: Path, monkeypatch) -> None:
    started = fake_loader(monkeypatch)
    tiers, found = measured(tmp_path)
    ours = ["plain", "repeat", "pushed", "auto"]
    assert {cell.name: list(cell.arms) for cell in found} == {
        "loose objects, open link": ours,
        "tar shards, open link": [*ours, "webdataset-pil"],
        "tar shards in shard order, open link": [*ours, "webdataset-pil"],
        "image column, open link": [*ours, "datasets"],
    }
    kinds = {name: arm_.kind for cell in found for name, arm_ in cell.arms.items()}
    assert kinds == {
        "plain": "plain", "repeat": "repeat", "pushed": "pushed", "auto": "auto", "webdataset-pil": "peer", "datasets": "peer",
    }  # fmt: skip
    assert [name for name, *_ in started][:4] == ["plain", "plain", "pushed", "auto"]
    buffers = {stored_buffer for *_, stored_buffer in started if stored_buffer}
    assert buffers == {SCENARIO.buffer} and len([1 for *_, buffer in started if buffer]) == 5
    assert {arm_.settings for cell in found for arm_ in cell.arms.values()} == {"as documented"}
    assert {figures["request"] for figures in tiers.figures} == {"read"}, "the warm-up is no trial"
    assert all(len(arm_.trials) == 2 for cell in found for arm_ in cell.arms.values())


def test_workers_count_as_cpu_of_the_host(tmp_path: Path, monkeypatch) -> None:
    fake_loader(monkeypatch)
    tiers, _ = measured(tmp_path, Scenario("s", "", "layouts", False, pipeline=PIPELINE, samples=25, rounds=1,
                                           layouts=("objects",), arms=("plain",)))
    (figures,) = tiers.figures
    assert figures["cpu_seconds"] >= 0.1 and figures["peak_bytes"] > 1 << 20


@pytest.mark.parametrize(
    ("figures", "message"),
    [({"samples": 24}, "expected .* found {'samples': 24}"), ({"labels": LABELS + 1}, "found {'labels': ")],
)
def test_an_epoch_is_each_sample_once(tmp_path: Path, monkeypatch, figures: dict, message: str) -> None:
    fake_loader(monkeypatch, **figures)
    with pytest.raises(ArmError, match=message):
        measured(tmp_path)


def test_a_loader_that_ends_is_named_with_its_last_words(tmp_path: Path, monkeypatch) -> None:
    fake_loader(monkeypatch)
    monkeypatch.setattr(kind, "command", lambda *_: ["/bin/sh", "-c", "echo no such column >&2; exit 3"])
    with pytest.raises(ArmError, match="plain exited with 3:\nno such column"):
        measured(tmp_path)


def test_arms_with_other_values_are_refused() -> None:
    kind.check_means({"plain": 0.101, "datasets": 0.104})
    with pytest.raises(ArmError, match="plain 0.1010, datasets 0.2000"):
        kind.check_means({"plain": 0.101, "datasets": 0.2})


def command(name: str, stored: DataSet) -> list[str]:
    return [*map(str, kind.command(name, SCENARIO, stored, SimpleNamespace(stack=FakeTiers().stack)))]


def value(command_: list[str], flag: str) -> str:
    return command_[command_.index(flag) + 1]


def test_only_pushed_and_auto_ask_the_gateway() -> None:
    stored = DataSet("s3://samples/train-{000..003}.tar", "cls", Path("/list.parquet"))
    endpoints = {name: value(command(name, stored), "--endpoint") for name in (*kind.MODES, *kind.PEERS)}
    assert endpoints == {
        "plain": "http://store", "pushed": "http://gateway", "auto": "http://gateway", "webdataset-pil": "http://store",
        "datasets": "http://store",
    }  # fmt: skip
    auto = command("auto", stored)
    assert (value(auto, "--index"), value(auto, "--mode"), value(auto, "--labels")) == ("/list.parquet", "auto", '"cls"')
    assert "--buffer" not in auto
    by_shards = kind.command("auto", SCENARIO, stored, SimpleNamespace(stack=FakeTiers().stack), 400)
    assert value([*map(str, by_shards)], "--buffer") == "400"
    other = command("webdataset-pil", stored)
    assert "--mode" not in other and (value(other, "--short"), value(other, "--crop")) == ("48", "32")
    assert value(auto, "--pipeline") == PIPELINE


def test_a_pipeline_that_others_cannot_run_is_refused() -> None:
    scenario = Scenario("s", "", "layouts", False, pipeline="decode | encode(jpeg)", layouts=("objects",), arms=("plain",))
    with pytest.raises(ArmError, match="center_crop"):
        kind.command("plain", scenario, DataSet("s3://samples/x/", [0]), SimpleNamespace(stack=FakeTiers().stack))


@pytest.fixture(name="photos")
def photos_(tmp_path: Path, monkeypatch) -> list[Path]:
    """Three files as a set that repeats."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.jpg").write_bytes(bytes([number]) * 100)
    monkeypatch.setattr("e2e.data.DERIVED", tmp_path / "derived")
    monkeypatch.setattr("e2e.data.PHOTOS", tmp_path)
    return sorted(folder.iterdir())


def test_an_image_column_is_what_datasets_writes(photos: list[Path]) -> None:
    (body,) = image_column.files(photos, [0, 1, 2])
    table = pq.read_table(io.BytesIO(body))
    assert table.to_pylist() == [
        {"image": {"bytes": photo.read_bytes(), "path": photo.name}, "label": number} for number, photo in enumerate(photos)
    ]
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"}
    assert body == next(image_column.files(photos, [0, 1, 2])), "it is deterministic"


def test_an_image_set_has_files_and_row_groups(photos: list[Path]) -> None:
    many = (photos * 150)[:450]
    bodies = list(image_column.files(many, layout_data.labels(450)))
    groups = [pq.ParquetFile(io.BytesIO(body)).metadata for body in bodies]
    assert [[each.row_group(number).num_rows for number in range(each.num_row_groups)] for each in groups] == [
        [100, 100], [100, 100], [50],
    ]  # fmt: skip


def test_a_class_follows_each_photo_in_a_shard(photos: list[Path], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(kind.SCRIPT.parent))
    import shards

    (first, second) = shards.shards(photos[0].parent, 5, 8, 10)
    with tarfile.open(fileobj=io.BytesIO(second)) as archive:
        names = archive.getnames()
        labels = [archive.extractfile(name).read() for name in names if name.endswith(".cls")]
    assert names[:2] == ["2/2.jpg", "2/2.cls"] and labels == [str(number % 10).encode() for number in range(8, 15)]
    assert [name for name in tarfile.open(fileobj=io.BytesIO(first)).getnames() if name.endswith(".jpg")] == [
        f"{copy}/{number}.jpg" for copy in range(3) for number in range(3)
    ][:8]
    (plain,) = shards.shards(photos[0].parent, 1, 8, 0)
    assert tarfile.open(fileobj=io.BytesIO(plain)).getnames() == [photo.name for photo in photos]


def test_layouts_are_stored_once_and_shards_are_indexed_next_to_the_store(photos: list[Path], tmp_path: Path, monkeypatch) -> None:
    put, ran = [], []
    client = SimpleNamespace(put_object=lambda **given: put.append(given["Key"]))
    stack = SimpleNamespace(store="http://store", client=client, upload=lambda files: put.extend(files))
    monkeypatch.setattr("subprocess.run", lambda command, **_: ran.append([*map(str, command)]))
    data, tiers = StoredData(stack), FakeTiers()
    tiers.stack = stack
    stored = {name: layout_data.UPLOAD[name]("photos", 220, data, tiers, tmp_path) for name in [*LAYOUTS] * 2}
    assert stored["objects"] == DataSet("s3://samples/photos-220/", layout_data.labels(220))
    assert len(put) == 220 + 2 and put[-1] == "photos-images-220/00001.parquet"
    assert stored["image-column"] == DataSet("s3://samples/photos-images-220/*.parquet", "label")
    (upload,) = ran
    assert value(upload, "--classes") == "10" and value(upload, "--samples") == "50"
    assert stored["shards"].url == "s3://samples/photos-classes-shards-220/{000000..000004}.tar"
    index = next(line for line in tiers.commands if "index" in line)
    assert stored["shard-order"] == stored["shards"]
    assert stored["shards"].url in index and value(index, "--endpoint-url") == "http://store"
    assert value(index, "--output") == str(stored["shards"].index) and stored["shards"].labels == "cls"


def of_layout(layout: str, others: dict[str, float], requested: float | None = 1e8) -> Cell:
    """A cell in which `auto` needs a second, with the seconds and the CPU seconds per 100 samples of other arms."""
    built = {"auto": arm("auto", [1.0] * 3, cpu=1.0)}
    for name, seconds in others.items():
        one = [trial(seconds, cpu=seconds)] * 3
        built[name] = Arm("peer" if name in kind.PEERS else name, "", one)
    cell = Cell(f"{LAYOUTS[layout]}, x", LAYOUTS[layout], None, "", requested, None, None, "plain", [], None, built)
    return cell


def test_the_trainers_cpu_decides_with_plain_reading_and_with_a_plan() -> None:
    cell = of_layout("shards", {"plain": 2.0, "pushed": 1.5, "webdataset-pil": 2.9})
    found = {each.arm: each for each in comparisons.comparisons(cell) if each.rule == "trainer-cpu"}
    assert set(found) == {"plain", "auto"}
    assert (found["plain"].is_missed, found["plain"].ratio.median) == (True, pytest.approx(1.45))
    assert (found["auto"].is_missed, found["auto"].ratio.median) == (False, pytest.approx(2.9))
    assert {each.under for each in found.values()} == {"webdataset-pil"}
    assert "| samples per CPU s of the host: `plain / webdataset-pil` | 1.45 " in report.markdown(results(cell, kind="layouts"))


def test_a_loader_that_competes_for_plain_reading_has_no_such_rule() -> None:
    cell = of_layout("shards", {"plain": 2.0})
    cell.arms["webdataset"] = Arm("peer", "", [trial(2.9, cpu=2.9)] * 3)
    assert [each for each in comparisons.comparisons(cell) if each.rule == "trainer-cpu"] == []


def both() -> Results:
    loose = of_layout("objects", {"plain": 1.2, "pushed": 1.1})
    loose.arms["auto"] = arm("auto", [0.8] * 3)
    open_ = of_layout("objects", {"plain": 1.0}, requested=None)
    return results(open_, loose, of_layout("shards", {"plain": 2.0, "pushed": 1.5, "webdataset-pil": 3.0}), kind="layouts")


def test_the_table_has_all_layouts_and_what_the_trainers_cpu_delivers() -> None:
    """100 samples of an arm take half of its CPU seconds on the host."""
    page = report.markdown(both())
    assert "## Tar shards and image columns" in page and "| samples per CPU s of the host |" in page
    table = page.split("\n| cell | arm | samples/s |", 1)[1].split("\n\n", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    shown = {(row[0], row[1]): (row[2].split()[0], row[3], row[-1]) for row in rows}
    assert shown["tar shards, x", "`auto`"] == ("100", "2.00 (2.00 to 2.00)", "200")
    assert shown["tar shards, x", "`webdataset-pil`"] == ("33.3", "0.667 (0.667 to 0.667)", "66.7")
    assert shown["loose objects, x", "`auto`"] == ("125", "1.50 (1.50 to 1.50)", "200")
    assert "samples per CPU s of the host |" not in report.markdown(results(both().scenarios[0].cells[0]))


def test_each_scenario_of_layouts_has_a_loader_of_others_and_an_open_variant() -> None:
    known = load_all()
    of_kind = {name: each for name, each in known.items() if each.kind == "layouts"}
    variants = {"shards": "shards-open", "shard-order": "shards-open", "image-column": "image-column-open"}
    assert set(of_kind) == {*variants, *variants.values()}
    for name, each in of_kind.items():
        assert each.layouts[0] == ("shards" if name == "shard-order" else "objects")
        assert any(arm_ in kind.PEERS and kind.is_for(arm_, each.layouts[1]) for arm_ in each.arms)
        variant = open_link_variant(each, known)
        assert (variant.name if variant else None) == (variants[name] if needs_shaping(each) else None)


@pytest.mark.parametrize(
    ("given", "message"), [({}, "layouts: expected some for the kind"), ({"layouts": ("zips",)}, "expected some of objects, .* found zips")]
)
def test_a_scenario_without_known_layouts_is_refused(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scenario("s", "", "layouts", False, pipeline=PIPELINE, arms=("plain",), **given)


def test_without_the_loaders_the_scenario_is_skipped(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kind, "VENV", tmp_path / ".venv-e2e-torch")
    options = SimpleNamespace(has_external_store=False)
    reason = run.skip_reason(SCENARIO, options, SimpleNamespace(reason=""))
    assert reason == ".venv-e2e-torch is not installed: PEERS=torch installs it"
