"""Jobs that read one data set at the same time through one gateway, with its result cache off, in memory or on a disk.

Each trial starts a gateway with an empty cache. `COUNT` readers read two epochs, each in an order of its own, and then a third
one: the *later* epoch, in which everything can be cached. The first epoch is what two epochs cost less the later one. Readers do
not wait for each other between epochs, so no counter could separate the first from the second; and a reader of a single epoch
would not announce that values are used again. The difference also contains no listing, which every reader does once per run.
"""

import dataclasses
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from stack import BUCKET

from .. import arms, stats
from ..results import Arm, Cell, Trial
from ..scenario import OPEN, Scenario
from ..tiers import ArmError, read_metric
from . import RunContext, build_cell, cell_notes, interleave, tenants

# The settings of the result cache, and tf.data service with its own sharing.
PEER = "tfdata"
ARMS = (stats.UNSHARED, *stats.SHARED, PEER)
CACHE_FLAGS = {stats.UNSHARED: [], "memory": ["--cache-memory=256MiB"], "disk": ["--cache-disk=1GiB", "--cache-dir={folder}"]}
# Bytes from the store of all jobs to those of one.
MAX_STORE_RATIO = 1.02
# The cell with the requirement on the CPU of all jobs, and with the peer.
JUDGED_JOBS = 4
STORE_BYTES = "pushdown_store_received_bytes_total"
VALUES = 'pushdown_cache_values_total{{origin="{}"}}'


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each number of jobs. The gateway has the scenario's flags again after the last one."""
    context.tiers.shape(OPEN, scenario.latency_ms)
    for count in scenario.sizes:
        yield measure_cell(scenario, context, count)
    context.tiers.stack.restart_gateway(*scenario.gateway_flags)


def measure_cell(scenario: Scenario, context: RunContext, count: int) -> Cell:
    """`count` jobs with each setting, and in every round one job without a cache, which all others are compared with."""
    left_out = unavailable_arms(scenario, context, count)
    names = [name for name in scenario.arms if name not in left_out]
    measured = {name: arm_of(name, count) for name in names}
    measured[stats.ONE_JOB] = arm_of(stats.UNSHARED, 1)
    later = {stats.later(name): Arm("pushed", f"a later epoch of `{name}`") for name in measured if name != PEER}

    def run_trial(name: str) -> None:
        if name == PEER:
            trial, measured[name].settings = run_peer(scenario, context, count)
            measured[name].trials.append(trial)
            return
        jobs, setting = (1, stats.UNSHARED) if name == stats.ONE_JOB else (count, name)
        restart_gateway(scenario, context, setting)
        both = run_jobs(scenario, context, jobs, epoch=0, epochs=2)
        last = run_jobs(scenario, context, jobs, epoch=2, epochs=1)
        measured[name].trials.append(first_epoch(both, last))
        later[stats.later(name)].trials.append(last)

    interleave(list(measured), scenario.rounds, run_trial, context.progress)
    name = f"{count} {'job' if count == 1 else 'jobs'} on one data set"
    notes = [*cell_notes(scenario, context), *left_out.values(), f"{scenario.samples} samples, read by each job"]
    cell = build_cell(name, "sharing", measured | later, notes, x=float(count), x_label="jobs on one data set")
    cell.baseline, cell.required = stats.ONE_JOB, requirements(scenario, count)
    return cell


def unavailable_arms(scenario: Scenario, context: RunContext, count: int) -> dict[str, str]:
    """The arms that are left out of a cell, with the reasons. The peer is in one cell only."""
    external = context.tiers.stack.external_tiers
    reasons = {name: arms.unavailable_reason(name, external) for name in scenario.arms}
    if PEER in reasons and count != JUDGED_JOBS:
        reasons[PEER] = f"{PEER} is measured with {JUDGED_JOBS} jobs only"
    return {name: reason for name, reason in reasons.items() if reason}


def requirements(scenario: Scenario, count: int) -> dict[str, float]:
    """The requirements of a cell, by rule, as ratios of which more is better."""
    required = {"store-bytes": 1 / MAX_STORE_RATIO}
    if count == JUDGED_JOBS and scenario.max_jobs_cpu_ratio:
        required["jobs-cpu"] = 1 / scenario.max_jobs_cpu_ratio
    if count == 1 and scenario.max_later_cpu_ratio:
        required["later-cpu"] = 1 / scenario.max_later_cpu_ratio
    return required


def arm_of(name: str, count: int) -> Arm:
    """An arm without trials. The peer reports its settings itself."""
    if name == PEER:
        return Arm(arms.PEERS[PEER][0], "")
    flags = " ".join(CACHE_FLAGS[name]).format(folder="DIR") or "no result cache"
    return Arm("pushed", f"first epoch of {count} `pushdown read --split full`; gateway: {flags}")


def restart_gateway(scenario: Scenario, context: RunContext, setting: str) -> None:
    """Starts a gateway with an empty cache, and lets it load its models and find their best micro-batch with other photos."""
    folder = context.folder / "result-cache"
    shutil.rmtree(folder, ignore_errors=True)
    flags = [flag.format(folder=folder) for flag in CACHE_FLAGS[setting]]
    context.tiers.stack.restart_gateway(*scenario.gateway_flags, *flags)
    others = dataclasses.replace(scenario, samples=max(1, scenario.samples // 4))
    context.tiers.run(reader_command(others, context, job=0, epoch=0, epochs=1))


def reader_command(scenario: Scenario, context: RunContext, job: int, epoch: int, epochs: int) -> list:
    """A reader with an order of its own."""
    prefix = context.data.photos(scenario.data, scenario.samples)
    command = [arms.PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", scenario.pipeline, "--split", "full"]
    command += ["--endpoint-url", context.tiers.stack.gateway, "--batch-size", scenario.batch_size]
    command += ["--seed", job + 1, "--epoch", epoch, "--epochs", epochs, "--step-ms", scenario.trainer_step_ms]
    if scenario.models:
        command += ["--models", context.tiers.stack.model_folder(list(scenario.models))]
    return [*command, "--json"]


def run_jobs(scenario: Scenario, context: RunContext, count: int, epoch: int, epochs: int) -> Trial:
    """`count` readers at once, as one epoch that lasts as long as the first one of the slowest reader."""
    commands = [reader_command(scenario, context, job, epoch, epochs) for job in range(count)]
    before = read_counters(context)
    trial = context.tiers.run_trial(lambda: run_commands(context, commands))
    sent, values = read_counters(context)
    trial.store_bytes = sent - before[0]
    trial.cache_values = {origin: total - before[1][origin] for origin, total in values.items()}
    return trial


def run_commands(context: RunContext, commands: list[list]) -> dict:
    """Runs readers at once, and merges their figures. The settings are those that loaders of others report."""
    with ThreadPoolExecutor(len(commands)) as pool:
        jobs = list(pool.map(context.tiers.run, commands))
    slowest = max(figures["epoch_seconds"][0] for figures in jobs)
    return tenants.merge_jobs(jobs, slowest) | {"settings": jobs[0].get("settings", "")}


def read_counters(context: RunContext) -> tuple[float, dict[str, float]]:
    """What the gateway has received from the store so far in bytes, and its values by where they came from."""
    sent = read_metric(context.tiers.stack.admin, STORE_BYTES)
    if sent is None:
        raise ArmError(f"{context.tiers.stack.admin}/metrics: expected {STORE_BYTES}, found none")
    read = lambda origin: read_metric(context.tiers.stack.admin, VALUES.format(origin)) or 0.0
    return sent, {origin: read(origin) for origin in stats.ORIGINS}


def first_epoch(both: Trial, later: Trial) -> Trial:
    """The first of two epochs: what both cost, less a later one. Waits are not known separately."""

    def less(name: str) -> float | None:
        pair = getattr(both, name), getattr(later, name)
        return None if None in pair else max(pair[0] - pair[1], 0)

    counted = ("samples", "value_bytes", "stored_bytes", "wire_up_bytes", "wire_down_bytes", "store_bytes")
    return dataclasses.replace(
        both,
        **{name: less(name) for name in counted},
        cpu_seconds=subtract(both.cpu_seconds, later.cpu_seconds),
        cache_values=subtract(both.cache_values, later.cache_values),
        batch_wait_p50_seconds=None,
        batch_wait_p99_seconds=None,
        stall_seconds=None,
    )


def subtract(whole: dict[str, float], part: dict[str, float]) -> dict[str, float]:
    """The differences of what both have."""
    return {name: max(amount - part[name], 0.0) for name, amount in whole.items() if name in part}


def run_peer(scenario: Scenario, context: RunContext, count: int) -> tuple[Trial, str]:
    """One epoch of `count` trainers that share the values of one new tf.data service. Returns its settings, too."""
    arm = arms.build(PEER, scenario, context.tiers, context.data, context.folder)
    commands = [[*arm.command, "--trainer", f"job-{job}", "--samples", scenario.samples] for job in range(count)]
    figures = {}

    def run_trainers() -> dict:
        figures.update(run_commands(context, commands))
        return figures

    with arms.store_side_programs(PEER, scenario, context.tiers, context.data, context.folder):
        trial = context.tiers.run_trial(run_trainers)
    return trial, figures["settings"]
