"""Samples of a pipeline, read by each arm in turn over links of several widths."""

from collections.abc import Iterator
from contextlib import ExitStack

from .. import arms, published
from ..results import Arm, Cell
from ..scenario import OPEN, Link, Scenario
from ..tiers import ArmError
from . import Run, bounds, cell_of, circumstances, heats, in_turns

ARMS = arms.NAMES
# The most photos that tell where the crossover is: twice as many as the scenario has, of models that take long fewer.
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
    left_out = {name: why for name in scenario.arms if (why := arms.missing(name, run.tiers.stack.elsewhere))}
    names = [name for name in scenario.arms if name not in left_out]
    if not names:
        raise ArmError(f"no arm of {scenario.name} can be run here: {'; '.join(left_out.values())}")
    measured = run.tiers.shape(asked, scenario.latency_ms)
    width = measured or (asked if asked < OPEN else None)
    tried, why = heats.heats(scenario, run)
    names += heats.fastest(tried)
    chosen = {name: arms.of(name, scenario, run.tiers, run.data, run.folder) for name in names}
    notes = [*circumstances(scenario, run), *left_out.values(), *why]
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
    rounds = bounds.simulated(scenario, found, width)
    return cell_of(
        f"{scenario.group}, {at(link, asked)}",
        scenario.group,
        found,
        notes,
        x=link.factor,
        x_label=published.X_LABEL,
        asked=asked,
        measured=measured,
        crossover=even,
        simulated=bounds.by_way(found, rounds),
        heats=tried,
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
            models=scenario.models,
        )
        # The gateway finds out on the way how many samples its models are best run on at once.
        for name in few.arms:
            arm = arms.ours(name, few, run.tiers, run.data, run.folder)
            plain = run.tiers.run(arm.command)
        run.crossovers[key] = plain["stored_bytes"] * 8 / plain["cpu_seconds"] * scenario.host_cores
    return run.crossovers[key]
