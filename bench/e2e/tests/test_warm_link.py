"""Warmed values over a link: what a trial runs, and what is judged."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import comparisons, report  # noqa: E402
from ..kinds import RunContext  # noqa: E402
from ..kinds import warm_link as kind  # noqa: E402
from ..results import Arm, Cell  # noqa: E402
from ..scenario import Scenario, load_all, needs_shaping  # noqa: E402
from ..tiers import ArmError  # noqa: E402
from .build import results, trial  # noqa: E402
from .fake_gateway import FIGURES, FakeTiers, argument  # noqa: E402

SCENARIO = Scenario(
    "s", "", "warm-link", False, group="pixels", pipeline="decode", epochs=3, rounds=2, samples=100, links=("1000 Mbit/s",),
)  # fmt: skip


class WarmTiers(FakeTiers):
    """Tiers whose gateway is warmed first."""

    def run(self, command: list) -> dict:
        line = [str(part) for part in command]
        if line[1] == "warm":
            self.commands.append(line)
            return {"cached": 100}
        if "--requests" in line:
            self.commands.append(line)
            return FIGURES | {"epoch_seconds": [1.0]}
        return super().run(command)


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, hits: float = 300) -> tuple[WarmTiers, Cell]:
    def counted(context: RunContext, run):
        one = context.tiers.run_trial(run)
        one.cache_values = {"disk": hits, "memory": 0.0}
        return one

    monkeypatch.setattr(kind.result_cache, "run_counted", counted)
    data = SimpleNamespace(photos=lambda _, count: f"photos-{count}/", blobs=lambda size, count: f"blobs-{size}-{count}")
    tiers = WarmTiers("http://admin")
    with tqdm(disable=True) as progress:
        (cell,) = kind.cells(SCENARIO, RunContext(tiers, data, folder, progress))
    return tiers, cell


def test_the_cache_is_warmed_once_over_an_open_link_and_downloads_have_the_size_of_its_values(tmp_path: Path, monkeypatch) -> None:
    tiers, cell = measured(tmp_path, monkeypatch)
    folder = tmp_path / "result-cache"
    assert tiers.gateways == [("--memory-budget=2GiB", "--cache-disk=4GiB", f"--cache-dir={folder}"), ()]
    assert tiers.rates == [float("inf"), 1e9, float("inf")]
    warm, first, *trials = tiers.commands
    assert warm[:3] == [str(kind.arms.PUSHDOWN), "warm", "s3://samples/photos-100/"] and argument(warm, "--keep") == "1h"
    assert argument(first, "--epochs") == "1"
    downloads = [line for line in trials if "--requests" in line]
    # 5,000 bytes of 100 samples; each round starts with another arm.
    assert [line[1:4] for line in downloads] == [["http://store", "samples", "blobs-50-16"]] * 2
    assert [(argument(line, "--requests"), argument(line, "--bytes")) for line in downloads] == [("100", "50")] * 2
    assert [(argument(line, "--epoch"), argument(line, "--epochs")) for line in trials if line not in downloads] == [("1", "3")] * 2
    assert (cell.name, cell.bandwidth, cell.baseline) == ("pixels, 1000 Mbit/s", 0.98e9, "download")
    assert any(note.startswith("`warmed`: 0.08 of the host's cores") for note in cell.notes)


def test_an_epoch_with_computed_values_fails(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(ArmError, match="expected 300 values from the cache, found 290"):
        measured(tmp_path, monkeypatch, hits=290)


def test_the_rate_of_values_is_compared_with_a_download() -> None:
    arms = {"warmed": Arm("pushed", "", [trial(9.0, 1.0, 1.0)] * 3), "download": Arm("plain", "", [trial(0.9)] * 3)}
    for one in arms["warmed"].trials:
        one.value_bytes = 300
    cell = Cell("cell", "warm link", None, "", 8e6, None, None, "download", [], None, arms)
    (found,) = comparisons.comparisons(cell)
    assert (found.rule, found.name) == ("warm-link", "bytes/s of values: `warmed / download`")
    assert found.ratio.median == pytest.approx(0.9) and found.is_missed
    assert "## Warmed values over a link" in report.markdown(results(cell, kind="warm-link"))


def test_the_scenario_is_outside_of_the_default_matrix() -> None:
    scenario = load_all()["warm-link"]
    assert not scenario.default and needs_shaping(scenario) and scenario.links == ("1000 Mbit/s",)
