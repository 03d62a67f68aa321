"""Replicas of a gateway, and one of them alone.

Each replica has a CPU quota of a part of a core, so several on one core compute like as many small machines. Store and reader have the
other core. The reader has two addresses: that of the store, and one name for all replicas. A trial has the same number of samples for
each replica in both arms, so their trials take about as long. In shorter ones of several replicas, the end of an epoch, when not all
replicas are busy, would count more.
"""

import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import links
import programs
from stack import BUCKET, RUNTIME, split_cores

from .. import arms, cgroups
from ..cgroups import Cgroup
from ..results import Arm, Cell, Trial
from ..scenario import OPEN, Scenario
from ..targets import ALL_REPLICAS, ONE_REPLICA
from ..tiers import ArmError, running
from . import RunContext, build_cell, cell_notes, interleave

ARMS = (ONE_REPLICA, ALL_REPLICAS)
GATEWAY = programs.BINARIES / "pushdown-gateway"
CORES_PER_REPLICA = 0.1
# With more CPU than this multiple of the quota, a trial does not measure what it should.
MAX_QUOTA_RATIO = 1.1
# The name of all replicas in the reader's hosts file.
NAME = "gateway.internal"
# Addresses in the gateway's namespace, to which the trainer's default route leads.
ADDRESSES = "198.18.1.{number}"
LOOPBACK_ADDRESSES = "127.0.0.{number}"
# The warm-up, in which replicas load their models, reads a trial's samples divided by this.
WARM_UP_DIVISOR = 4


@dataclass(frozen=True)
class Replica:
    """A gateway with a CPU quota."""

    address: str
    cgroup: Cgroup


