"""Qualifying runs of plain readers, and which of them read in every round."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import arms, comparisons, published, report, results  # noqa: E402
from ..kinds import RunContext, qualifying, read  # noqa: E402
from ..results import QualifyingRun  # noqa: E402
from ..scenario import Scenario  # noqa: E402
from .build import cell, trial  # noqa: E402
from .build import results as of_cells  # noqa: E402

PIXELS = "decode | resize(short=144) | center_crop(128)"
SCENARIO = Scenario("s", "", "read", False, pipeline=PIXELS, arms=("plain", "auto"), rounds=2)


class Racing:
    """Tiers on which each arm has its own rate."""

    def __init__(self, folder: Path, **rates: float) -> None:
        self.stack = SimpleNamespace(
            store="http://store", gateway="http://gateway", store_cores={0}, external_tiers=[], model_folder=lambda _: folder
        )
        self.host_cores, self.rates, self.ran = {1}, rates, []

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, **_: str) -> dict:
        name = next((name for name in arms.CONTENDERS if name in map(str, command)), "plain" if "--plain" in command else "auto")
        self.ran.append(name)
        return {"samples": 100, "errors": 0, "epoch_seconds": [100 / self.rates[name]], "settings": f"set as {name}"}

    def run_trial(self, arm) -> results.Trial:
        return trial(arm()["epoch_seconds"][0])


def measured(tmp_path: Path, scenario: Scenario = SCENARIO, **rates: float) -> tuple[list[str], results.Cell]:
    tiers = Racing(tmp_path, auto=100, **rates)
    data = SimpleNamespace(photos=lambda *_: "photos/", shards=lambda *_: "shards/")
    with tqdm(disable=True) as progress:
        (found,) = read.cells(scenario, RunContext(tiers, data, tmp_path, progress))
    return tiers.ran, found


@pytest.fixture(autouse=True)
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "unavailable_reason", lambda name, _: "boto3 is left out: test" if name == "boto3" else "")


def test_slower_peers_only_have_a_qualifying_run(tmp_path: Path) -> None:
    ran, found = measured(tmp_path, plain=80, s3torchconnector=77, webdataset=70)
    assert ran == ["plain", "s3torchconnector", "webdataset", "plain", "auto", "auto", "plain"]
    assert set(found.arms) == {"plain", "auto"} and comparisons.Rounds(found).fastest_plain() == "plain"
    assert {name: round(heat.samples_per_second) for name, heat in found.qualifying.items()} == {
        "plain": 80, "s3torchconnector": 77, "webdataset": 70}
    assert "boto3 is left out: test" in found.notes
    text = report.markdown(of_cells(found))
    assert "`plain` 80.0; `s3torchconnector` 77.0; `webdataset` 70.0. No loader of others was about as fast" in text
    assert "- `webdataset`, qualifying: set as webdataset" in text


def test_few_samples_have_no_qualifying_run() -> None:
    few = dataclasses.replace(SCENARIO, samples=qualifying.MIN_SAMPLES * qualifying.SAMPLE_DIVISOR - 1)
    assert qualifying.entrants(few) == []
    assert qualifying.entrants(dataclasses.replace(few, samples=few.samples + 1)) == ["plain", *arms.CONTENDERS]


def test_a_peer_that_is_about_as_fast_reads_in_every_round(tmp_path: Path) -> None:
    ran, found = measured(tmp_path, plain=80, s3torchconnector=79, webdataset=78.9)
    assert ran.count("s3torchconnector") == 3 and ran.count("webdataset") == 1
    assert found.arms["s3torchconnector"].kind == "peer" and len(found.arms["s3torchconnector"].trials) == 2
    ran, found = measured(tmp_path, plain=80, s3torchconnector=79, webdataset=160)
    assert set(found.arms) == {"plain", "auto", "webdataset"} and comparisons.Rounds(found).fastest_plain() == "webdataset"
    (plain,) = [each for each in comparisons.comparisons(found) if each.rule == "plain"]
    assert plain.under == "webdataset" and plain.ratio.median == pytest.approx(100 / 160)
    assert "`webdataset` read in every round, too" in report.markdown(of_cells(found)).lower()


def test_a_peer_with_failed_samples_does_not_qualify():
    of = lambda **runs: qualifying.fastest_peer({name: QualifyingRun(rate, errors, "") for name, (rate, errors) in runs.items()})
    assert of(plain=(80, 0), boto3=(90, 1), webdataset=(79, 0)) == ["webdataset"]
    assert of(plain=(80, 0), boto3=(90, 1)) == of(plain=(80, 0)) == of() == []
    assert of(plain=(80, 3), boto3=(10, 0)) == ["boto3"]


def test_only_cells_judged_against_plain_reading_have_qualifying_runs():
    wanted = lambda **settings: qualifying.entrants(dataclasses.replace(SCENARIO, **settings))
    assert wanted() == ["plain", "boto3", "s3torchconnector", "webdataset"]
    assert wanted(arms=("plain", "boto3", "auto")) == ["plain", "s3torchconnector", "webdataset"]
    assert wanted(arms=("plain", "auto", *arms.CONTENDERS)) == []
    assert wanted(arms=("plain", "pushed")) == wanted(arms=("pushed", "auto-first")) == []
    # Loaders of others do not encode.
    assert wanted(pipeline="decode | resize(short=256) | encode(jpeg, quality=90)") == []


def test_the_published_curve_ends_with_ours():
    assert [x and round(x, 1) for x, _ in published.curve(1)] == [0.2, 0.3, None]
    assert [x and round(x, 1) for x, _ in published.curve(10)] == [0.2, 0.3, 1.6, 3.2, 6.4, 9.6, None]
    assert [round(ratio, 2) for _, ratio in published.curve(1)] == [8.40, 8.49, 3.73]
    text = report.markdown(of_cells(cell(x=10, plain=[1.0] * 3, auto=[0.5] * 3)))
    assert "| 12.6 Gbit/s | 38 | 184 s | 126 s | 33.8 s | 3.73 |" in text
    assert "commit 884761c" in text
