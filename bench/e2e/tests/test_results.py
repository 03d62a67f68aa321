"""The file of a run."""

import json
import math
from pathlib import Path

import pytest

from ..results import Arm, Cell, ResultsError, load, save
from .build import cell, results

RUN = Path(__file__).parent / "fixtures/run.json"


@pytest.fixture
def document() -> dict:
    return json.loads(RUN.read_text(encoding="utf-8"))


def written(folder: Path, document: object) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_what_is_saved_is_loaded_again(tmp_path, document):
    save(load(RUN), tmp_path / "new/run.json")
    assert json.loads((tmp_path / "new/run.json").read_text(encoding="utf-8")) == document
    assert load(tmp_path / "new/run.json") == load(RUN)
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["run.json"]


def test_a_file_from_before_a_store_a_break_and_a_duration_were_told_is_read(tmp_path, document):
    del document["environment"]["store"], document["environment"]["flags"]
    for scenario in document["scenarios"]:
        del scenario["broke"], scenario["seconds"]
    found = load(written(tmp_path, document))
    assert [scenario.seconds for scenario in found.scenarios] == [None] * 4
    for scenario, whole in zip(found.scenarios, load(RUN).scenarios):
        scenario.seconds = whole.seconds
    assert found == load(RUN)


def test_another_format_is_named(tmp_path, document):
    with pytest.raises(ResultsError, match=r"run\.json: format 2 found, expected 1"):
        load(written(tmp_path, document | {"format": 2}))


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"seconds": 1}', '{"format": 1, "seconds": NaN}', "\x00"])
def test_a_broken_file_is_an_error_with_its_name(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match="broken.json"):
        load(path)


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path):
    with pytest.raises(ResultsError, match="none.json"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda turn: turn.pop("samples"), r"turns\[1\]: missing: samples"),
        (lambda turn: turn.update(sampels=1), r"turns\[1\]: unknown: sampels"),
        (lambda turn: turn.update(samples="many"), r"turns\[1\]\.samples: str \"many\" found, expected int"),
        (lambda turn: turn.update(samples=True), r"turns\[1\]\.samples: bool true found, expected int"),
        (lambda turn: turn.update(samples=None), r"turns\[1\]\.samples: null found, expected int"),
        (lambda turn: turn.update(seconds=[]), r"turns\[1\]: seconds: none found"),
        (lambda turn: turn.update(seconds=["1"]), r"turns\[1\]\.seconds\[0\]: str"),
        (lambda turn: turn["cpu"].update(moon=1.0), r"turns\[1\]: cpu: moon found, expected store, gateway, host"),
    ],
)
def test_what_is_wrong_in_a_turn_is_said_with_its_place(tmp_path, document, change, message):
    change(document["scenarios"][0]["cells"][2]["arms"]["auto"]["turns"][1])
    with pytest.raises(ResultsError, match=r"scenarios\[0\]\.cells\[2\]\.arms\.auto\." + message):
        load(written(tmp_path, document))


@pytest.mark.parametrize("name", ["stall_seconds", "value_bytes", "wire_up", "wire_down"])
def test_what_an_arm_cannot_tell_is_null(tmp_path, document, name):
    document["scenarios"][0]["cells"][0]["arms"]["loader"]["turns"][0][name] = None
    assert getattr(load(written(tmp_path, document)).scenarios[0].cells[0].arms["loader"].turns[0], name) is None


def test_unknown_kinds_and_a_baseline_that_is_no_arm_are_refused():
    with pytest.raises(ValueError, match="kind: fast found, expected one of plain"):
        Arm("fast", "")
    with pytest.raises(ValueError, match="baseline: plain found, expected one of auto"):
        cell(auto=[1.0])
    assert Cell("", "", None, "", None, None, None, "plain", [], None, {}).arms == {}


def test_a_figure_that_json_has_no_word_for_is_not_written(tmp_path):
    run = results(cell(plain=[1.0]))
    run.scenarios[0].cells[0].arms["plain"].turns[0].stall_seconds = math.inf
    with pytest.raises(ValueError, match="JSON compliant"):
        save(run, tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []
