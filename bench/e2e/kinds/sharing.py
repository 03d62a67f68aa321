"""Jobs that read one data set at the same time through one gateway, with its result cache off, in memory or on a disk.

Each trial starts a gateway with an empty cache. `COUNT` readers read two epochs, each in an order of its own, and then a third
one: the *later* epoch, in which everything can be cached. The first epoch is what two epochs cost less the later one. Readers do
not wait for each other between epochs, so no counter could separate the first from the second; and a reader of a single epoch
would not announce that values are used again. The difference also contains no listing, which every reader does once per run.

With one job there are also trials of hits alone: values in memory that the store authorizes one by one, or whose authorizations
the gateway remembers.
"""

import dataclasses
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from .. import arms, targets
from ..results import Arm, Cell, Trial
from ..scenario import OPEN, Scenario
from . import RunContext, build_cell, cell_notes, interleave, result_cache, tenants

# The settings of the result cache, and tf.data service with its own sharing.
PEER = "tfdata"
# A data set takes at most a quarter of the free cache at once: in the first half minute 120 MB of 512 MiB.
MEMORY = ["--cache-memory=512MiB"]
CACHE_FLAGS = {
    targets.UNSHARED: [],
    "memory": MEMORY,
    "disk": ["--cache-disk=1GiB", "--cache-dir={folder}"],
    "revalidated": MEMORY,
    "remembered": [*MEMORY, "--auth-cache-ttl=60s"],
}
HITS = tuple(targets.MAX_CPU_SECONDS_PER_HIT)
ARMS = (targets.UNSHARED, *targets.SHARED, *HITS, PEER)
# Bytes from the store of all jobs to those of one.
MAX_STORE_RATIO = 1.02
# The cell with the requirement on the CPU of all jobs, and with the peer; and the one with trials of hits alone.
JUDGED_JOBS, HIT_JOBS = 4, 1
# Epochs of hits in a trial: each reader lists once, so that its listing is a small part.
HIT_EPOCHS = 4
# Time that a trial of hits needs within a minute. Signatures are those of the minute's start: a gateway remembers none of an
# earlier minute.
MIN_SECONDS_OF_MINUTE = 20


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
    measured[targets.ONE_JOB] = arm_of(targets.UNSHARED, 1)
    jobs = [name for name in measured if name not in (PEER, *HITS)]
    later = {targets.later(name): Arm("pushed", f"a later epoch of `{name}`") for name in jobs}
    revalidated = dict.fromkeys((name for name in HITS if name in measured), 0.0)

    def run_trial(name: str) -> None:
        trials = measured[name].trials
        if name == PEER:
            trial, measured[name].settings = run_peer(scenario, context, count)
            trials.append(trial)
        elif name in HITS:
            trial, confirmed = run_hits(scenario, context, name)
            trials.append(trial)
            revalidated[name] += confirmed
        elif name != targets.UNSHARED or not trials:
            setting = targets.UNSHARED if name == targets.ONE_JOB else name
            first, last = run_epochs(scenario, context, 1 if name == targets.ONE_JOB else count, setting)
            trials.append(first)
            later[targets.later(name)].trials.append(last)

    interleave(list(measured), scenario.rounds, run_trial, context.progress)
    name = f"{count} {'job' if count == 1 else 'jobs'} on one data set"
    notes = [*cell_notes(scenario, context), *left_out.values(), f"{scenario.samples} samples, read by each job"]
    notes += [f"`{name}`: the store confirmed {confirmed:,.0f} values" for name, confirmed in revalidated.items()]
    cell = build_cell(name, "sharing", measured | later, notes, x=float(count), x_label="jobs on one data set")
    cell.baseline, cell.required = targets.ONE_JOB, requirements(scenario, count)
    return cell


def unavailable_arms(scenario: Scenario, context: RunContext, count: int) -> dict[str, str]:
    """The arms that are left out of a cell, with the reasons. The peer, and hits alone, are in one cell only."""
    external = context.tiers.stack.external_tiers
    reasons = {name: arms.unavailable_reason(name, external) for name in scenario.arms}
    only = {PEER: JUDGED_JOBS} | dict.fromkeys(HITS, HIT_JOBS)
    for name, jobs in only.items():
        if name in reasons and count != jobs:
            reasons[name] = f"{name} is measured with {jobs} {'job' if jobs == 1 else 'jobs'} only"
    return {name: reason for name, reason in reasons.items() if reason}


def requirements(scenario: Scenario, count: int) -> dict[str, float]:
    """The requirements of a cell, by rule, as ratios of which more is better."""
    required = {"store-bytes": 1 / MAX_STORE_RATIO}
    if count == JUDGED_JOBS and scenario.max_jobs_cpu_ratio:
        required["jobs-cpu"] = 1 / scenario.max_jobs_cpu_ratio
    if count == 1 and scenario.max_later_cpu_ratio:
        required["later-cpu"] = 1 / scenario.max_later_cpu_ratio
    if count == HIT_JOBS:
        required["hit-cpu"] = 1.0
    return required


def arm_of(name: str, count: int) -> Arm:
    """An arm without trials. The peer reports its settings itself."""
    if name == PEER:
        return Arm(arms.PEERS[PEER][0], "")
    flags = " ".join(CACHE_FLAGS[name]).format(folder="DIR") or "no result cache"
    what = f"{HIT_EPOCHS} epochs of hits of one" if name in HITS else f"first epoch of {count}"
    return Arm("pushed", f"{what} `pushdown read --split full`; gateway: {flags}")


def start_gateway(scenario: Scenario, context: RunContext, setting: str) -> None:
    """Starts a gateway with an empty cache, and lets it load its models and find their best micro-batch with other photos."""
    result_cache.restart_gateway(scenario, context, CACHE_FLAGS[setting])
    others = dataclasses.replace(scenario, samples=max(1, scenario.samples // 4))
    context.tiers.run(result_cache.reader_command(others, context, epoch=0, epochs=1))


def run_epochs(scenario: Scenario, context: RunContext, count: int, setting: str) -> tuple[Trial, Trial]:
    """The first and a later epoch of `count` jobs."""
    start_gateway(scenario, context, setting)
    both = run_jobs(scenario, context, count, epoch=0, epochs=2)
    last = run_jobs(scenario, context, count, epoch=2, epochs=1)
    return first_epoch(both, last), last


def run_jobs(scenario: Scenario, context: RunContext, count: int, epoch: int, epochs: int) -> Trial:
    """`count` readers at once, as one epoch that lasts as long as the first one of the slowest reader."""
    commands = [result_cache.reader_command(scenario, context, epoch, epochs, job) for job in range(count)]
    return result_cache.run_counted(context, lambda: run_commands(context, commands))


def run_commands(context: RunContext, commands: list[list]) -> dict:
    """Runs readers at once, and merges their figures. The settings are those that loaders of others report."""
    with ThreadPoolExecutor(len(commands)) as pool:
        jobs = list(pool.map(context.tiers.run, commands))
    slowest = max(figures["epoch_seconds"][0] for figures in jobs)
    return tenants.merge_jobs(jobs, slowest) | {"settings": jobs[0].get("settings", "")}


def run_hits(scenario: Scenario, context: RunContext, setting: str) -> tuple[Trial, float]:
    """Epochs of a job that are hits only, and the values that the store confirmed in them. Two epochs fill the cache, and one
    lets the gateway remember authorizations."""
    start_gateway(scenario, context, setting)
    command = lambda epoch, epochs: result_cache.reader_command(scenario, context, epoch, epochs)
    context.tiers.run(command(0, 2))
    time.sleep(seconds_to_wait(time.time()))
    context.tiers.run(command(2, 1))
    before = result_cache.read_revalidations(context)
    trial = result_cache.run_counted(context, lambda: context.tiers.run(command(3, HIT_EPOCHS)))
    return trial, result_cache.read_revalidations(context) - before


def seconds_to_wait(now: float) -> float:
    """Seconds until enough of a minute is left."""
    left = 60 - now % 60
    return left if left < MIN_SECONDS_OF_MINUTE else 0.0


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
