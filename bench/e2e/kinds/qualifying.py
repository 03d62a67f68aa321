"""Qualifying runs: before the rounds of a cell every plain reader runs once. The fastest loader of others takes part in the
rounds if it is about as fast as our own reader.

All readers in all rounds would double the time, and a reader that is far slower in one run is not faster in the median of
several. A qualifying run reads a third of the samples, so that slow links do not make it long.
"""

import dataclasses

from .. import arms
from ..results import QualifyingRun
from ..scenario import Scenario
from . import RunContext

# One run each is not more precise than this.
TOLERANCE = 0.02
SAMPLE_DIVISOR = 3
# With fewer samples a run measures the start of a program and its model.
MIN_SAMPLES = 8


def entrants(scenario: Scenario) -> list[str]:
    """The arms with a qualifying run. Empty if no arm is judged against plain reading, if loaders of others cannot run the
    pipeline, or if there are too few samples."""
    is_judged = "plain" in scenario.arms and any(name.startswith("auto") for name in scenario.arms)
    others = [name for name in arms.CONTENDERS if name not in scenario.arms]
    has_samples = scenario.samples >= MIN_SAMPLES * SAMPLE_DIVISOR
    return ["plain", *others] if is_judged and has_samples and others and arms.peers_can_run(scenario.pipeline) else []


def qualify(scenario: Scenario, context: RunContext) -> tuple[dict[str, QualifyingRun], list[str]]:
    """Runs the entrants. Returns the runs by arm, and the reasons why arms are left out."""
    external = context.tiers.stack.external_tiers
    left_out = {name: reason for name in entrants(scenario) if (reason := arms.unavailable_reason(name, external))}
    samples = max(-(-scenario.samples // SAMPLE_DIVISOR), min(scenario.batch_size, scenario.samples))
    shortened = dataclasses.replace(scenario, samples=samples)
    runs = {}
    for name in entrants(scenario):
        if name not in left_out:
            context.progress.set_postfix_str(f"{name}, qualifying")
            arm = arms.build(name, shortened, context.tiers, context.data, context.folder)
            figures = context.tiers.run(arm.command, **arm.environment)
            rate = figures["samples"] / sum(figures["epoch_seconds"])
            runs[name] = QualifyingRun(rate, figures["errors"], arm.settings or figures["settings"])
        context.progress.update()
    return runs, list(left_out.values())


def fastest_peer(runs: dict[str, QualifyingRun]) -> list[str]:
    """The fastest loader of others that delivered every sample. Empty if our own reader is clearly faster."""
    complete = {name: run.samples_per_second for name, run in runs.items() if not run.errors}
    own = complete.pop("plain", 0.0)
    fastest = max(complete, key=complete.get, default=None)
    return [fastest] if fastest is not None and complete[fastest] >= own * (1 - TOLERANCE) else []
