"""What jobs on one data set cost together, relative to one job without a result cache, and where their values came from."""

from . import cache_rules, measures, text
from .results import Arm, Cell, Trial

COLUMNS = [
    "arm", "samples/s per job", "from the store", "to that of one job", "CPU s: all", "to that of one job",
    "CPU ms per hit: store and gateway",
]


def section(cell: Cell) -> list[str]:
    """A table after an empty line; empty for other cells."""
    if cache_rules.ONE_JOB not in cell.arms:
        return []
    rows = [_arm(cell, name, arm) for name, arm in cell.arms.items() if arm.trials]
    columns = [*COLUMNS, *(f"values {origin}" for origin in measures.ORIGINS)]
    return ["", *text.table(columns, rows)] if rows else []


def _arm(cell: Cell, name: str, arm: Arm) -> list[str]:
    jobs = 1.0 if name in (cache_rules.ONE_JOB, cache_rules.later(cache_rules.ONE_JOB)) else cell.x or 1.0
    took = measures.median_of(arm, measures.seconds_per_sample)
    # Arms with hits only read several epochs.
    per_epoch = lambda get: measures.median_of(arm, lambda trial: _per_epoch(get(trial), trial))
    return [
        f"`{name}`",
        text.number(1 / took / jobs if took else None),
        text.size(per_epoch(lambda trial: trial.store_bytes)),
        text.ratio(cache_rules.cost_of_jobs(cell, name, measures.store_bytes)),
        text.number(per_epoch(lambda trial: measures.cpu_seconds(trial) or None)),
        text.ratio(cache_rules.cost_of_jobs(cell, name, measures.cpu_seconds)),
        milliseconds_per_hit(arm),
        *(_count(per_epoch(lambda trial, origin=origin: (trial.cache_values or {}).get(origin))) for origin in measures.ORIGINS),
    ]


def milliseconds_per_hit(arm: Arm) -> str:
    """CPU of store and gateway."""
    return text.number(measures.median_of(arm, lambda trial: 1000 * measures.cpu_seconds_per_hit(trial) or None))


def _per_epoch(amount: float | None, trial: Trial) -> float | None:
    return None if amount is None else amount / len(trial.epoch_seconds)


def _count(values: float | None) -> str:
    return text.NONE if values is None else f"{values:,.0f}"
