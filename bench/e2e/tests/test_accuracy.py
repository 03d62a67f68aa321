"""The time until each arm has an accurate head, over all rounds."""

from .. import accuracy, report
from ..results import Cell
from .build import cell, results


def trained(**arms: list[tuple[float | None, float | None]]) -> Cell:
    """A cell of arms, with the accuracy and the seconds of each round."""
    found = cell(**{name: [1.0] * len(rounds) for name, rounds in arms.items()})
    for name, rounds in arms.items():
        for trial, (accuracy_, seconds) in zip(found.arms[name].trials, rounds):
            trial.balanced_accuracy, trial.trained_seconds = accuracy_, seconds
    return found


def rows(found: Cell) -> list[list[str]]:
    """The columns and rows of its accuracy table."""
    lines = [line for line in accuracy.section(found) if line and not line.startswith("|-")]
    return [[part.strip() for part in line.strip("|").split("|")] for line in lines]


def test_each_arm_has_its_median_over_all_rounds_and_its_rate_to_plain():
    plain, auto = [(0.75, 9.0), (0.75, 8.0), (0.75, 7.0)], [(0.75, 1.0), (0.75, 4.0), (0.75, 2.0)]
    assert rows(trained(plain=plain, auto=auto)) == [
        ["arm", "seconds to a balanced accuracy of 0.750", "balanced accuracy", "rate to `plain`"],
        ["`plain`", "8.00 s (7.00 s to 9.00 s)", "0.750", "1.000 (1.000 to 1.000)"],
        ["`auto`", "2.00 s (1.00 s to 4.00 s)", "0.750", "3.500 (2.000 to 9.000)"],
    ]


def test_the_required_accuracy_is_the_lowest_of_all_rounds():
    found = rows(trained(plain=[(0.75, 9.0), (0.5, 9.0)], auto=[(0.875, 1.0), (0.75, 1.0)]))
    assert found[0][1].endswith("of 0.500")
    assert [row[2] for row in found[1:]] == ["0.750, 0.500", "0.875, 0.750"]


def test_cells_without_training_or_accuracy_have_no_table():
    assert accuracy.section(cell(plain=[1.0], auto=[1.0])) == []
    assert accuracy.section(trained(plain=[(None, 9.0)])) == []
    only = rows(trained(plain=[(None, 9.0)], auto=[(0.75, 1.0)]))
    assert only[1] == ["`auto`", "1.00 s", "0.750", "-"]


def test_the_report_includes_the_accuracy_table():
    text = report.markdown(results(trained(plain=[(0.75, 9.0)], auto=[(0.75, 3.0)]), kind="transfer"))
    assert "| `auto` | 3.00 s | 0.750 | 3.000 (3.000 to 3.000) |" in text
    assert "balanced accuracy" not in report.markdown(results(cell(plain=[1.0])))
