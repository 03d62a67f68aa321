"""A later epoch over links of several bandwidths, with values from the gateway's result cache.

Each trial starts a gateway with an empty cache. Over an open link a reader announces two epochs and reads them, which fills the
cache. Then another one reads the later epochs over the shaped link, and only they are measured.
"""

from collections.abc import Iterator

from .. import targets
from ..results import Arm, Cell
from ..scenario import OPEN, Link, Scenario
from . import RunContext, build_cell, cell_notes, interleave, read, result_cache

# A data set takes at most a quarter of the free cache at once: in the first half minute 240 MB of 1 GiB, and 75 MB of 320 MiB.
BUDGET = "--memory-budget=2GiB"
CACHE_FLAGS = {targets.ALL_CACHED: [BUDGET, "--cache-memory=1GiB"], "partial": [BUDGET, "--cache-memory=320MiB"]}
ARMS = tuple(CACHE_FLAGS)
# The arm with a part of the values, which is over the fastest link only: the link does not change what is cached.
PARTIAL = "partial"
FILLING_EPOCHS = 2


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each link. The gateway has the scenario's flags again after the last one."""
    links = [Link.parse(text) for text in scenario.links]
    if relative := [link.text for link in links if link.factor is not None]:
        raise ValueError(f"links: expected bandwidths for the kind second-epoch, found {', '.join(relative)}")
    fastest = max(link.bits(None) for link in links)
    for link in links:
        yield measure_cell(scenario, context, link, link.bits(None) == fastest)
    context.tiers.shape(OPEN)
    context.tiers.stack.restart_gateway(*scenario.gateway_flags)


def measure_cell(scenario: Scenario, context: RunContext, link: Link, is_fastest: bool) -> Cell:
    """The later epochs over one link."""
    requested = link.bits(None)
    names = [name for name in scenario.arms if name != PARTIAL or is_fastest]
    settings = f"`pushdown read --split full` after {FILLING_EPOCHS} epochs that fill the cache; gateway: "
    measured_arms = {name: Arm("pushed", settings + " ".join(CACHE_FLAGS[name])) for name in names}
    measured = context.tiers.shape(requested, scenario.latency_ms)

    def run_trial(name: str) -> None:
        context.tiers.shape(OPEN)
        result_cache.restart_gateway(scenario, context, CACHE_FLAGS[name])
        context.tiers.run(result_cache.reader_command(scenario, context, epoch=0, epochs=FILLING_EPOCHS))
        announced = result_cache.read_cached_ratio(context)
        later = result_cache.reader_command(scenario, context, epoch=FILLING_EPOCHS, epochs=scenario.epochs)
        context.tiers.shape(requested, scenario.latency_ms)
        trial = result_cache.run_counted(context, lambda: context.tiers.run(later))
        trial.cached_ratio = announced
        measured_arms[name].trials.append(trial)

    interleave(names, scenario.rounds, run_trial, context.progress)
    left_out = [f"{name} is measured over the fastest link only" for name in scenario.arms if name not in names]
    notes = [*cell_notes(scenario, context), *left_out]
    name = f"{scenario.group}, {read.link_label(link, requested)}"
    cell = build_cell(name, "second epoch", measured_arms, notes, requested=requested, measured=measured)
    cell.required = {"link": targets.MIN_LINK_RATIO, "hits": targets.MIN_HITS_TO_ANNOUNCED}
    return cell
