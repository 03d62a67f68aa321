"""How much of a link a later epoch with values from a result cache fills, and how many of its samples are hits."""

from . import measures, sharing, text
from .results import Arm, Cell, Trial

COLUMNS = [
    "arm", "samples/s", "values to the link's rate", "on the wire to the link's rate", "announced cached ratio", "hits per sample",
    "CPU ms per hit: store and gateway",
]


def section(cell: Cell) -> list[str]:
    """A table after an empty line; empty for other cells."""
    announced = lambda arm: any(trial.cached_ratio is not None for trial in arm.trials)
    rows = [_arm(cell, name, arm) for name, arm in cell.arms.items() if announced(arm)]
    return ["", *text.table(COLUMNS, rows)] if rows else []


def _arm(cell: Cell, name: str, arm: Arm) -> list[str]:
    median = lambda get: measures.median_of(arm, get)
    took = median(measures.seconds_per_sample)
    of_link = lambda get: text.percent(median(lambda trial: get(trial) / cell.bandwidth) if cell.bandwidth else None)
    return [
        f"`{name}`",
        text.number(1 / took if took else None),
        of_link(_value_bits_per_second),
        of_link(measures.wire_down_bits_per_second),
        text.number(median(lambda trial: trial.cached_ratio)),
        text.number(median(measures.hit_ratio)),
        sharing.milliseconds_per_hit(arm),
    ]


def _value_bits_per_second(trial: Trial) -> float:
    """Bits of values per second of the later epochs."""
    took = measures.seconds_per_sample(trial)
    return 8 * (trial.value_bytes or 0.0) / measures.samples_read(trial) / took if took else 0.0
