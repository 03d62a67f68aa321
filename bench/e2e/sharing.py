"""What jobs on one data set cost together, relative to one job without a result cache, and where their values came from."""

from . import stats, text
from .results import Arm, Cell

COLUMNS = ["arm", "samples/s per job", "from the store", "to that of one job", "CPU s: all", "to that of one job"]


def section(cell: Cell) -> list[str]:
    """A table after an empty line; empty for other cells."""
    if stats.ONE_JOB not in cell.arms:
        return []
    rows = [_arm(cell, name, arm) for name, arm in cell.arms.items() if arm.trials]
    columns = [*COLUMNS, *(f"values {origin}" for origin in stats.ORIGINS)]
    return ["", *text.table(columns, rows)] if rows else []


def _arm(cell: Cell, name: str, arm: Arm) -> list[str]:
    jobs = 1.0 if name in (stats.ONE_JOB, stats.later(stats.ONE_JOB)) else cell.x or 1.0
    took = stats.median_of(arm, stats.seconds_per_sample)
    values = lambda origin: stats.median_of(arm, lambda trial: (trial.cache_values or {}).get(origin))
    return [
        f"`{name}`",
        text.number(1 / took / jobs if took else None),
        text.size(stats.median_of(arm, lambda trial: trial.store_bytes)),
        text.ratio(stats.cost_of_jobs(cell, name, stats.store_bytes)),
        text.number(stats.median_of(arm, lambda trial: stats.cpu_seconds(trial) or None)),
        text.ratio(stats.cost_of_jobs(cell, name, stats.cpu_seconds)),
        *(_count(values(origin)) for origin in stats.ORIGINS),
    ]


def _count(values: float | None) -> str:
    return text.NONE if values is None else f"{values:,.0f}"
