"""A whole training run: what is made of the lines of the demo, which reads all ways in one process."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import stats  # noqa: E402
from ..kinds import transfer  # noqa: E402
from ..results import Cell  # noqa: E402
from ..scenario import Scenario  # noqa: E402

LINE = {
    "way": "plain", "samples": 100, "seconds": 4.0, "received_bytes": 9000, "sent_bytes": 100, "stored_bytes": 9000,
    "cpu_seconds": 0.5, "gateway_cpu_seconds": 0.1, "balanced_accuracy": 0.75, "auc": 0.8, "other_predictions": 0,
    "train_seconds": 0.5, "peak_bytes": 80_000_000,
}  # fmt: skip
WAYS = {"plain": 4.0, "pushed": 2.0, "auto": 1.0, "keep": 1.5, "keep, again": 0.1}


class Demo:
    """Tiers that tell the same lines each time, and remember what they were asked for."""

    def __init__(self, **more: object) -> None:
        self.stack = SimpleNamespace(store="s", gateway="g", admin="a", models="m", there={0}, elsewhere=[])
        self.here, self.asked, self.more = {1}, [], more

    def shape(self, *_: float) -> float:
        return 98e6

    def beside(self) -> dict:
        return {"store": [], "gateway": []}

    def peaks(self, arm: Callable[[], dict], trees: dict) -> tuple[dict, dict]:
        assert trees == self.beside()
        return arm(), {"store": None, "gateway": 50_000_000 + len(self.asked)}

    def run(self, command: list) -> dict:
        once = "--ways" in command
        self.asked.append(command[command.index("--ways") + 1] if once else "all")
        ways = {"plain": 4.1} if once else WAYS
        lines = [LINE | {"way": way, "seconds": seconds} | self.more for way, seconds in ways.items()]
        # What is kept is kept of one epoch alone.
        return {"parts": [{"name": "one epoch", "lines": lines}, {"name": "2 epochs", "lines": lines[:4]}]}


def cells(tiers: Demo, rounds: int) -> list[Cell]:
    scenario = Scenario("whole", "", "transfer", False, links=("100 Mbit/s",), epochs=2, repeats=rounds)
    with tqdm(disable=True) as progress:
        run = SimpleNamespace(tiers=tiers, data=SimpleNamespace(labelled=lambda _: None), progress=progress)
        return list(transfer.cells(scenario, run))


def test_each_round_reads_all_ways_and_the_baseline_once_more_and_begins_with_the_other_one() -> None:
    tiers = Demo()
    once, augmented = cells(tiers, 3)
    assert tiers.asked == ["all", "plain", "plain", "all", "all", "plain"]
    assert list(once.arms) == [*WAYS, "again"] and list(augmented.arms) == [*list(WAYS)[:4], "again"]
    assert all(len(arm.turns) == 3 for found in (once, augmented) for arm in found.arms.values())
    kinds = {"plain": "plain", "again": "again", "pushed": "pushed", "auto": "auto", "keep": "layout", "keep, again": "layout"}
    assert {name: arm.kind for name, arm in once.arms.items()} == kinds
    (tie,) = [each for each in stats.verdicts(once) if each.rule == "again"]
    assert (tie.against, tie.median, tie.outcome) == ("plain", pytest.approx(4.0 / 4.1), "pass")


def test_a_transfer_whose_gateway_tells_nothing_has_no_cpu_of_it() -> None:
    assert transfer.turn(LINE | {"gateway_cpu_seconds": None}).cpu == {"host": 0.5}
    assert transfer.turn(LINE | {"gateway_cpu_seconds": 0.0}).cpu == {"gateway": 0.0, "host": 0.5}


def test_memory_is_told_of_each_way_here_and_of_all_of_them_beside_the_link() -> None:
    (once, _) = cells(Demo(), 1)
    assert {arm.turns[0].peak_bytes["host"] for arm in once.arms.values()} == {80_000_000}
    (note,) = [note for note in once.notes if "peak memory" in note]
    assert note.startswith("peak memory in a run of all ways: gateway") and "store" not in note
    assert transfer.beside([{}]) == []


def test_a_head_is_there_once_its_features_are_read_and_it_is_trained() -> None:
    turn = transfer.turn(LINE)
    assert (turn.seconds, turn.trained_seconds, turn.balanced_accuracy) == ([4.0], 4.5, 0.75)


def test_how_good_the_heads_of_all_rounds_are_is_told_of_each_way() -> None:
    (once, _) = cells(Demo(), 3)
    told = [note for note in once.notes if "held out" in note]
    assert [note.partition(":")[0] for note in told] == list(WAYS)
    differs = [LINE, LINE | {"other_predictions": 3, "auc": 0.7}, LINE | {"auc": 0.9}]
    assert transfer.held_out(differs).startswith("AUC 0.800 on photos") and "at most 3 predictions" in transfer.held_out(differs)
    assert transfer.held_out([LINE | {"auc": None}]).startswith("no score on photos")
