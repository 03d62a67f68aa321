"""Samples of a pipeline, read by each arm in turn over links of several widths."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import programs

from .. import arms
from ..results import TIERS, Arm, Bound, Cell, Turn
from ..scenario import OPEN, Link, Scenario
from . import Run, cell_of, circumstances, in_turns

ARMS = arms.NAMES
# The most photos that tell where the crossover is: twice as many as the scenario has, of networks that take long fewer.
CROSSOVER = 200


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each link."""
    for text in scenario.links:
        link = Link.parse(text)
        even = crossover(scenario, run) if link.factor is not None else None
        yield cell(scenario, run, link, even)


def cell(scenario: Scenario, run: Run, link: Link, even: float | None) -> Cell:
    """All arms over one link, in turns."""
    asked = link.bits(even)
    chosen, notes = {}, circumstances(scenario, run)
    for name in scenario.arms:
        if why := arms.missing(name, run.tiers.stack.elsewhere):
            notes.append(why)
            continue
        chosen[name] = arms.of(name, scenario, run.tiers, run.data, run.folder)
    measured = run.tiers.shape(asked, scenario.latency_ms)
    width = measured or (asked if asked < OPEN else None)
    found = {name: Arm(arm.kind, arm.settings) for name, arm in chosen.items()}

    def turn(name: str) -> None:
        chosen[name].before()
        figures = {}

        def take() -> dict:
            figures.update(run.tiers.run(chosen[name].command, **chosen[name].environment))
            return figures

        found[name].turns.append(run.tiers.turn(take))
        found[name].settings = chosen[name].settings or figures["settings"]

    with ExitStack() as stack:
        for name in chosen:
            stack.enter_context(arms.beside_the_store(name, scenario, run.tiers, run.data, run.folder))
        in_turns(list(chosen), scenario.repeats, turn, run.progress)
    rounds = simulated(scenario, found, width)
    return cell_of(
        f"{scenario.group}, {at(link, asked)}",
        scenario.group,
        found,
        notes,
        x=link.factor,
        x_label="link, in multiples of the crossover",
        asked=asked,
        measured=measured,
        crossover=even,
        bound=bound(scenario, found, width, link),
        simulated=by_way(found, rounds),
    )


def at(link: Link, bits: float) -> str:
    """How a link is called."""
    if bits == OPEN:
        return "open link"
    return f"{link.text} = {bits / 1e6:.0f} Mbit/s" if link.factor is not None else link.text


def crossover(scenario: Scenario, run: Run) -> float:
    """The link over which plain reading keeps the host just busy, in bits per second; found once for each pipeline."""
    key = (scenario.pipeline, scenario.data, scenario.host_cores)
    if key not in run.crossovers:
        run.tiers.shape(OPEN)
        few = Scenario(
            name=scenario.name,
            title="",
            kind="read",
            default=False,
            data=scenario.data,
            samples=min(CROSSOVER, 2 * scenario.samples),
            pipeline=scenario.pipeline,
            arms=("pushed", "plain"),
            batch_size=scenario.batch_size,
            networks=scenario.networks,
        )
        # The gateway finds out on the way how many samples its networks are best run on at once.
        for name in few.arms:
            arm = arms.ours(name, few, run.tiers, run.data, run.folder)
            plain = run.tiers.run(arm.command)
        run.crossovers[key] = plain["stored_bytes"] * 8 / plain["cpu_seconds"] * scenario.host_cores
    return run.crossovers[key]


def costs(turn: Turn) -> dict[str, float]:
    """What a sample costs each side."""
    samples = turn.samples * len(turn.seconds)
    there = turn.cpu["store"] + turn.cpu["gateway"]
    each = {"bytes": turn.wire_down, "store_seconds": there, "host_seconds": turn.cpu["host"]}
    return {name: cost / samples for name, cost in each.items()}


def least(arm: Arm) -> dict[str, float]:
    """The least that a sample cost each side in any round: whatever else the machine did meanwhile is in the others."""
    turns = [costs(turn) for turn in arm.turns]
    return {name: min(each[name] for each in turns) for name in turns[0]}


def known(found: dict[str, Arm]) -> bool:
    """Whether there are both ways of which a plan is a mixture, and what they cost store and gateway."""
    if not {"plain", "pushed"} <= set(found):
        return False
    return all(set(TIERS) <= set(turn.cpu) for way in ("plain", "pushed") for turn in found[way].turns)


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


def bound(scenario: Scenario, found: dict[str, Arm], link_bits: float | None, link: Link) -> Bound | None:
    """What no way should beat, as far as costs that were measured tell: an estimate, by the least that each way cost in any
    round. It is the simulator's; over a link much thinner than the crossover it is what the gateway makes, the link brings of
    nothing but values, and the trainer takes."""
    if not known(found):
        return None
    plain, pushed = least(found["plain"]), least(found["pushed"])
    if link.factor is not None and link.factor < 0.3 and link_bits:
        rates = {"gateway": scenario.store_cores / pushed["store_seconds"], "link": link_bits / 8 / pushed["bytes"]}
        rates |= {"trainer": 1 / scenario.trainer_seconds} if scenario.trainer_seconds else {}
        slowest = min(rates, key=rates.get)
        return Bound(rates[slowest], slowest)
    samples = found["plain"].turns[0].samples
    best = simulate(scenario, plain, pushed, samples, link_bits)
    return Bound(samples / best["best"], best["bound"])
