"""Jobs of several tenants at once on one data set: what each of them gets.

Whichever way it goes, a job reads one epoch, `auto` too: what is timed is from the first start to the last end, and a job that
reads on would be another one. So a plan has to find out what samples cost within what is measured.
"""

import dataclasses
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions
import programs
from stack import BUCKET
from stack import tenants as everybody

from .. import arms
from ..results import Arm, Cell
from ..scenario import OPEN, Scenario
from . import Run, cell_of, circumstances, in_turns

ARMS = (*arms.OURS, arms.AGAIN, arms.SPLIT)


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each number of tenants."""
    run.tiers.shape(OPEN, scenario.latency_ms)
    for count in scenario.sizes:
        yield cell(scenario, run, count)


def cell(scenario: Scenario, run: Run, count: int) -> Cell:
    """So many jobs at a time, each reading the whole data set, each by every arm."""
    once = dataclasses.replace(scenario, epochs=1)
    chosen = {name: arms.of(name, once, run.tiers, run.data, run.folder) for name in scenario.arms}
    found = {name: Arm(arm.kind, arm.settings) for name, arm in chosen.items()}
    fairness: dict[str, list[float]] = {name: [] for name in chosen}

    def turn(name: str) -> None:
        arm = chosen[name]
        arm.before()

        def job(keys: dict[str, str]) -> dict:
            return run.tiers.run(arm.command, **arm.environment, **keys)

        def all_jobs() -> dict:
            started = time.monotonic()
            with ThreadPoolExecutor(count) as pool:
                jobs = list(pool.map(job, everybody()[:count]))
            rates = [figures["samples"] / figures["seconds"] for figures in jobs]
            fairness[name].append(jain(rates))
            return together(jobs, time.monotonic() - started)

        found[name].turns.append(run.tiers.turn(all_jobs))

    in_turns(list(chosen), scenario.repeats, turn, run.progress)
    shares = [f"Jain's index over the jobs' rates, {name}: {statistics.median(fairness[name]):.3f}" for name in chosen]
    name = f"{count} {'job' if count == 1 else 'jobs'} at once"
    return cell_of(name, "tenants", found, [*circumstances(scenario, run), *shares], x=float(count), x_label="jobs at once")


def strangers(store: str, count: int) -> list[str]:
    """Those of so many tenants whom a store that runs already refuses."""
    return [keys["AWS_ACCESS_KEY_ID"] for keys in everybody()[:count] if refused(store, keys)]


def refused(store: str, keys: dict[str, str]) -> bool:
    """Whether a store refuses these keys: whether there is a bucket it tells only those whom it knows."""
    try:
        programs.s3(store, keys, retries={"total_max_attempts": 1}).head_bucket(Bucket=BUCKET)
    except botocore.exceptions.ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    except botocore.exceptions.BotoCoreError:
        # A store that does not answer breaks every scenario, and is told of there.
        return False
    return False


def together(jobs: list[dict], seconds: float) -> dict:
    """The figures of all jobs as those of one: sums, the slowest, and one epoch from the first start to the last end."""
    add = lambda name: sum(figures[name] for figures in jobs)
    most = lambda name: max(figures[name] for figures in jobs)
    sums = ("samples", "errors", "value_bytes", "stored_bytes", "cpu_seconds", "peak_bytes", "wire_bytes_up", "wire_bytes_down")
    slowest = ("first_batch_seconds", "batch_wait_p50_seconds", "batch_wait_p99_seconds", "waiting_seconds")
    return {name: add(name) for name in sums} | {name: most(name) for name in slowest} | {"epoch_seconds": [seconds]}


def jain(rates: list[float]) -> float:
    """Jain's fairness index: 1 where all are alike, 1/n where one has all (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
