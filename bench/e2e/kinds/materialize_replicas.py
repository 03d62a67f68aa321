"""Whole data sets by several replicas of a gateway, and by one of them alone.

Like the kind `replicas`: each replica has a CPU quota of a part of a core, store and client have another core, and a trial has the same
number of samples for each replica in both arms. The client gets the addresses of the replicas.
"""

from collections.abc import Callable, Iterator

from stack import BUCKET

from ..results import Arm, Cell
from ..scenario import OPEN, Scenario
from ..targets import ALL_REPLICAS, ONE_REPLICA
from . import RunContext, build_cell, cell_notes, interleave, materialize, replicas

ARMS = replicas.ARMS
CORES_PER_REPLICA = 0.3


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each number of replicas."""
    tiers = context.tiers
    tiers.shape(OPEN, scenario.latency_ms)
    # The store has started, so the replicas get the cores that usually are the client's.
    replica_cores, tiers.host_cores = tiers.host_cores, tiers.stack.store_cores
    for count in scenario.sizes:
        with replicas.started_replicas(scenario, context, count, replica_cores, CORES_PER_REPLICA) as started:
            cell = measure_cell(scenario, context, started, replica_cores)
        yield cell


def measure_cell(scenario: Scenario, context: RunContext, started: list[replicas.Replica], cores: set[int]) -> Cell:
    """One replica and all of them, which run on these cores. A run before the rounds warms them up, and writes the recipe."""
    chosen = {ONE_REPLICA: started[:1], ALL_REPLICAS: started}
    measured = {name: Arm("pushed", describe(len(of_arm))) for name, of_arm in chosen.items()}
    used: dict[str, list[list[float]]] = {name: [] for name in chosen}
    clients = {name: client(scenario, context, name, of_arm) for name, of_arm in chosen.items()}

    def run_trial(name: str) -> None:
        trial, used_cores = replicas.run_within_quotas(context, chosen[name], clients[name], CORES_PER_REPLICA)
        materialize.check_samples(scenario.samples * len(chosen[name]), trial)
        measured[name].trials.append(trial)
        used[name].append(used_cores)

    interleave(list(chosen), scenario.rounds, run_trial, context.progress)
    # The first of the usual notes says which tier has which cores.
    notes = [replicas.describe_cores(cores, context.tiers.host_cores), *cell_notes(scenario, context)[1:]]
    notes.append(f"{scenario.samples} samples for each replica in parts of {scenario.batch_size}")
    notes += [f"`{name}`: {replicas.describe_used(rounds, CORES_PER_REPLICA)}" for name, rounds in used.items()]
    label = f"{scenario.group}, {len(started)} replicas"
    return build_cell(label, "materialize-replicas", measured, notes, x=float(len(started)), x_label="replicas")


def describe(count: int) -> str:
    """The settings of an arm."""
    gateways = "one gateway with" if count == 1 else f"{count} gateways, each with"
    return f"`pushdown materialize --format wds` by {gateways} a quota of {CORES_PER_REPLICA:g} core"


def client(scenario: Scenario, context: RunContext, name: str, of_arm: list[replicas.Replica]) -> Callable[[], dict]:
    """Writes the data set of an arm once. Returns a client that writes it into a new target with the same recipe."""
    stack, count = context.tiers.stack, 0
    photos = context.data.photos(scenario.data, scenario.samples * len(of_arm))
    urls = ",".join(f"http://{replica.address}:{stack.spare_port}" for replica in of_arm)
    addresses = ["--endpoint-url", stack.store, "--gateway", urls]
    recipe = materialize.written_recipe(scenario, context, photos, f"{scenario.name}-{name}-recipe/", addresses)

    def run() -> dict:
        nonlocal count
        count += 1
        target = f"{scenario.name}-{name}-{count}/"
        stack.client.put_object(Bucket=BUCKET, Key=target + materialize.RECIPE, Body=recipe)
        return materialize.run_client(context, materialize.command(scenario, photos, target, addresses))

    return run
