"""The measurements of a cell as a table: a row for each trial, by arm and round.

A value that was not measured is NaN, and so is everything computed from it: the CPU seconds of all tiers are unknown if one tier
is, since a store on another machine is not a store that uses no CPU. Values are per sample, so arms may read different numbers of
epochs, unless a comment says otherwise. Later epochs count for the time: the median of all but the first epoch of a trial, or its
only epoch. Bytes and CPU cover all epochs.
"""

import statistics

import pandas as pd

from .results import ORIGINS, TIERS, Cell, Trial

# Values from the gateway's result cache.
HIT_ORIGINS = ("memory", "disk")
# The part of a trial's values that are hits, from which on its CPU is that of hits.
MIN_HITS = 0.97
# Fields of a trial that are numbers, and the columns of all other fields.
NUMBERS = (
    *("samples", "errors", "first_batch_seconds", "batch_wait_p50_seconds", "batch_wait_p99_seconds", "stall_seconds"),
    *("value_bytes", "wire_up_bytes", "wire_down_bytes", "store_bytes", "cached_ratio", "balanced_accuracy", "trained_seconds"),
)
OTHERS = ("epochs", "all_epochs_seconds", "first_epoch_seconds", "later_epoch_seconds")
OTHERS += tuple(f"{of_tier}_{tier}" for of_tier in ("cpu", "peak") for tier in TIERS)
OTHERS += tuple(f"values_{origin}" for origin in ORIGINS)


def table(cell: Cell) -> pd.DataFrame:
    """The trials of all arms that ran."""
    rows = [_fields(name, number, trial) for name, arm in cell.arms.items() for number, trial in enumerate(arm.trials)]
    raw = pd.DataFrame(rows, columns=["arm", "round", *NUMBERS, *OTHERS]).set_index(["arm", "round"]).astype(float)
    samples = _positive(raw["samples"])
    read = samples * raw["epochs"]
    seconds = _positive(raw["later_epoch_seconds"] / samples)
    cpu = raw[[f"cpu_{tier}" for tier in TIERS]].div(read, axis=0)
    work_cpu = _positive(cpu[["cpu_gateway", "cpu_host"]].sum(axis=1, skipna=False))
    store_side = _positive(cpu[["cpu_store", "cpu_gateway"]].sum(axis=1, skipna=False))
    per_sample = raw[["value_bytes", "wire_up_bytes", "wire_down_bytes"]].div(read, axis=0)
    hits = raw[[f"values_{origin}" for origin in HIT_ORIGINS]].sum(axis=1, min_count=1) / read
    first = raw["first_epoch_seconds"] / samples
    columns = {
        "rate": 1 / seconds,
        "seconds": seconds,
        "first_epoch_seconds": _positive(first),
        # Only if there are later epochs, too.
        "first_epoch_rate": 1 / _positive(first.where(raw["epochs"] > 1)),
        # Of an epoch.
        "epoch_seconds": seconds * samples,
        "wire_bytes": _positive(per_sample[["wire_up_bytes", "wire_down_bytes"]].sum(axis=1, skipna=False)),
        "wire_bits_per_second": _positive(8 * per_sample["wire_down_bytes"] / seconds),
        "value_bits_per_second": _positive(8 * per_sample["value_bytes"] / seconds),
        "stall": raw["stall_seconds"] / raw["all_epochs_seconds"],
        "cpu": _positive(cpu.sum(axis=1, skipna=False)),
        "store_side_cpu": store_side,
        # Of all processes but the store.
        "work_cpu": work_cpu,
        "work_rate": 1 / work_cpu,
        # Samples per CPU second of the trainer.
        "host_rate": 1 / _positive(cpu["cpu_host"]),
        # Of all samples and epochs.
        "total_cpu": _positive(cpu.sum(axis=1, skipna=False) * read),
        "total_store_bytes": _positive(raw["store_bytes"]),
        # Of an epoch.
        "epoch_store_bytes": raw["store_bytes"] / raw["epochs"],
        "hits": hits,
        "cpu_per_hit": store_side.where(hits >= MIN_HITS),
    }
    origins = {f"values_{origin}": raw[f"values_{origin}"] / raw["epochs"] for origin in ORIGINS}
    whole = ("errors", "first_batch_seconds", "batch_wait_p50_seconds", "batch_wait_p99_seconds", "cached_ratio")
    whole += ("balanced_accuracy", "trained_seconds", *(f"peak_{tier}" for tier in TIERS))
    return pd.concat([pd.DataFrame(columns | origins), cpu, per_sample, raw[list(whole)]], axis=1)


def _fields(name: str, number: int, trial: Trial) -> dict[str, str | float | None]:
    epochs = trial.epoch_seconds
    row = {"arm": name, "round": number, "epochs": len(epochs), "all_epochs_seconds": sum(epochs)}
    row |= {"first_epoch_seconds": epochs[0], "later_epoch_seconds": statistics.median(epochs[1:] or epochs)}
    row |= {field: getattr(trial, field) for field in NUMBERS}
    row |= {f"cpu_{tier}": trial.cpu_seconds.get(tier) for tier in TIERS}
    row |= {f"peak_{tier}": trial.peak_bytes.get(tier) for tier in TIERS}
    return row | {f"values_{origin}": (trial.cache_values or {}).get(origin) for origin in ORIGINS}


def _positive(values: pd.Series) -> pd.Series:
    """The values, with NaN in place of a 0, which stands for *not measured* here."""
    return values.where(values > 0)
