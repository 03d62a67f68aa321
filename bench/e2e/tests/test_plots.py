"""What is drawn, and that the same is drawn again."""

from pathlib import Path

import pytest

from .. import figures
from ..results import Results, load
from .build import cell, results

RUN = Path(__file__).parent / "fixtures/run.json"


def test_lines_run_from_slow_to_open_links():
    (lines,) = figures.speedups(load(RUN)).values()
    assert [(line.group, line.kind, [point.x for point in line.points]) for line in lines] == [
        ("EfficientNet-Lite0", "auto", [0.3, 3.0, None]),
        ("EfficientNet-Lite0", "pushed", [0.3, 3.0, None]),
        # The other arm of the first start failed samples.
        ("EfficientNet-Lite0, first start", "pushed", [0.3]),
    ]
    assert lines[0].points[0].ratio.median == pytest.approx(8.12 / 2.13, rel=0.02)


def test_bars_omit_repetitions():
    scenario = load(RUN).scenarios[0]
    assert [bar.arm for bar in figures.wire(scenario)][:4] == ["plain", "loader", "pushed", "auto"]
    assert figures.wire(scenario)[0].parts == pytest.approx((1100, 109000))
    assert figures.cpu(scenario)[0].parts == pytest.approx((0.2, 0, 10.4))


def test_an_arm_without_all_measurements_has_no_bar():
    scenario = results(cell(plain=[1.0], auto=[1.0])).scenarios[0]
    for trial in scenario.cells[0].arms["auto"].trials:
        trial.wire_up_bytes, trial.cpu_seconds = None, {"host": 1.0}
    assert [bar.arm for bar in figures.cpu(scenario)] == [bar.arm for bar in figures.wire(scenario)] == ["plain"]


def without(run: Results) -> Results:
    for trial in (trial for each in run.scenarios[0].cells for arm in each.arms.values() for trial in arm.trials):
        trial.wire_down_bytes, trial.cpu_seconds = 0, {}
    return run


def test_only_plots_with_data_are_drawn_and_equal_results_yield_equal_bytes(tmp_path):
    plots = pytest.importorskip("e2e.plots", reason="matplotlib is in .venv-e2e", exc_type=ImportError)
    first = plots.draw(load(RUN), tmp_path / "a")
    names = ["speedup", "wire-features", "cpu-features", "wire-starts", "cpu-starts", "wire-table", "cpu-table"]
    assert [path.name for path in first] == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
    for path, again in zip(first, plots.draw(load(RUN), tmp_path / "b")):
        assert path.read_bytes() == again.read_bytes(), path.name
        assert len(path.read_bytes()) > 5000
        assert b"dc:date" not in path.read_bytes()
    assert plots.draw(results(), tmp_path / "none") == []
    assert plots.draw(without(results(cell(plain=[1.0], auto=[1.0]))), tmp_path / "none") == []
