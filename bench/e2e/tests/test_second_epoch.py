"""A later epoch over links: what a trial runs, and what is judged."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import comparisons, report  # noqa: E402
from ..kinds import RunContext  # noqa: E402
from ..kinds import second_epoch as kind  # noqa: E402
from ..results import Arm, Cell, Trial  # noqa: E402
from ..scenario import Scenario, load_all, needs_shaping  # noqa: E402
from .build import results, trial  # noqa: E402
from .fake_gateway import FakeTiers, argument, counting_gateway  # noqa: E402


def measured(scenario: Scenario, folder: Path) -> tuple[FakeTiers, list[Cell]]:
    prefixes = SimpleNamespace(photos=lambda _, count: f"photos-{count}/")
    with counting_gateway() as admin, tqdm(disable=True) as progress:
        tiers = FakeTiers(admin)
        return tiers, list(kind.cells(scenario, RunContext(tiers, prefixes, folder, progress)))


def test_the_cache_is_filled_over_an_open_link_and_later_epochs_are_read_over_the_shaped_one(tmp_path: Path) -> None:
    scenario = Scenario(
        "s", "", "second-epoch", False, group="pixels", pipeline="decode", arms=("memory", "partial"), epochs=3, rounds=1,
        samples=100, links=("100 Mbit/s", "1000 Mbit/s"),
    )  # fmt: skip
    tiers, (slow, fast) = measured(scenario, tmp_path)
    memory, partial = ("--memory-budget=2GiB", "--cache-memory=1GiB"), ("--memory-budget=2GiB", "--cache-memory=320MiB")
    assert tiers.gateways == [memory, memory, partial, ()], "one per trial, and at the end"
    assert tiers.rates == [1e8, float("inf"), 1e8, 1e9, *[float("inf"), 1e9] * 2, float("inf")]
    flags = [tuple(argument(line, flag) for flag in ("--epoch", "--epochs")) for line in tiers.commands]
    assert flags == [("0", "2"), ("2", "3")] * 3
    assert (slow.name, slow.bandwidth, list(slow.arms)) == ("pixels, 100 Mbit/s", 0.98e8, ["memory"])
    assert list(fast.arms) == ["memory", "partial"]
    assert fast.arms["partial"].trials[0].cached_ratio == 0.5 and len(fast.arms["partial"].trials[0].epoch_seconds) == 3
    assert "partial is measured over the fastest link only" in slow.notes and len(fast.notes) == 1


def test_links_without_a_bandwidth_of_their_own_are_refused(tmp_path: Path) -> None:
    scenario = Scenario("s", "", "second-epoch", False, pipeline="decode", arms=("memory",), links=("0.3 B",))
    with pytest.raises(ValueError, match="expected bandwidths"):
        measured(scenario, tmp_path)


def later(hits: float, ratio: float | None, seconds: float = 1.0) -> Trial:
    """Two epochs of 100 samples of 10,000 bytes on the wire each: 1 MB in `seconds`."""
    one = trial(9.0, seconds, wire=10_000)
    one.cache_values, one.cached_ratio, one.value_bytes = {"memory": hits, "computed": 200 - hits}, ratio, 1.9e6
    return one


def judged(**arms: Trial) -> Cell:
    built = {name: Arm("pushed", "", [one] * 3) for name, one in arms.items()}
    required = {"link": 0.9, "hits": 0.97}
    return Cell("cell", "second epoch", None, "", 8e6, None, None, next(iter(built)), [], None, built, required=required)


def outcomes(cell: Cell) -> list[tuple[str, str, bool]]:
    return [(each.rule, each.arm, each.is_missed) for each in comparisons.comparisons(cell)]


def test_the_rate_of_the_link_and_hits_per_sample_are_judged() -> None:
    cell = judged(memory=later(200, 1.0), partial=later(98, 0.5, seconds=3))
    assert outcomes(cell) == [("link", "memory", False), ("hits", "memory", False), ("hits", "partial", False)]
    text = report.markdown(results(cell, kind="second-epoch"))
    assert "| announced cached ratio | hits per sample | CPU of store and gateway per hit |" in text
    assert "| 7.60 Mbit/s | 8.00 Mbit/s | 1.00 | 1.00 | 2.50 ms |" in text and "| 0.500 | 0.490 | - |" in text
    assert "| bits/s on the wire: `memory / link` | 1.00 (1.00 to 1.00 over 3 rounds) | ≥ 0.9 |" in text
    assert "| hits per sample: `partial / announced` | 0.980 (0.980 to 0.980 over 3 rounds) | ≥ 0.97 |" in text
    assert "## Second epoch" in text


def test_a_cache_without_hits_fails_and_one_that_announced_none_is_not_judged() -> None:
    assert outcomes(judged(memory=later(0, 1.0, seconds=2))) == [("link", "memory", True), ("hits", "memory", True)]
    (unannounced,) = comparisons.comparisons(judged(partial=later(100, None)))
    assert (unannounced.rule, unannounced.ratio, unannounced.is_missed) == ("hits", None, False)


def test_the_scenario_is_outside_of_the_default_matrix() -> None:
    scenario = load_all()["second-epoch"]
    assert not scenario.default and needs_shaping(scenario) and set(scenario.arms) == set(kind.ARMS)
    assert scenario.links == ("100 Mbit/s", "300 Mbit/s", "1000 Mbit/s")
