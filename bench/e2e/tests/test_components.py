"""The tables of component benchmarks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .. import components
from ..json_reader import ResultsError

BENCH = Path(__file__).parents[2]
OURS = "`decode | resize(short=8)`"


def comparison(numerator: str, denominator: str, what: str, **target: float) -> dict:
    return {"row": OURS, "numerator": numerator, "denominator": denominator, "what": what, "target": target or None}


@pytest.fixture
def document() -> dict:
    """As `pushdown-bench` writes it."""
    rows = [{"name": OURS, "rounds": [8.0] * 6}, {"name": "bare", "rounds": [10.0] * 6}]
    comparisons = [
        comparison(OURS, "bare", "of bare", at_least=0.78),
        comparison("bare", OURS, "of ours", at_most=1.2),
        comparison("bare", OURS, "times ours"),
    ]
    table = {"title": "Operators", "unit": "images per CPU second", "rows": rows, "comparisons": comparisons}
    machine = {"cpu": None, "cores": 2, "memory": "", "kernel": "6.1", "load_at_the_end": "0.1"}
    return {"format": "components-1", "unix_seconds": 1, "machine": machine, "engine": "decode 4", "tables": [table]}


def written(folder: Path, document: dict) -> Path:
    path = folder / "1.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_quartiles_are_interpolated():
    assert components.quartiles([5.0, 1.0, 2.0, 4.0, 3.0]) == [2.0, 3.0, 4.0]
    assert components.quartiles([1.0, 2.0]) == [1.25, 1.5, 1.75]
    assert components.quartiles([7.0]) == [7.0, 7.0, 7.0]


def test_a_table_shows_which_targets_are_met(tmp_path, document):
    document["tables"].append(document["tables"][0] | {"title": "Again", "comparisons": []})
    assert components.markdown(components.load(written(tmp_path, document))) == (
        "**Operators**, images per CPU second\n"
        "\n"
        "|  | median | quartiles | ratio (lowest to highest) |\n"
        "|---|---|---|---|\n"
        "| `decode \\| resize(short=8)` | 8.00 | 8.00 to 8.00 | 0.800 (0.800 to 0.800) of bare, target ≥ 0.78: met<br>"
        "1.25 (1.25 to 1.25) of ours, target ≤ 1.2: **missed**<br>1.25 (1.25 to 1.25) times ours |\n"
        "| bare | 10.0 | 10.0 to 10.0 |  |\n"
        "\n"
        "**Again**, images per CPU second\n"
        "\n"
        "|  | median | quartiles | ratio (lowest to highest) |\n"
        "|---|---|---|---|\n"
        "| `decode \\| resize(short=8)` | 8.00 | 8.00 to 8.00 |  |\n"
        "| bare | 10.0 | 10.0 to 10.0 |  |"
    )


def test_a_ratio_is_computed_per_round(tmp_path, document):
    # The machine is half as fast in every other round, which must not change the ratio.
    ours, bare = document["tables"][0]["rows"]
    ours["rounds"], bare["rounds"] = [2.0, 4.0] * 3, [1.0, 2.0] * 3
    assert "| 2.00 (2.00 to 2.00) of bare, " in components.markdown(components.load(written(tmp_path, document)))


def test_a_ratio_has_the_range_of_the_rounds(tmp_path, document):
    ours, bare = document["tables"][0]["rows"]
    ours["rounds"], bare["rounds"] = [1.0, 2.0, 4.0], [1.0, 1.0, 1.0]
    text = components.markdown(components.load(written(tmp_path, document)))
    assert "| ratio (lowest to highest) |" in text and "| 2.00 (1.00 to 4.00) of bare, " in text


def test_a_target_without_a_ratio_is_missed(tmp_path, document):
    document["tables"][0]["rows"][1]["rounds"] = [0.0] * 6
    text = components.markdown(components.load(written(tmp_path, document)))
    assert "| - of bare, target ≥ 0.78: **missed**<br>" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table["rows"][1].update(rounds=[1.0]), r"tables\[0\]: rows: .*, found \[1, 6\]"),
        (lambda table: [row.update(rounds=[]) for row in table["rows"]], r"tables\[0\]: rows: .*, found \[0\]"),
        (lambda table: table["rows"][1]["rounds"].append(None), r"tables\[0\]\.rows\[1\]\.rounds\[6\]: expected float, found null"),
        (lambda table: table["rows"][1].update(name="other"), r"tables\[0\]: comparisons: expected names of rows, found bare"),
        (lambda table: table["comparisons"][1].update(target={}), r"comparisons\[1\]\.target: expected either at_least or at_most"),
        (
            lambda table: table["comparisons"][0]["target"].update(at_most=1),
            r"comparisons\[0\]\.target: expected either at_least or at_most",
        ),
    ],
)
def test_an_error_in_a_table_names_its_position(tmp_path, document, change, message):
    change(document["tables"][0])
    with pytest.raises(ResultsError, match=message):
        components.load(written(tmp_path, document))


def command(path: Path) -> subprocess.CompletedProcess:
    """Runs the command without site packages: `scripts/bench.sh` has those of the peers only."""
    run = [sys.executable, "-S", "-m", "e2e", "components", path]
    environment = os.environ | {"PYTHONPATH": str(BENCH), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(run, env=environment, capture_output=True, encoding="utf-8", check=False)


def test_the_command_needs_only_the_standard_library(tmp_path, document):
    path = written(tmp_path, document)
    found = command(path)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == components.markdown(components.load(path)) + "\n"


def test_results_of_the_end_to_end_benchmark_are_refused(tmp_path):
    path = written(tmp_path, {"format": 2})
    found = command(path)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == f"e2e: {path}: unsupported format: expected 'components-1', found 2\n"
