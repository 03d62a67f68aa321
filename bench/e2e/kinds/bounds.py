"""The costs of a sample on each tier, the epochs that the planner's simulator predicts, and the upper bound of a cell."""

import json
import subprocess
from collections.abc import Sequence

import programs

from ..results import TIERS, UNBOUND, Arm, Bound, Cell, Trial
from ..scenario import Scenario

# Over links below this multiple of the crossover, a plan reads almost nothing plainly.
THIN_LINK_RATIO = 0.3
# Kinds whose plans mix plain reading and pushing.
MIXED_KINDS = ("read", "layouts", "tenants", "transfer")
# Kinds and groups of cells without costs: the harness itself sends scans and has no cores of its own, and listing uses CPU before
# the measured seconds. An arm that shares values does not compute what a bound counts, and replicas have quotas, not cores.
WITHOUT_COSTS = (("scans", "scans"), ("growth", "listed keys"), ("sharing", "sharing"), ("replicas", "replicas"))
# Gateway and host of an arm are no alternatives to those of another one.
WITHOUT_COSTS += (("materialize", "materialize"), ("materialize-replicas", "materialize-replicas"))
# The tiers with CPU per arm, for kinds where these are not all tiers: in a transfer one process reads by all methods, so the
# store's CPU is not known per method.
TIERS_WITH_CPU = {"transfer": ("gateway", "host")}


def costs(trial: Trial) -> dict[str, float]:
    """The cost of a sample on each side. Missing values count as 0."""
    store_side = trial.cpu_seconds.get("store", 0.0) + trial.cpu_seconds.get("gateway", 0.0)
    totals = {
        "bytes": trial.wire_down_bytes or 0.0, "store_seconds": store_side, "host_seconds": trial.cpu_seconds["host"],
    }  # fmt: skip
    return {name: cost / trial.samples_read for name, cost in totals.items()}


def lowest_costs(trials: Sequence[Trial]) -> dict[str, float]:
    """The lowest cost on each side over the trials: higher ones include background load."""
    every = [costs(trial) for trial in trials]
    return {name: min(each[name] for each in every) for name in every[0]}


def has_both_costs(arms: dict[str, Arm], tiers: Sequence[str] = TIERS) -> bool:
    """Whether both `plain` and `pushed` ran, with CPU on these tiers."""
    if not {"plain", "pushed"} <= set(arms):
        return False
    return all(set(tiers) <= set(trial.cpu_seconds) for name in ("plain", "pushed") for trial in arms[name].trials)


def mixture_cost(trial: Trial, plain: dict[str, float], pushed: dict[str, float]) -> dict[str, float] | None:
    """The cost of a sample of a mixture in the last epoch, which is the one that counts, and the share read plainly. None if
    the reader does not report stages."""
    if not trial.stages or not set(TIERS) <= set(trial.cpu_seconds):
        return None
    cost = costs(trial)
    overall, last = plain_share(trial.stages), plain_share(trial.last_epoch_stages or trial.stages)
    # For store and link only the total of all epochs is known. Scale it by the expected costs of the last epoch's mixture.
    for name in ("bytes", "store_seconds"):
        expected = lambda share: share * plain[name] + (1 - share) * pushed[name]
        cost[name] *= expected(last) / expected(overall) if expected(overall) else 1.0
    if trial.last_epoch_cpu_seconds is not None:
        cost["host_seconds"] = trial.last_epoch_cpu_seconds / trial.samples
    return cost | {"plainly": last}


def plain_share(stages: dict[str, int]) -> float:
    """The share of samples that were read plainly."""
    return stages.get("0", 0) / sum(stages.values())


