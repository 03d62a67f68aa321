"""Jobs of several tenants: what is made of their figures, and that they are alike whichever way they go."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import stats  # noqa: E402
from ..kinds import Run, tenants  # noqa: E402
from ..results import Cell  # noqa: E402
from ..scenario import Scenario, all_of  # noqa: E402
from .build import arm, cell, turn  # noqa: E402

FIGURES = {
    "samples": 100, "errors": 0, "value_bytes": 5000, "stored_bytes": 9000, "cpu_seconds": 0.5, "peak_bytes": 1000,
    "wire_bytes_up": 10, "wire_bytes_down": 6000, "first_batch_seconds": 0.2, "batch_wait_p50_seconds": 0.01,
    "batch_wait_p99_seconds": 0.1, "waiting_seconds": 0.4, "seconds": 2.0,
}  # fmt: skip


def test_jobs_add_up_and_the_slowest_of_them_is_told() -> None:
    slow = FIGURES | {"samples": 50, "errors": 2, "cpu_seconds": 1.5, "first_batch_seconds": 0.9, "waiting_seconds": 0.1}
    both = tenants.together([FIGURES, slow], 3.0)
    assert {name: both[name] for name in ("samples", "errors", "value_bytes", "cpu_seconds", "peak_bytes")} == {
        "samples": 150, "errors": 2, "value_bytes": 10_000, "cpu_seconds": 2.0, "peak_bytes": 2000,
    }  # fmt: skip
    assert (both["stored_bytes"], both["wire_bytes_up"], both["wire_bytes_down"]) == (18_000, 20, 12_000)
    assert (both["first_batch_seconds"], both["batch_wait_p99_seconds"], both["waiting_seconds"]) == (0.9, 0.1, 0.4)
    # One epoch, however long each job took: from the first start to the last end.
    assert both["epoch_seconds"] == [3.0]


def test_of_one_job_its_own_figures_are_left() -> None:
    alone = tenants.together([FIGURES], 2.5)
    assert alone == {name: value for name, value in FIGURES.items() if name != "seconds"} | {"epoch_seconds": [2.5]}


@pytest.mark.parametrize(
    ("rates", "index"), [([3.0], 1.0), ([5.0, 5.0, 5.0], 1.0), ([1.0, 0.0, 0.0, 0.0], 0.25), ([1.0, 3.0], 0.8)]
)
def test_jains_index_is_one_where_all_have_the_same_and_falls_to_one_part_where_one_has_all(rates, index) -> None:
    assert tenants.jain(rates) == pytest.approx(index)
    assert tenants.jain([7 * rate for rate in rates]) == pytest.approx(index), "whatever the unit"


class Still:
    """Tiers that run nothing."""

    def __init__(self) -> None:
        self.stack = SimpleNamespace(store="http://store", gateway="http://gateway", there={0}, elsewhere=[])
        self.here, self.commands, self.keys = {1}, [], []

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, **environment: str) -> dict:
        self.commands.append([str(part) for part in command])
        self.keys.append(environment["AWS_ACCESS_KEY_ID"])
        return FIGURES

    def turn(self, jobs):
        figures = jobs()
        return turn(*figures["epoch_seconds"], samples=figures["samples"])


def jobs(count: int, tmp_path: Path, **more: object) -> tuple[Still, Cell]:
    tiers = Still()
    scenario = Scenario("jobs", "", "tenants", False, pipeline="decode", sizes=(count,), repeats=1, **more)
    with tqdm(disable=True) as progress:
        (found,) = tenants.cells(scenario, Run(tiers, SimpleNamespace(photos=lambda *_: "photos/"), tmp_path, progress))
    return tiers, found


def test_each_job_is_a_tenants_and_reads_one_epoch_whichever_way_it_goes(tmp_path: Path) -> None:
    """`auto` of two epochs would be a job of twice the work, of which the second half is the sooner one."""
    tiers, found = jobs(2, tmp_path, epochs=2, arms=("plain", "again", "pushed", "auto"))
    assert {line[line.index("--epochs") + 1] for line in tiers.commands} == {"1"}
    assert sum("--auto" in line for line in tiers.commands) == 2 and len(set(tiers.keys)) == 2
    assert {name: (each.kind, [turn.samples for turn in each.turns]) for name, each in found.arms.items()} == {
        "plain": ("plain", [200]), "again": ("again", [200]), "pushed": ("pushed", [200]), "auto": ("auto", [200]),
    }  # fmt: skip
    assert "Jain's index over the jobs' rates, auto: 1.000" in found.notes


def test_auto_is_held_against_plain_reading_among_tenants_too() -> None:
    rules = lambda found: {each.rule: each.outcome for each in stats.verdicts(found)}
    arms = {"plain": arm("plain", [1.0] * 3, wire=1000), "again": [1.0] * 3, "pushed": [1.5] * 3}
    assert rules(cell(x=10, **arms, auto=[1.0] * 3)) == {"plain": "pass", "best": "pass", "bytes": "pass", "again": "pass"}
    slow = rules(cell(x=10, **arms, auto=arm("auto", [1.1] * 3, wire=1001)))
    assert (slow["plain"], slow["bytes"]) == ("fail", "fail")
    assert {"plain", "again", "auto"} <= set(all_of()["tenants"].arms)
