"""What each kind of scenario does: from the file's settings to cells."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from .. import arms as ways
from ..data import Data
from ..results import Arm, Cell, Heat
from ..scenario import OPEN, Scenario
from ..tiers import Tiers


@dataclass
class Run:
    """What the scenarios of a run share."""

    tiers: Tiers
    data: Data
    folder: Path
    progress: tqdm
    crossovers: dict[tuple[str, str, int], float] = field(default_factory=dict)


def in_turns(names: list[str], rounds: int, turn: Callable[[str], None], progress: tqdm) -> None:
    """Every arm once a round, each round beginning with another one: what slows the machine for a while slows all alike."""
    for number in range(rounds):
        for place in range(len(names)):
            name = names[(place + number) % len(names)]
            progress.set_postfix_str(name)
            turn(name)
            progress.update()


def circumstances(scenario: Scenario, run: Run) -> list[str]:
    """What holds of every cell of a scenario: whose the cores are, and how late what is sent arrives."""
    late = [f"{scenario.latency_ms:g} ms of latency each way"] if scenario.latency_ms else []
    return [ways.cores(run.tiers), *late]


def cell_of(
    name: str,
    group: str,
    arms: dict[str, Arm],
    notes: list[str],
    *,
    x: float | None = None,
    x_label: str = "",
    asked: float | None = None,
    measured: float | None = None,
    crossover: float | None = None,
    simulated: dict[str, list[float]] | None = None,
    heats: dict[str, Heat] | None = None,
) -> Cell:
    """A cell, whose baseline is plain reading where that is one of the arms. An open link has no rate. What
    bounds it is found out once it is whole."""
    return Cell(
        name=name,
        group=group,
        x=x,
        x_label=x_label,
        asked_link_bits=None if asked == OPEN else asked,
        link_bits=measured,
        crossover_bits=crossover,
        baseline="plain" if "plain" in arms else next(iter(arms)),
        notes=notes,
        bound=None,
        arms=arms,
        simulated=simulated or {},
        heats=heats or {},
    )
