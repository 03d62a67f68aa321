"""Whom plain reading is held against: before the rounds of a cell everyone who reads plainly has one turn, and the fastest of
the loaders of others goes on where it is about as fast as our own reader.

All of them in all rounds would take as long as everything else together, and who is far behind in one turn is not ahead in
the median of several. A heat is of a third of the samples, so that thin links do not make it long.
"""

import dataclasses

from .. import arms
from ..results import Heat
from ..scenario import Scenario
from . import Run

# One turn each does not tell more than that.
CLOSE = 0.02
PART = 3
# Of fewer samples a heat tells how soon a program and its model are there, and not how fast it reads.
FEWEST = 8


def wanted(scenario: Scenario) -> list[str]:
    """Who has a turn; nobody where nothing is judged against plain reading, where others' loaders cannot do the work, or where a
    heat would be of few samples."""
    judged = "plain" in scenario.arms and any(name.startswith("auto") for name in scenario.arms)
    others = [name for name in arms.CONTENDERS if name not in scenario.arms]
    enough = scenario.samples >= FEWEST * PART
    return ["plain", *others] if judged and enough and others and arms.by_others(scenario.pipeline) else []


def heats(scenario: Scenario, run: Run) -> tuple[dict[str, Heat], list[str]]:
    """A turn of each, and why others have none."""
    left_out = {name: why for name in wanted(scenario) if (why := arms.missing(name, run.tiers.stack.elsewhere))}
    found, few = {}, max(-(-scenario.samples // PART), min(scenario.batch_size, scenario.samples))
    heat = dataclasses.replace(scenario, samples=few)
    for name in wanted(scenario):
        if name not in left_out:
            run.progress.set_postfix_str(f"{name}, a heat")
            arm = arms.of(name, heat, run.tiers, run.data, run.folder)
            figures = run.tiers.run(arm.command, **arm.environment)
            rate = figures["samples"] / sum(figures["epoch_seconds"])
            found[name] = Heat(rate, figures["errors"], arm.settings or figures["settings"])
        run.progress.update()
    return found, list(left_out.values())


def fastest(found: dict[str, Heat]) -> list[str]:
    """Who goes on: the fastest of others' loaders that delivered every sample, unless our own reader is clearly ahead."""
    sound = {name: heat.samples_per_second for name, heat in found.items() if not heat.errors}
    ours = sound.pop("plain", 0.0)
    first = max(sound, key=sound.get, default=None)
    return [first] if first is not None and sound[first] >= ours * (1 - CLOSE) else []
