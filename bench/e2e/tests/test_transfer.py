"""A whole training run: cells from the lines of the example `transfer-learning`, which reads by all methods in one process."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import comparisons  # noqa: E402
from ..kinds import transfer  # noqa: E402
from ..results import Cell  # noqa: E402
from ..scenario import Scenario  # noqa: E402

LINE = {
    "method": "plain", "samples": 100, "seconds": 4.0, "received_bytes": 9000, "sent_bytes": 100, "stored_bytes": 9000,
    "cpu_seconds": 0.5, "gateway_cpu_seconds": 0.1, "balanced_accuracy": 0.75, "auc": 0.8, "other_predictions": 0,
    "train_seconds": 0.5, "peak_bytes": 80_000_000,
}  # fmt: skip
WAYS = {"plain": 4.0, "pushed": 2.0, "auto": 1.0, "cached": 1.5, "cached, again": 0.1}


class FakeTiers:
    """Tiers that return the same lines each time, and record the requests."""

    def __init__(self, **more: object) -> None:
        self.stack = SimpleNamespace(store="s", gateway="g", admin="a", models="m", store_cores={0}, external_tiers=[])
        self.host_cores, self.asked, self.more = {1}, [], more

    def shape(self, *_: float) -> float:
        return 98e6

    def store_side_processes(self) -> dict:
        return {"store": [], "gateway": []}

    def measure_peaks(self, arm: Callable[[], dict], trees: dict) -> tuple[dict, dict]:
        assert trees == self.store_side_processes()
        return arm(), {"store": None, "gateway": 50_000_000 + len(self.asked)}

    def run(self, command: list) -> dict:
        once = "--methods" in command
        self.asked.append(command[command.index("--methods") + 1] if once else "all")
        ways = {"plain": 4.1} if once else WAYS
        lines = [LINE | {"method": way, "seconds": seconds} | self.more for way, seconds in ways.items()]
        # Only the part of one epoch reads cached values again.
        return {"parts": [{"name": "one epoch", "lines": lines}, {"name": "2 epochs", "lines": lines[:4]}]}


def cells(tiers: FakeTiers, rounds: int) -> list[Cell]:
    scenario = Scenario("whole", "", "transfer", False, links=("100 Mbit/s",), epochs=2, rounds=rounds)
    with tqdm(disable=True) as progress:
        run = SimpleNamespace(tiers=tiers, data=SimpleNamespace(labelled=lambda _: None), progress=progress)
        return list(transfer.cells(scenario, run))


def test_each_round_runs_all_methods_and_the_repetition_in_alternating_order() -> None:
    tiers = FakeTiers()
    once, augmented = cells(tiers, 3)
    assert tiers.asked == ["all", "plain", "plain", "all", "all", "plain"]
    assert list(once.arms) == [*WAYS, "repeat"] and list(augmented.arms) == [*list(WAYS)[:4], "repeat"]
    assert all(len(arm.trials) == 3 for found in (once, augmented) for arm in found.arms.values())
    kinds = {"plain": "plain", "repeat": "repeat", "pushed": "pushed", "auto": "auto", "cached": "layout", "cached, again": "layout"}
    assert {name: arm.kind for name, arm in once.arms.items()} == kinds
    (repeat,) = [each for each in comparisons.comparisons(once) if each.rule == "repeat"]
    assert (repeat.over, repeat.ratio.median) == ("plain", pytest.approx(4.0 / 4.1))


def test_a_transfer_without_gateway_metrics_has_no_gateway_cpu() -> None:
    assert transfer.to_trial(LINE | {"gateway_cpu_seconds": None}).cpu_seconds == {"host": 0.5}
    assert transfer.to_trial(LINE | {"gateway_cpu_seconds": 0.0}).cpu_seconds == {"gateway": 0.0, "host": 0.5}


def test_host_memory_is_per_method_and_store_side_memory_per_run() -> None:
    (once, _) = cells(FakeTiers(), 1)
    assert {arm.trials[0].peak_bytes["host"] for arm in once.arms.values()} == {80_000_000}
    (note,) = [note for note in once.notes if "peak memory" in note]
    assert note.startswith("peak memory in a run of all methods: gateway") and "store" not in note
    assert transfer.peak_memory_notes([{}]) == []


def test_the_time_of_a_head_includes_reading_and_training() -> None:
    trial = transfer.to_trial(LINE)
    assert (trial.epoch_seconds, trial.trained_seconds, trial.balanced_accuracy) == ([4.0], 4.5, 0.75)


def test_the_scores_of_each_method_cover_all_rounds() -> None:
    (once, _) = cells(FakeTiers(), 3)
    scores = [note for note in once.notes if "held-out" in note]
    assert [note.partition(":")[0] for note in scores] == list(WAYS)
    differs = [LINE, LINE | {"other_predictions": 3, "auc": 0.7}, LINE | {"auc": 0.9}]
    described = transfer.describe_predictions(differs)
    assert described.startswith("AUC 0.800 on held-out photos") and "at most 3 predictions" in described
    assert transfer.describe_predictions([LINE | {"auc": None}]).startswith("no score on held-out photos")
