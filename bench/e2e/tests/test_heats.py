"""Who else is tried as plain reading, and who of them reads in every round."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import arms, published, report, results, stats  # noqa: E402
from ..kinds import Run, heats, read  # noqa: E402
from ..results import Heat  # noqa: E402
from ..scenario import Scenario  # noqa: E402
from .build import cell, turn  # noqa: E402
from .build import results as of_cells  # noqa: E402

PIXELS = "decode | resize(short=144) | center_crop(128)"
SCENARIO = Scenario("s", "", "read", False, pipeline=PIXELS, arms=("plain", "auto"), repeats=2)


class Racing:
    """Tiers on which each way has a rate of its own."""

    def __init__(self, folder: Path, **rates: float) -> None:
        self.stack = SimpleNamespace(
            store="http://store", gateway="http://gateway", there={0}, elsewhere=[], model_folder=lambda _: folder
        )
        self.here, self.rates, self.ran = {1}, rates, []

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, **_: str) -> dict:
        name = next((name for name in arms.CONTENDERS if name in map(str, command)), "plain" if "--plain" in command else "auto")
        self.ran.append(name)
        return {"samples": 100, "errors": 0, "epoch_seconds": [100 / self.rates[name]], "settings": f"set as {name}"}

    def turn(self, arm) -> results.Turn:
        return turn(arm()["epoch_seconds"][0])


def measured(tmp_path: Path, scenario: Scenario = SCENARIO, **rates: float) -> tuple[list[str], results.Cell]:
    tiers = Racing(tmp_path, auto=100, **rates)
    data = SimpleNamespace(photos=lambda *_: "photos/", shards=lambda *_: "shards/")
    with tqdm(disable=True) as progress:
        (found,) = read.cells(scenario, Run(tiers, data, tmp_path, progress))
    return tiers.ran, found


@pytest.fixture(autouse=True)
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "missing", lambda name, _: "boto3 is left out: who knows" if name == "boto3" else "")


def test_where_ours_is_clearly_ahead_others_have_one_turn(tmp_path: Path) -> None:
    ran, found = measured(tmp_path, plain=80, s3torchconnector=77, webdataset=70)
    assert ran == ["plain", "s3torchconnector", "webdataset", "plain", "auto", "auto", "plain"]
    assert set(found.arms) == {"plain", "auto"} and stats.fastest_plain(found) == "plain"
    assert {name: round(heat.samples_per_second) for name, heat in found.heats.items()} == {
        "plain": 80, "s3torchconnector": 77, "webdataset": 70}
    assert "boto3 is left out: who knows" in found.notes
    text = report.markdown(of_cells(found))
    assert "`plain` 80.0; `s3torchconnector` 77.0; `webdataset` 70.0. No loader of others was about as fast" in text
    assert "- `webdataset`, in its heat: set as webdataset" in text


def test_of_few_samples_there_is_no_heat() -> None:
    few = dataclasses.replace(SCENARIO, samples=heats.FEWEST * heats.PART - 1)
    assert heats.wanted(few) == []
    assert heats.wanted(dataclasses.replace(few, samples=few.samples + 1)) == ["plain", *arms.CONTENDERS]


def test_the_fastest_of_others_reads_in_every_round_where_it_is_about_as_fast(tmp_path: Path) -> None:
    ran, found = measured(tmp_path, plain=80, s3torchconnector=79, webdataset=78.9)
    assert ran.count("s3torchconnector") == 3 and ran.count("webdataset") == 1
    assert found.arms["s3torchconnector"].kind == "peer" and len(found.arms["s3torchconnector"].turns) == 2
    ran, found = measured(tmp_path, plain=80, s3torchconnector=79, webdataset=160)
    assert set(found.arms) == {"plain", "auto", "webdataset"} and stats.fastest_plain(found) == "webdataset"
    (plain,) = [verdict for verdict in stats.verdicts(found) if verdict.rule == "plain" and verdict.measure == "seconds"]
    assert plain.against == "webdataset" and plain.median == pytest.approx(100 / 160)
    assert "`webdataset` read in every round beside it" in report.markdown(of_cells(found)).lower()


def test_who_does_not_deliver_every_sample_does_not_go_on():
    of = lambda **heats_: heats.fastest({name: Heat(rate, errors, "") for name, (rate, errors) in heats_.items()})
    assert of(plain=(80, 0), boto3=(90, 1), webdataset=(79, 0)) == ["webdataset"]
    assert of(plain=(80, 0), boto3=(90, 1)) == of(plain=(80, 0)) == of() == []
    assert of(plain=(80, 3), boto3=(10, 0)) == ["boto3"]


def test_only_what_is_judged_against_plain_reading_has_heats():
    wanted = lambda **settings: heats.wanted(dataclasses.replace(SCENARIO, **settings))
    assert wanted() == ["plain", "boto3", "s3torchconnector", "webdataset"]
    assert wanted(arms=("plain", "boto3", "auto")) == ["plain", "s3torchconnector", "webdataset"]
    assert wanted(arms=("plain", "auto", *arms.CONTENDERS)) == []
    assert wanted(arms=("plain", "pushed")) == wanted(arms=("pushed", "auto-first")) == []
    # Others' loaders encode nothing.
    assert wanted(pipeline="decode | resize(short=256) | encode(jpeg, quality=90)") == []


def test_the_curve_that_others_published_goes_as_far_as_ours_does():
    assert [x and round(x, 1) for x, _ in published.curve(1)] == [0.2, 0.3, None]
    assert [x and round(x, 1) for x, _ in published.curve(10)] == [0.2, 0.3, 1.6, 3.2, 6.4, 9.6, None]
    assert [round(ratio, 2) for _, ratio in published.curve(1)] == [8.40, 8.49, 3.73]
    text = report.markdown(of_cells(cell(x=10, plain=[1.0] * 3, auto=[0.5] * 3)))
    assert "| 12.6 Gbit/s | 38 | 184 s | 126 s | 33.8 s | 3.73 |" in text
    assert "commit 884761c" in text