def unavailable_reason(scenario: Scenario) -> str:
    """Why replicas cannot be measured on this machine; empty if they can."""
    host_cores, store_cores = split_cores(scenario.store_cores, scenario.host_cores)
    if host_cores & store_cores:
        return "it needs a core for replicas and another one for store and reader, and this machine has one core"
    reason = cgroups.unavailable_reason()
    return f"it needs CPU quotas. {reason}" if reason else ""


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each number of replicas."""
    tiers = context.tiers
    tiers.shape(OPEN, scenario.latency_ms)
    # The store has started, so the replicas get the cores that usually are the reader's.
    replica_cores, tiers.host_cores = tiers.host_cores, tiers.stack.store_cores
    for count in scenario.sizes:
        with started_replicas(scenario, context, count, replica_cores) as replicas:
            cell = measure_cell(scenario, context, replicas, replica_cores)
        yield cell


@contextmanager
def started_replicas(
    scenario: Scenario, context: RunContext, count: int, cores: set[int], quota: float = CORES_PER_REPLICA
) -> Iterator[list[Replica]]:
    """Runs this number of replicas on these cores, all on one port, each with a quota of this many cores."""
    stack = context.tiers.stack
    with ExitStack() as started:
        found, ready = [], []
        for number, address in enumerate(add_addresses(context.tiers.link, count), 1):
            name = f"replica-{number}"
            ready.append(context.folder / f"{name}.json")
            ready[-1].unlink(missing_ok=True)
            cgroup = started.enter_context(cgroups.limited(name, quota))
            pinned = ["taskset", "--cpu-list", ",".join(map(str, sorted(cores)))]
            serve = gateway_command(scenario, context, address, number, ready[-1])
            started.enter_context(running(context.tiers, name, cgroup.command([*pinned, *serve])))
            found.append(Replica(address, cgroup))
        stack.wait("the replicas", lambda: all(file.exists() for file in ready))
        yield found


def add_addresses(link: links.Links, count: int) -> list[str]:
    """Addresses for replicas. A loopback device answers at all of them; in a namespace they are added."""
    if not link.gateway.command:
        return [LOOPBACK_ADDRESSES.format(number=number) for number in range(2, count + 2)]
    addresses = [ADDRESSES.format(number=number) for number in range(2, count + 2)]
    for address in addresses:
        subprocess.run([*link.gateway.command, "ip", "address", "replace", f"{address}/32", "dev", "lo"], check=True)
    return addresses


def gateway_command(scenario: Scenario, context: RunContext, address: str, number: int, ready: Path) -> list:
    """A gateway beside the store."""
    stack = context.tiers.stack
    command = [*context.tiers.link.gateway.command, GATEWAY, "serve", "--allow-store", stack.store]
    command += ["--listen", f"{address}:{stack.spare_port}", "--admin-listen", f"{address}:0", "--ready-file", ready]
    command += ["--models", stack.models, "--onnxruntime", RUNTIME, "--threads", 1, "--io-threads", 1]
    command += ["--replica-id", f"gw-{number}"]
    return [*command, *scenario.gateway_flags]


def measure_cell(scenario: Scenario, context: RunContext, replicas: list[Replica], cores: set[int]) -> Cell:
    """One replica and all of them, which run on these cores, after a warm-up."""
    chosen = {ONE_REPLICA: replicas[:1], ALL_REPLICAS: replicas}
    measured = {name: Arm("pushed", describe(len(of_arm))) for name, of_arm in chosen.items()}
    readers = {name: reader(scenario, context, of_arm, scenario.samples) for name, of_arm in chosen.items()}
    used: dict[str, list[list[float]]] = {name: [] for name in chosen}
    reader(scenario, context, replicas, max(1, scenario.samples // WARM_UP_DIVISOR))()

    def run_trial(name: str) -> None:
        trial, used_cores = run_counted(context, chosen[name], readers[name])
        measured[name].trials.append(trial)
        used[name].append(used_cores)

    interleave(list(chosen), scenario.rounds, run_trial, context.progress)
    # The first of the usual notes says which tier has which cores.
    notes = [describe_cores(cores, context.tiers.host_cores), *cell_notes(scenario, context)[1:]]
    notes.append(f"{scenario.samples} samples for each replica")
    notes += [f"`{name}`: {describe_used(rounds)}" for name, rounds in used.items()]
    label = f"{scenario.group}, {len(replicas)} replicas"
    return build_cell(label, "replicas", measured, notes, x=float(len(replicas)), x_label="replicas")


def describe_cores(of_replicas: set[int], others: set[int]) -> str:
    """Which programs run on which cores."""
    shown = lambda cores: f"core{'' if len(cores) == 1 else 's'} {', '.join(map(str, sorted(cores)))}"
    return f"replicas on {shown(of_replicas)}, store and reader on {shown(others)}"


def describe(count: int) -> str:
    """The settings of an arm."""
    gateways = "one gateway with" if count == 1 else f"{count} gateways of one name, each with"
    return f"`pushdown read --split full` from {gateways} a quota of {CORES_PER_REPLICA:g} core"


def describe_used(rounds: list[list[float]], quota: float = CORES_PER_REPLICA) -> str:
    """The cores that each replica used: the medians of the rounds."""
    medians = [statistics.median(of_replica) for of_replica in zip(*rounds, strict=True)]
    return f"cores used by each replica: {', '.join(f'{cores:.3f}' for cores in medians)} of {quota:g}"


def run_counted(context: RunContext, replicas: list[Replica], run_reader: Callable[[], dict]) -> tuple[Trial, list[float]]:
    """An epoch from these replicas, and the cores that each of them used.

    Raises an ArmError if a quota did not hold, and if replicas did not compute all samples."""
    trial, cores = run_within_quotas(context, replicas, run_reader, CORES_PER_REPLICA)
    stages = trial.stages or {}
    if len(stages) > 1 or "0" in stages:
        raise ArmError(f"expected all steps of all samples at the replicas, found {stages} as samples by stage")
    return trial, cores


def run_within_quotas(
    context: RunContext, replicas: list[Replica], run: Callable[[], dict], quota: float
) -> tuple[Trial, list[float]]:
    """A trial, and the cores that each replica used in it.

    Raises an ArmError if a quota did not hold."""
    before = [replica.cgroup.cpu_seconds() for replica in replicas]
    trial = context.tiers.run_trial(run)
    seconds = sum(trial.epoch_seconds)
    cores = [(replica.cgroup.cpu_seconds() - used) / seconds for replica, used in zip(replicas, before, strict=True)]
    if max(cores) > MAX_QUOTA_RATIO * quota:
        raise ArmError(f"a CPU quota does not hold: expected at most {quota:g} core, found {max(cores):.3f}")
    return trial, cores


def reader(scenario: Scenario, context: RunContext, replicas: list[Replica], samples: int) -> Callable[[], dict]:
    """Uploads this number of samples for each replica. Returns a reader of one epoch of all of them."""
    stack = context.tiers.stack
    hosts = context.folder / f"hosts-{len(replicas)}"
    hosts.write_text("".join(f"{replica.address} {NAME}\n" for replica in replicas), encoding="ascii")
    prefix = context.data.photos(scenario.data, samples * len(replicas))
    command = [arms.PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", scenario.pipeline, "--split", "full"]
    command += ["--endpoint-url", stack.store, "--gateway", f"http://{NAME}:{stack.spare_port}"]
    command += ["--batch-size", scenario.batch_size, "--seed", 1]
    if scenario.models:
        command += ["--models", stack.model_folder(list(scenario.models))]
    return lambda: context.tiers.run([*command, "--json"], PUSHDOWN_HOSTS_FILE=str(hosts))