def simulate(scenario: Scenario, plain: dict, pushed: dict, samples: int, link_bits: float | None,
             auto: dict | None = None) -> dict:
    """Runs the planner's simulator. Returns the seconds of an epoch by arm, and the tier that limits the best mixture."""
    epoch = {"plain": plain, "pushed": pushed, "auto": auto, "samples": samples, "link_bits": link_bits}
    epoch |= {"store_cores": scenario.store_cores, "host_cores": scenario.host_cores}
    epoch |= {"trainer_seconds": scenario.trainer_seconds, "batch_size": scenario.batch_size}
    command = [programs.BINARIES / "pushdown-bench", "simulate"]
    ended = subprocess.run(command, input=json.dumps(epoch), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def simulate_rounds(scenario: Scenario, arms: dict[str, Arm], link_bits: float | None) -> list[dict]:
    """Simulates each round from its costs. Empty if store or gateway is external."""
    if not has_both_costs(arms):
        return []
    plain, pushed = ([costs(trial) for trial in arms[name].trials] for name in ("plain", "pushed"))
    planned = arms["auto"].trials if "auto" in arms else []
    mixtures = [mixture_cost(*each) for each in zip(planned, plain, pushed)] or [None] * len(plain)
    samples = arms["plain"].trials[0].samples
    return [simulate(scenario, *fixed, samples, link_bits, auto) for *fixed, auto in zip(plain, pushed, mixtures)]


def epochs_by_arm(arms: dict[str, Arm], rounds: list[dict]) -> dict[str, list[float]]:
    """The simulated seconds of an epoch per round, for each arm that the simulator models."""
    is_known = lambda name: rounds and all(each[name] is not None for each in rounds)
    return {name: [each[name] for each in rounds] for name in ("plain", "pushed", "auto") if name in arms and is_known(name)}


def upper_bound(scenario: Scenario, cell: Cell) -> Bound | None:
    """The upper bound of a cell, from measured costs; None if they are incomplete."""
    if (scenario.kind, cell.group) in WITHOUT_COSTS:
        return None
    if scenario.kind in MIXED_KINDS and has_both_costs(cell.arms, TIERS_WITH_CPU.get(scenario.kind, TIERS)):
        return simulated_bound(scenario, cell)
    return tier_bound(scenario, cell)


def simulated_bound(scenario: Scenario, cell: Cell) -> Bound | None:
    """For plans that mix plain reading and pushing: an estimate from the lowest costs of both in any round. It is the
    simulator's result; over a link far below the crossover it is the slowest of gateway, link and trainer for pushed values."""
    plain, pushed = (lowest_costs(cell.arms[name].trials) for name in ("plain", "pushed"))
    if cell.x is not None and cell.x < THIN_LINK_RATIO and cell.bandwidth:
        rates = {"gateway": scenario.store_cores / pushed["store_seconds"], "link": cell.bandwidth / 8 / pushed["bytes"]}
        return slowest_tier(rates | accelerator_rate(scenario))
    samples = cell.arms["plain"].trials[0].samples
    best = simulate(scenario, plain, pushed, samples, cell.bandwidth)
    return Bound(samples / best["best"], best["bound"])


def tier_bound(scenario: Scenario, cell: Cell) -> Bound | None:
    """Without mixing: the slowest tier, each at its lowest cost in any round of any arm. No arm has all lowest costs, so this
    bound is loose."""
    arms = [arm for arm in cell.arms.values() if arm.kind not in UNBOUND]
    trials = [trial for arm in arms for trial in arm.trials if trial.samples and not trial.errors]
    if not trials or any(set(TIERS) - set(trial.cpu_seconds) for trial in trials):
        return None
    # Store and gateway share cores. The bound names the one that uses more CPU.
    cheapest = min(trials, key=lambda trial: costs(trial)["store_seconds"])
    side = "store" if cheapest.cpu_seconds["store"] > cheapest.cpu_seconds["gateway"] else "gateway"
    capacities = {side: (scenario.store_cores, "store_seconds"), "host": (scenario.host_cores, "host_seconds")}
    capacities |= {"link": (cell.bandwidth / 8, "bytes")} if cell.bandwidth else {}
    cost = lowest_costs(trials)
    rates = {tier: capacity / cost[name] for tier, (capacity, name) in capacities.items() if cost[name] > 0}
    return slowest_tier(rates | accelerator_rate(scenario))


def accelerator_rate(scenario: Scenario) -> dict[str, float]:
    """Samples per second of the accelerator, if the scenario has one."""
    return {"trainer": 1 / scenario.trainer_seconds} if scenario.trainer_seconds else {}


def slowest_tier(rates: dict[str, float]) -> Bound | None:
    """The bound of the slowest tier."""
    tier = min(rates, key=rates.get, default=None)
    return None if tier is None else Bound(rates[tier], tier)
