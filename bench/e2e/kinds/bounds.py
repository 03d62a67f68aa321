"""What a sample costs each side, what the planner's simulator makes of that, and what no arm of a cell should beat by it."""

import json
import subprocess
from collections.abc import Sequence

import programs

from .. import stats
from ..results import TIERS, UNBOUND, Arm, Bound, Cell, Turn
from ..scenario import Scenario

# Over links so much thinner than the crossover a plan reads next to nothing plainly.
MUCH_THINNER = 0.3
# Kinds whose plans mix plain reading and pushing.
MIXING = ("read", "tenants", "transfer")
# Kinds and groups of cells of which no costs tell: scans are sent by this program, which has no cores of its own, and listing
# takes CPU before the seconds that count.
UNTOLD = (("scans", "scans"), ("growth", "listed keys"))
# The tiers whose CPU a kind tells of each way, where that is not all of them: one process reads all ways of a transfer, so that
# those of the store are not told apart.
TELLING = {"transfer": ("gateway", "host")}


def costs(turn: Turn) -> dict[str, float]:
    """What a sample costs each side. What is not told adds nothing."""
    there = turn.cpu.get("store", 0.0) + turn.cpu.get("gateway", 0.0)
    each = {"bytes": turn.wire_down or 0.0, "store_seconds": there, "host_seconds": turn.cpu["host"]}
    return {name: cost / stats.read(turn) for name, cost in each.items()}


def least(turns: Sequence[Turn]) -> dict[str, float]:
    """The least that a sample cost each side in any of them: whatever else the machine did meanwhile is in the others."""
    every = [costs(turn) for turn in turns]
    return {name: min(each[name] for each in every) for name in every[0]}


def known(found: dict[str, Arm], told: Sequence[str] = TIERS) -> bool:
    """Whether there are both ways of which a plan is a mixture, and what they cost these tiers."""
    if not {"plain", "pushed"} <= set(found):
        return False
    return all(set(told) <= set(turn.cpu) for way in ("plain", "pushed") for turn in found[way].turns)


def mixture(turn: Turn, plain: dict[str, float], pushed: dict[str, float]) -> dict[str, float] | None:
    """What a sample of a mixture cost in the last epoch, which is the one that counts, and how many of them came as they are
    stored; None where that is not told."""
    if not turn.stages or not set(TIERS) <= set(turn.cpu):
        return None
    cost, whole, last = costs(turn), plainly(turn.stages), plainly(turn.last_stages or turn.stages)
    # Of store and link only all epochs are told: the last one took as much more or less as its samples take by themselves.
    for name in ("bytes", "store_seconds"):
        alone = lambda share: share * plain[name] + (1 - share) * pushed[name]
        cost[name] *= alone(last) / alone(whole) if alone(whole) else 1.0
    if turn.last_cpu_seconds is not None:
        cost["host_seconds"] = turn.last_cpu_seconds / turn.samples
    return cost | {"plainly": last}


def plainly(stages: dict[str, int]) -> float:
    """The share of samples that came as they are stored."""
    return stages.get("0", 0) / sum(stages.values())


def simulate(scenario: Scenario, plain: dict, pushed: dict, samples: int, link_bits: float | None,
             auto: dict | None = None) -> dict:
    """Seconds of an epoch by way, by the planner's simulator, without a clock; and what bounds the best mixture."""
    epoch = {"plain": plain, "pushed": pushed, "auto": auto, "samples": samples, "link_bits": link_bits}
    epoch |= {"store_cores": scenario.store_cores, "host_cores": scenario.host_cores}
    epoch |= {"trainer_seconds": scenario.trainer_seconds, "batch_size": scenario.batch_size}
    command = [programs.BINARIES / "pushdown-bench", "simulate"]
    ended = subprocess.run(command, input=json.dumps(epoch), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def simulated(scenario: Scenario, found: dict[str, Arm], link_bits: float | None) -> list[dict]:
    """What the simulator makes of each round, from what a sample cost in each turn. Nothing where store or gateway is another
    machine's."""
    if not known(found):
        return []
    plain, pushed = ([costs(turn) for turn in found[way].turns] for way in ("plain", "pushed"))
    mixed = found["auto"].turns if "auto" in found else []
    mixtures = [mixture(*each) for each in zip(mixed, plain, pushed)] or [None] * len(plain)
    samples = found["plain"].turns[0].samples
    return [simulate(scenario, *ways, samples, link_bits, auto) for *ways, auto in zip(plain, pushed, mixtures)]


def by_way(found: dict[str, Arm], rounds: list[dict]) -> dict[str, list[float]]:
    """Seconds of an epoch by the simulator, for each way that it knows."""
    told = lambda way: rounds and all(each[way] is not None for each in rounds)
    return {way: [each[way] for each in rounds] for way in ("plain", "pushed", "auto") if way in found and told(way)}


def of(scenario: Scenario, cell: Cell) -> Bound | None:
    """What no arm of a cell should beat, as far as costs that were measured tell; None where nothing whole does."""
    if (scenario.kind, cell.group) in UNTOLD:
        return None
    if scenario.kind in MIXING and known(cell.arms, TELLING.get(scenario.kind, TIERS)):
        return mixed(scenario, cell)
    return apart(scenario, cell)


def mixed(scenario: Scenario, cell: Cell) -> Bound | None:
    """Where a plan may mix both ways: an estimate, by the least that each way cost in any round. It is the simulator's; over a
    link much thinner than the crossover it is what the gateway makes, the link brings of nothing but values, and the trainer
    takes."""
    plain, pushed = (least(cell.arms[way].turns) for way in ("plain", "pushed"))
    if cell.x is not None and cell.x < MUCH_THINNER and cell.width:
        rates = {"gateway": scenario.store_cores / pushed["store_seconds"], "link": cell.width / 8 / pushed["bytes"]}
        return slowest(rates | trainer(scenario))
    samples = cell.arms["plain"].turns[0].samples
    best = simulate(scenario, plain, pushed, samples, cell.width)
    return Bound(samples / best["best"], best["bound"])


def apart(scenario: Scenario, cell: Cell) -> Bound | None:
    """Where nothing mixes two ways: the slowest side, each by the least that a sample cost it in any round of any arm. No arm has
    the least of every side, so that this bound is further away."""
    arms = [arm for arm in cell.arms.values() if arm.kind not in UNBOUND]
    turns = [turn for arm in arms for turn in arm.turns if turn.samples and not turn.errors]
    if not turns or any(set(TIERS) - set(turn.cpu) for turn in turns):
        return None
    # Store and gateway have the same cores: they are called by the one that takes more of them.
    sparest = min(turns, key=lambda turn: costs(turn)["store_seconds"])
    side = "store" if sparest.cpu["store"] > sparest.cpu["gateway"] else "gateway"
    sides = {side: (scenario.store_cores, "store_seconds"), "host": (scenario.host_cores, "host_seconds")}
    sides |= {"link": (cell.width / 8, "bytes")} if cell.width else {}
    cost = least(turns)
    return slowest({by: most / cost[name] for by, (most, name) in sides.items() if cost[name] > 0} | trainer(scenario))


def trainer(scenario: Scenario) -> dict[str, float]:
    """Samples in a second of the accelerator, where there is one."""
    return {"trainer": 1 / scenario.trainer_seconds} if scenario.trainer_seconds else {}


def slowest(rates: dict[str, float]) -> Bound | None:
    """The side that is waited for."""
    by = min(rates, key=rates.get, default=None)
    return None if by is None else Bound(rates[by], by)
