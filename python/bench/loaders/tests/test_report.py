"""Tables and targets."""

from pathlib import Path

from e2e import components

from .. import report
from ..contestants import CONTESTANTS, OURS, PILLOW, TENSORS


def name_of(decoding: str) -> str:
    return next(name for name, (_, how) in CONTESTANTS.items() if how == decoding)


def test_targets_depend_on_what_decodes():
    pillow, tensors = name_of(PILLOW), name_of(TENSORS)
    rates = {OURS: [300.0] * 3, pillow: [190.0, 200.0, 205.0], tensors: [301.0] * 3}
    table = report.loaders_table(rates, "imagenet")
    assert [str(each.target) for each in table.comparisons] == ["≥ 1.5", "≥ 1"]
    assert report.missed_targets([table]) == [f"Loaders, imagenet: {OURS} of {tensors}, target ≥ 1"]


def test_without_ours_nothing_is_compared():
    table = report.loaders_table({name_of(PILLOW): [200.0]}, "imagenet")
    assert table.comparisons == []


def test_the_python_layer_may_take_a_millisecond():
    assert report.missed_targets([report.layer_table([0.9, 1.0, 1.1])]) == []
    assert len(report.missed_targets([report.layer_table([0.9, 1.1, 1.1])])) == 1


def test_a_resume_may_take_three_tenths_of_a_second():
    assert report.missed_targets([report.resume_table([0.2, 0.3, 0.31])]) == []
    assert len(report.missed_targets([report.resume_table([0.2, 0.31, 0.31])])) == 1


def test_one_copied_batch_misses_the_target():
    assert report.missed_targets([report.shared_table([1.0, 1.0])]) == []
    assert len(report.missed_targets([report.shared_table([0.9, 0.9])])) == 1


def test_results_are_read_back(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(report, "PACKAGES", ("numpy",))
    found = report.results([report.layer_table([0.5] * 6)], {OURS: "pushdown 0.1.0"})
    read = components.load(report.write(found, tmp_path))
    assert read == found
    assert "0.500 (0.500 to 0.500) of the most it may take, target ≤ 1: met" in components.markdown(read)
