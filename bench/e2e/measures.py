"""What a trial needed, by measure.

A value that was not measured is 0 here and yields no ratio. The CPU seconds of a trial cover all tiers or count as not measured:
a store on another machine is not a store that uses no CPU. Measures are per sample, so arms may read different numbers of epochs,
except where a name says otherwise. Later epochs count: the median of all but the first epoch of a trial, or its only epoch.
"""

import statistics
from collections.abc import Callable

from .results import TIERS, Arm, Trial

# Where the gateway's values come from, and those of them that are hits of its result cache.
ORIGINS, HIT_ORIGINS = ("computed", "memory", "disk", "shared", "prefix"), ("memory", "disk")
# The part of a trial's values that are hits, from which on its CPU is that of hits.
MIN_HITS = 0.97

Measure = Callable[[Trial], float]


def seconds_per_sample(trial: Trial) -> float:
    """Seconds per sample of the later epochs."""
    return statistics.median(trial.epoch_seconds[1:] or trial.epoch_seconds) / trial.samples if trial.samples else 0.0


def first_epoch_seconds_per_sample(trial: Trial) -> float:
    """Seconds per sample of the first epoch."""
    return trial.epoch_seconds[0] / trial.samples if trial.samples else 0.0


def first_batch_seconds(trial: Trial) -> float:
    """Seconds to the first batch."""
    return trial.first_batch_seconds or 0.0


def cpu_seconds_per_sample(trial: Trial) -> float:
    """CPU seconds per sample of all tiers and epochs; 0 if a tier was not measured."""
    complete = trial.samples and set(TIERS) <= set(trial.cpu_seconds)
    return sum(trial.cpu_seconds[tier] for tier in TIERS) / samples_read(trial) if complete else 0.0


def cpu_seconds(trial: Trial) -> float:
    """CPU seconds of all tiers and epochs; 0 if a tier was not measured."""
    return cpu_seconds_per_sample(trial) * samples_read(trial)


def store_side_cpu_seconds_per_sample(trial: Trial) -> float:
    """CPU seconds of store and gateway per sample of all epochs; 0 if one of them was not measured."""
    complete = trial.samples and {"store", "gateway"} <= set(trial.cpu_seconds)
    return (trial.cpu_seconds["store"] + trial.cpu_seconds["gateway"]) / samples_read(trial) if complete else 0.0


def host_cpu_seconds_per_sample(trial: Trial) -> float:
    """CPU seconds of the host per sample of all epochs; 0 if they were not measured."""
    return trial.cpu_seconds.get("host", 0.0) / samples_read(trial) if trial.samples else 0.0


def store_bytes(trial: Trial) -> float:
    """Bytes from the store to the gateway; 0 if they were not measured."""
    return trial.store_bytes or 0.0


def wire_bytes_per_sample(trial: Trial) -> float:
    """Bytes on the wire per sample in both directions, of all epochs; 0 if a direction was not measured."""
    directions = (trial.wire_up_bytes, trial.wire_down_bytes)
    return sum(directions) / samples_read(trial) if trial.samples and None not in directions else 0.0


def samples_read(trial: Trial) -> int:
    """Samples of all epochs."""
    return trial.samples * len(trial.epoch_seconds)


def hits(trial: Trial) -> float:
    """Values from the result cache, of all epochs; 0 if they were not counted."""
    return sum((trial.cache_values or {}).get(origin, 0.0) for origin in HIT_ORIGINS)


def hit_ratio(trial: Trial) -> float:
    """Hits to samples, of all epochs."""
    return hits(trial) / samples_read(trial) if trial.samples else 0.0


def cpu_seconds_per_hit(trial: Trial) -> float:
    """CPU seconds of store and gateway per hit; 0 if they were not measured, or if many values were not hits."""
    return store_side_cpu_seconds_per_sample(trial) if hit_ratio(trial) >= MIN_HITS else 0.0


def wire_down_bits_per_second(trial: Trial) -> float:
    """Bits per second on the wire to the host in the later epochs; 0 if they were not measured."""
    took = seconds_per_sample(trial)
    return 8 * trial.wire_down_bytes / samples_read(trial) / took if took and trial.wire_down_bytes else 0.0


MEASURES: dict[str, Measure] = {"seconds": seconds_per_sample, "cpu": cpu_seconds_per_sample, "wire": wire_bytes_per_sample}
# Measures in which other arms can be ahead of the gateway's arm.
AHEAD_MEASURES: dict[str, Measure] = {
    "seconds": seconds_per_sample, "cpu": cpu_seconds_per_sample, "first batch": first_batch_seconds,
}  # fmt: skip


def measurements(arm: Arm, measure: Measure) -> list[float]:
    """The measure of each round of an arm."""
    return [measure(trial) for trial in arm.trials]


def median_of(arm: Arm, get: Callable[[Trial], float | None]) -> float | None:
    """The median over the trials that have the value."""
    values = [value for value in map(get, arm.trials) if value is not None]
    return statistics.median(values) if values else None
