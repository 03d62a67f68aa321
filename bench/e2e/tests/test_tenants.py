"""Jobs of several tenants: how their figures merge, and that all arms do the same work."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import comparisons  # noqa: E402
from ..kinds import RunContext, tenants  # noqa: E402
from ..results import Cell  # noqa: E402
from ..scenario import Scenario, load_all  # noqa: E402
from .build import arm, cell, trial  # noqa: E402

FIGURES = {
    "samples": 100, "errors": 0, "value_bytes": 5000, "stored_bytes": 9000, "cpu_seconds": 0.5, "peak_bytes": 1000,
    "wire_bytes_up": 10, "wire_bytes_down": 6000, "first_batch_seconds": 0.2, "batch_wait_p50_seconds": 0.01,
    "batch_wait_p99_seconds": 0.1, "waiting_seconds": 0.4, "seconds": 2.0,
}  # fmt: skip


def test_jobs_add_up_and_the_slowest_waits_count() -> None:
    slow = FIGURES | {"samples": 50, "errors": 2, "cpu_seconds": 1.5, "first_batch_seconds": 0.9, "waiting_seconds": 0.1}
    both = tenants.merge_jobs([FIGURES, slow], 3.0)
    assert {name: both[name] for name in ("samples", "errors", "value_bytes", "cpu_seconds", "peak_bytes")} == {
        "samples": 150, "errors": 2, "value_bytes": 10_000, "cpu_seconds": 2.0, "peak_bytes": 2000,
    }  # fmt: skip
    assert (both["stored_bytes"], both["wire_bytes_up"], both["wire_bytes_down"]) == (18_000, 20, 12_000)
    assert (both["first_batch_seconds"], both["batch_wait_p99_seconds"], both["waiting_seconds"]) == (0.9, 0.1, 0.4)
    # One epoch from the first start to the last end, regardless of each job's time.
    assert both["epoch_seconds"] == [3.0]


def test_one_job_keeps_its_figures() -> None:
    alone = tenants.merge_jobs([FIGURES], 2.5)
    assert alone == {name: value for name, value in FIGURES.items() if name != "seconds"} | {"epoch_seconds": [2.5]}


@pytest.mark.parametrize(
    ("rates", "index"), [([3.0], 1.0), ([5.0, 5.0, 5.0], 1.0), ([1.0, 0.0, 0.0, 0.0], 0.25), ([1.0, 3.0], 0.8)]
)
def test_jains_index_ranges_from_one_over_n_to_one(rates, index) -> None:
    assert tenants.jain_index(rates) == pytest.approx(index)
    assert tenants.jain_index([7 * rate for rate in rates]) == pytest.approx(index), "in any unit"


class FakeTiers:
    """Tiers that run nothing."""

    def __init__(self) -> None:
        self.stack = SimpleNamespace(store="http://store", gateway="http://gateway", store_cores={0}, external_tiers=[])
        self.host_cores, self.commands, self.keys = {1}, [], []

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list, **environment: str) -> dict:
        self.commands.append([str(part) for part in command])
        self.keys.append(environment["AWS_ACCESS_KEY_ID"])
        return FIGURES

    def run_trial(self, jobs):
        figures = jobs()
        return trial(*figures["epoch_seconds"], samples=figures["samples"])


def jobs(count: int, tmp_path: Path, **more: object) -> tuple[FakeTiers, Cell]:
    tiers = FakeTiers()
    scenario = Scenario("jobs", "", "tenants", False, pipeline="decode", sizes=(count,), rounds=1, **more)
    with tqdm(disable=True) as progress:
        (found,) = tenants.cells(scenario, RunContext(tiers, SimpleNamespace(photos=lambda *_: "photos/"), tmp_path, progress))
    return tiers, found


def test_each_job_has_its_tenant_and_reads_one_epoch(tmp_path: Path) -> None:
    """`auto` with two epochs would do twice the work, and the second half is faster."""
    tiers, found = jobs(2, tmp_path, epochs=2, arms=("plain", "repeat", "pushed", "auto"))
    assert {line[line.index("--epochs") + 1] for line in tiers.commands} == {"1"}
    assert sum("--auto" in line for line in tiers.commands) == 2 and len(set(tiers.keys)) == 2
    assert {name: (each.kind, [trial.samples for trial in each.trials]) for name, each in found.arms.items()} == {
        "plain": ("plain", [200]), "repeat": ("repeat", [200]), "pushed": ("pushed", [200]), "auto": ("auto", [200]),
    }  # fmt: skip
    assert "Jain's index over the jobs' rates, auto: 1.000" in found.notes


def test_auto_is_compared_with_plain_reading_among_tenants() -> None:
    missed = lambda found: {each.rule: each.is_missed for each in comparisons.comparisons(found)}
    arms = {"plain": arm("plain", [1.0] * 3, wire=1000), "repeat": [1.0] * 3, "pushed": [1.5] * 3}
    assert missed(cell(x=10, **arms, auto=[1.0] * 3)) == {"plain": False, "best": False, "bytes": False, "repeat": False}
    slow = missed(cell(x=10, **arms, auto=arm("auto", [1.1] * 3, wire=1001)))
    assert slow["plain"] and slow["bytes"]
    assert {"plain", "repeat", "auto"} <= set(load_all()["tenants"].arms)
