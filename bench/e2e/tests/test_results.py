"""The file of a run."""

import json
import math
from pathlib import Path

import pytest

from ..json_reader import ResultsError
from ..results import KINDS, Arm, Cell, load, save
from .build import cell, results

RUN = Path(__file__).parent / "fixtures/run.json"


@pytest.fixture
def document() -> dict:
    return json.loads(RUN.read_text(encoding="utf-8"))


def written(folder: Path, document: object) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_saved_results_load_unchanged(tmp_path, document):
    save(load(RUN), tmp_path / "new/run.json")
    assert json.loads((tmp_path / "new/run.json").read_text(encoding="utf-8")) == document
    assert load(tmp_path / "new/run.json") == load(RUN)
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["run.json"]


def test_files_of_older_runs_load_with_their_verdicts_and_kinds(tmp_path, document):
    first = document["scenarios"][0]["cells"][0]
    first["verdicts"] = [{"rule": "plain", "arm": "auto", "required": 0.97, "median": None, "outcome": "void", "note": ""}]
    first["arms"]["loader"]["kind"] = "rival"
    found = load(written(tmp_path, document)).scenarios[0].cells[0]
    assert found.arms["loader"].kind == "alternative" and found.verdicts == first["verdicts"]
    found.arms["loader"].kind, found.verdicts = "peer", []
    assert found == load(RUN).scenarios[0].cells[0]


def test_the_recorded_run_of_the_documentation_loads():
    found = load(RUN.parents[4] / "docs/figures/e2e.json")
    assert {arm.kind for scenario in found.scenarios for cell in scenario.cells for arm in cell.arms.values()} <= set(KINDS)
    assert len(found.scenarios) == 19 and all(scenario.cells for scenario in found.scenarios)


def test_optional_fields_may_be_missing(tmp_path, document):
    del document["environment"]["store"], document["environment"]["flags"]
    for scenario in document["scenarios"]:
        del scenario["error"], scenario["duration_seconds"]
    found = load(written(tmp_path, document))
    assert [scenario.duration_seconds for scenario in found.scenarios] == [None] * 4
    for scenario, whole in zip(found.scenarios, load(RUN).scenarios):
        scenario.duration_seconds = whole.duration_seconds
    assert found == load(RUN)


def test_another_format_is_named(tmp_path, document):
    with pytest.raises(ResultsError, match=r"run\.json: unsupported format: expected 2, found 3"):
        load(written(tmp_path, document | {"format": 3}))


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"seconds": 1}', '{"format": 2, "seconds": NaN}', "\x00"])
def test_a_broken_file_is_an_error_with_its_name(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match="broken.json"):
        load(path)


def test_a_missing_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(ResultsError, match="none.json"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda trial: trial.pop("samples"), r"trials\[1\]: missing: samples"),
        (lambda trial: trial.update(sampels=1), r"trials\[1\]: unknown: sampels"),
        (lambda trial: trial.update(samples="many"), r"trials\[1\]\.samples: expected int, found str \"many\""),
        (lambda trial: trial.update(samples=True), r"trials\[1\]\.samples: expected int, found bool true"),
        (lambda trial: trial.update(samples=None), r"trials\[1\]\.samples: expected int, found null"),
        (lambda trial: trial.update(epoch_seconds=[]), r"trials\[1\]: epoch_seconds: expected one for each epoch"),
        (lambda trial: trial.update(epoch_seconds=["1"]), r"trials\[1\]\.epoch_seconds\[0\]: expected float, found str"),
        (lambda trial: trial["cpu_seconds"].update(moon=1.0), r"trials\[1\]: cpu_seconds: expected store, gateway, host, found moon"),
    ],
)
def test_an_error_in_a_trial_names_its_position(tmp_path, document, change, message):
    change(document["scenarios"][0]["cells"][2]["arms"]["auto"]["trials"][1])
    with pytest.raises(ResultsError, match=r"scenarios\[0\]\.cells\[2\]\.arms\.auto\." + message):
        load(written(tmp_path, document))


@pytest.mark.parametrize("name", ["stall_seconds", "value_bytes", "wire_up_bytes", "wire_down_bytes"])
def test_missing_measurements_are_null(tmp_path, document, name):
    document["scenarios"][0]["cells"][0]["arms"]["loader"]["trials"][0][name] = None
    assert getattr(load(written(tmp_path, document)).scenarios[0].cells[0].arms["loader"].trials[0], name) is None


def test_unknown_kinds_and_baselines_are_refused():
    with pytest.raises(ValueError, match="kind: expected one of plain.*, found fast"):
        Arm("fast", "")
    with pytest.raises(ValueError, match="baseline: expected one of auto, found plain"):
        cell(auto=[1.0])
    assert Cell("", "", None, "", None, None, None, "plain", [], None, {}).arms == {}


def test_a_figure_that_json_cannot_express_is_not_written(tmp_path):
    run = results(cell(plain=[1.0]))
    run.scenarios[0].cells[0].arms["plain"].trials[0].stall_seconds = math.inf
    with pytest.raises(ValueError, match="JSON compliant"):
        save(run, tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []
