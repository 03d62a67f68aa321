"""Concurrent jobs of several tenants on one data set.

A job reads one epoch in every arm, `auto` too. The time runs from the first start to the last end, so a second epoch would be
different work. A plan has to measure the costs within the measured time.
"""

import dataclasses
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions
import programs
from stack import BUCKET
from stack import tenants as all_tenants

from .. import arms
from ..results import Arm, Cell
from ..scenario import OPEN, Scenario
from . import RunContext, build_cell, cell_notes, interleave

ARMS = (*arms.READERS, arms.REPEAT, arms.SPLIT)


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each number of tenants."""
    context.tiers.shape(OPEN, scenario.latency_ms)
    for count in scenario.sizes:
        yield measure_cell(scenario, context, count)


def measure_cell(scenario: Scenario, context: RunContext, count: int) -> Cell:
    """`count` concurrent jobs, each of which reads the whole data set."""
    one_epoch = dataclasses.replace(scenario, epochs=1)
    built = {name: arms.build(name, one_epoch, context.tiers, context.data, context.folder) for name in scenario.arms}
    measured_arms = {name: Arm(arm.kind, arm.settings) for name, arm in built.items()}
    fairness: dict[str, list[float]] = {name: [] for name in built}

    def run_trial(name: str) -> None:
        arm = built[name]
        arm.prepare()

        def run_job(keys: dict[str, str]) -> dict:
            return context.tiers.run(arm.command, **arm.environment, **keys)

        def run_jobs() -> dict:
            started = time.monotonic()
            with ThreadPoolExecutor(count) as pool:
                jobs = list(pool.map(run_job, all_tenants()[:count]))
            rates = [figures["samples"] / figures["seconds"] for figures in jobs]
            fairness[name].append(jain_index(rates))
            return merge_jobs(jobs, time.monotonic() - started)

        measured_arms[name].trials.append(context.tiers.run_trial(run_jobs))

    interleave(list(built), scenario.rounds, run_trial, context.progress)
    shares = [f"Jain's index over the jobs' rates, {name}: {statistics.median(fairness[name]):.3f}" for name in built]
    name = f"{count} {'job' if count == 1 else 'jobs'} at once"
    notes = [*cell_notes(scenario, context), *shares]
    return build_cell(name, "tenants", measured_arms, notes, x=float(count), x_label="jobs at once")


def refused_tenants(store: str, count: int) -> list[str]:
    """Those of the first `count` tenants that an external store refuses."""
    return [keys["AWS_ACCESS_KEY_ID"] for keys in all_tenants()[:count] if is_refused(store, keys)]


def is_refused(store: str, keys: dict[str, str]) -> bool:
    """Whether a store refuses these keys. It reports the existence of a bucket only to known keys."""
    try:
        programs.s3(store, keys, retries={"total_max_attempts": 1}).head_bucket(Bucket=BUCKET)
    except botocore.exceptions.ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    except botocore.exceptions.BotoCoreError:
        # The scenario itself reports a store that does not answer.
        return False
    return False


def merge_jobs(jobs: list[dict], seconds: float) -> dict:
    """The figures of all jobs as those of one: sums, the slowest waits, and one epoch of `seconds`. Some readers lack figures."""
    add = lambda name: sum(figures[name] for figures in jobs)
    most = lambda name: max(figures[name] for figures in jobs)
    sums = ("samples", "errors", "value_bytes", "stored_bytes", "cpu_seconds", "peak_bytes", "wire_bytes_up", "wire_bytes_down")
    slowest = ("first_batch_seconds", "batch_wait_p50_seconds", "batch_wait_p99_seconds", "waiting_seconds")
    known = lambda names: [name for name in names if all(name in figures for figures in jobs)]
    merged = {name: add(name) for name in known(sums)} | {name: most(name) for name in known(slowest)}
    return merged | {"epoch_seconds": [seconds]}


def jain_index(rates: list[float]) -> float:
    """Jain's fairness index: 1 for equal rates, 1/n if one job has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
