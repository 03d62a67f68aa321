"""Samples of a pipeline, read by each arm over links of several bandwidths."""

from collections.abc import Iterator
from contextlib import ExitStack

from .. import arms, published
from ..results import Arm, Cell
from ..scenario import OPEN, Link, Scenario
from ..tiers import ArmError
from . import RunContext, bounds, build_cell, cell_notes, interleave, qualifying

ARMS = arms.ALL
# The most photos for measuring the crossover: twice as many as the scenario has, since slow models have few.
MAX_CROSSOVER_SAMPLES = 200


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each link."""
    for text in scenario.links:
        link = Link.parse(text)
        crossover = measure_crossover(scenario, context) if link.factor is not None else None
        yield measure_cell(scenario, context, link, crossover)


def measure_cell(scenario: Scenario, context: RunContext, link: Link, crossover: float | None) -> Cell:
    """All arms over one link."""
    tiers = context.tiers
    requested = link.bits(crossover)
    external = tiers.stack.external_tiers
    left_out = {name: reason for name in scenario.arms if (reason := arms.unavailable_reason(name, external))}
    names = [name for name in scenario.arms if name not in left_out]
    if not names:
        raise ArmError(f"no arm of {scenario.name} can run on this machine: {'; '.join(left_out.values())}")
    measured = tiers.shape(requested, scenario.latency_ms)
    bandwidth = measured or (requested if requested < OPEN else None)
    qualified, reasons = qualifying.qualify(scenario, context)
    names += qualifying.fastest_peer(qualified)
    built = {name: arms.build(name, scenario, tiers, context.data, context.folder) for name in names}
    notes = [*cell_notes(scenario, context), *left_out.values(), *reasons]
    measured_arms = {name: Arm(arm.kind, arm.settings) for name, arm in built.items()}

    def run_trial(name: str) -> None:
        built[name].prepare()
        figures = {}

        def run_arm() -> dict:
            figures.update(tiers.run(built[name].command, **built[name].environment))
            return figures

        measured_arms[name].trials.append(tiers.run_trial(run_arm))
        measured_arms[name].settings = built[name].settings or figures["settings"]

    with ExitStack() as stack:
        for name in built:
            stack.enter_context(arms.store_side_programs(name, scenario, tiers, context.data, context.folder))
        interleave(list(built), scenario.rounds, run_trial, context.progress)
    rounds = bounds.simulate_rounds(scenario, measured_arms, bandwidth)
    return build_cell(
        f"{scenario.group}, {link_label(link, requested)}",
        scenario.group,
        measured_arms,
        notes,
        x=link.factor,
        x_label=published.X_LABEL,
        requested=requested,
        measured=measured,
        crossover=crossover,
        simulated=bounds.epochs_by_arm(measured_arms, rounds),
        qualifying=qualified,
    )


def link_label(link: Link, bits: float) -> str:
    """The name of a link in cell names."""
    if bits == OPEN:
        return "open link"
    return f"{link.text} = {bits / 1e6:.0f} Mbit/s" if link.factor is not None else link.text


def measure_crossover(scenario: Scenario, context: RunContext) -> float:
    """The crossover bandwidth in bits per second: plain reading takes as long on the link as on the host. Measured once per
    pipeline."""
    key = (scenario.pipeline, scenario.data, scenario.host_cores)
    if key not in context.crossovers:
        context.tiers.shape(OPEN)
        shortened = Scenario(
            name=scenario.name,
            title="",
            kind="read",
            default=False,
            data=scenario.data,
            samples=min(MAX_CROSSOVER_SAMPLES, 2 * scenario.samples),
            pipeline=scenario.pipeline,
            arms=("pushed", "plain"),
            batch_size=scenario.batch_size,
            models=scenario.models,
        )
        # The pushed run lets the gateway find the best micro-batch of its models before any measurement.
        for name in shortened.arms:
            arm = arms.build_reader(name, shortened, context.tiers, context.data, context.folder)
            plain = context.tiers.run(arm.command)
        context.crossovers[key] = plain["stored_bytes"] * 8 / plain["cpu_seconds"] * scenario.host_cores
    return context.crossovers[key]
