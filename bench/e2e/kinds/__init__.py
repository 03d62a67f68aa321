"""The kinds of scenarios: each module measures the cells of one kind."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from .. import arms
from ..data import StoredData
from ..results import Arm, Cell, QualifyingRun
from ..scenario import OPEN, Scenario
from ..tiers import Tiers


@dataclass
class RunContext:
    """What the scenarios of a run share."""

    tiers: Tiers
    data: StoredData
    folder: Path
    progress: tqdm
    crossovers: dict[tuple[str, str, int], float] = field(default_factory=dict)


def interleave(names: list[str], rounds: int, run_trial: Callable[[str], None], progress: tqdm) -> None:
    """Runs every arm once per round. Each round starts with another arm, so a temporary slowdown affects all arms alike."""
    for number in range(rounds):
        for place in range(len(names)):
            name = names[(place + number) % len(names)]
            progress.set_postfix_str(name)
            run_trial(name)
            progress.update()


def cell_notes(scenario: Scenario, context: RunContext) -> list[str]:
    """Notes that apply to every cell of a scenario: the cores of each tier, and the latency."""
    latency = [f"{scenario.latency_ms:g} ms of latency each way"] if scenario.latency_ms else []
    return [arms.describe_cores(context.tiers), *latency]


def build_cell(
    name: str,
    group: str,
    arms: dict[str, Arm],
    notes: list[str],
    *,
    x: float | None = None,
    x_label: str = "",
    requested: float | None = None,
    measured: float | None = None,
    crossover: float | None = None,
    simulated: dict[str, list[float]] | None = None,
    qualifying: dict[str, QualifyingRun] | None = None,
) -> Cell:
    """A cell without its upper bound. The baseline is `plain`, or the first arm in a cell without it. Rates are in bits per
    second; an open link has none."""
    return Cell(
        name=name,
        group=group,
        x=x,
        x_label=x_label,
        requested_bits_per_second=None if requested == OPEN else requested,
        measured_bits_per_second=measured,
        crossover_bits_per_second=crossover,
        baseline="plain" if "plain" in arms else next(iter(arms)),
        notes=notes,
        bound=None,
        arms=arms,
        simulated_epoch_seconds=simulated or {},
        qualifying=qualifying or {},
    )
