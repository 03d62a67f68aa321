"""Verdicts.

A ratio above 1 is always good for the judged arm. The rules, by the arm that they judge:

- `plain` (`auto`): rate against the fastest arm of kind `plain` or `peer`, by its median: 0.97.
- `first` (`auto` with several epochs): its first epoch against the first epoch of the same arm. Informational: in its first epoch
  the planner still measures the costs.
- `best` (`auto`): rate against the fastest arm of kind `plain` or `pushed` in the same round: 0.95.
- `bytes` (`auto`): bytes on the wire in both directions, baseline to `auto`, if the baseline is plain reading: 1.
- `bound` (`auto`, if x is at most 0.3, the baseline is plain reading and the upper bound is known): rate against the bound: 0.85.
- `rival` (`auto`, tables): rate against pyarrow, which reads ranges: 0.97. `rival-cpu`: CPU seconds of pyarrow or DuckDB,
  whichever uses less, to those of `auto`: 0.8. `download`: rate against a download of the object, over at most 100 Mbit/s: 5.
- `simulator` (each arm that it models): the epoch of the planner's simulator, from the costs of the same trial, to the measured
  epoch: from 0.85 to 1.15. This compares a trial with itself, so A/A noise does not matter.
- `store-bytes` (jobs that share values): bytes from the store of one job without a cache, to those of all jobs: 1 / 1.02.
  `jobs-cpu`: CPU seconds of that job on all tiers to those of four jobs; informational. `later-cpu`: CPU seconds of store and
  gateway per sample in the first epoch to those in a later one. The cell has the requirements, since they differ by pipeline.
- `hit-cpu` (`revalidated`, `remembered`): the aim of CPU seconds of store and gateway per hit to its own: 1.
- `trainer-cpu` (`plain` and `auto`, beside a data loader of others as documented): CPU seconds of the host per sample of that loader
  to its own: 1.5.
- `link` (`memory` over a shaped link): bits per second on the wire to the link's rate: 0.9. `hits` (all arms of a later epoch): hits
  per sample, relative to the cached ratio that the gateway announced: 0.97.
- `repeat`: the baseline, or the arm in the name, against itself (A/A): a tie, unless the whole interval is more than 3 % from 1.
  An interval wider than 0.05 is noise, and undecided.

Outcomes: *pass* if the whole interval is at or above the requirement, *fail* if it is below, otherwise *undecided*; fewer than 3
rounds are always undecided. If the A/A interval is wider than 0.05, or that far from 1, verdicts by the clock (`plain`, `best`,
`bound`) are *void*, and `plain` and `best` are repeated on the CPU seconds of store, gateway and host as *informational*. CPU
decides nothing: a plan that keeps both sides busy finishes earlier but is not cheaper, and two busy threads of one core need more
CPU seconds for the same work. A verdict is also void if nothing could be measured or if the arm failed samples. Arms of kind
`rival` take part in the `rival` rules only, and are reported first if they are ahead.
"""

import statistics
from dataclasses import replace

from . import cache_rules, trainer_rules
from .intervals import MIN_BOOTSTRAP_ROUNDS, MIN_ROUNDS, Interval, interval, paired, range_confidence
from .measures import (
    AHEAD_MEASURES,
    MEASURES,
    cpu_seconds_per_sample,
    first_epoch_seconds_per_sample,
    measurements,
    seconds_per_sample,
    wire_bytes_per_sample,
)
from .results import Arm, Cell, Verdict

MIN_RATIO_TO_PLAIN, MIN_RATIO_TO_BEST_FIXED, MIN_BYTES_RATIO, MIN_RATIO_TO_BOUND, EQUAL = 0.97, 0.95, 1.0, 0.85, 1.0
MIN_RATIO_TO_RANGES, MIN_CPU_RATIO, MIN_RATIO_TO_DOWNLOAD = 0.97, 0.8, 5.0
SIMULATOR_TOLERANCE = 0.15
# Rivals that read tables. The first one reads ranges.
TABLE_RIVALS = ("pyarrow", "duckdb", "duckdb-httpfs")
# 100 Mbit/s, and 5 % of tolerance: a shaped link passes slightly more or less than requested.
MAX_DOWNLOAD_BITS_PER_SECOND = 105e6
MAX_BOUND_LINK_RATIO, MAX_NOISE, TIE_TOLERANCE = 0.3, 0.05, 0.03
NOISE_NOTE = f"A/A is off by more than {MAX_NOISE * 100:g} %"
NO_REPEAT_NOTE = "no A/A in this cell"


def failed_samples(arm: Arm) -> int:
    """Samples that were not delivered."""
    return sum(trial.errors for trial in arm.trials)


def arms_of_kind(cell: Cell, *kinds: str) -> dict[str, Arm]:
    """The arms of these kinds that ran."""
    return {name: arm for name, arm in cell.arms.items() if arm.kind in kinds and arm.trials}


def fastest_plain(cell: Cell) -> str | None:
    """The fastest arm that reads plainly, among those that delivered every sample."""
    complete = {name: arm for name, arm in arms_of_kind(cell, "plain", "peer").items() if not failed_samples(arm)}
    medians = {name: statistics.median(measurements(arm, seconds_per_sample)) for name, arm in complete.items()}
    medians = {name: value for name, value in medians.items() if value > 0}
    return min(medians, key=medians.get) if medians else None


def repeated_pair(cell: Cell) -> tuple[str, str] | None:
    """The arm of the A/A test and its repetition: the baseline for `repeat`, the arm NAME for `repeat:NAME`."""
    repeat = next(iter(arms_of_kind(cell, "repeat")), None)
    return None if repeat is None else (repeat.partition(":")[2] or cell.baseline, repeat)


def repeat_ratio(cell: Cell) -> Interval | None:
    """The A/A test: the seconds of an arm to those of its repetition."""
    pair = repeated_pair(cell)
    return paired(*(measurements(cell.arms[name], seconds_per_sample) for name in pair)) if pair else None


def is_noisy(cell: Cell) -> bool:
    """Whether the A/A test differs so much, between rounds or overall, that times decide nothing."""
    ratio = repeat_ratio(cell)
    return ratio is not None and (is_wide(ratio) or ratio.low > EQUAL + MAX_NOISE or ratio.high < EQUAL - MAX_NOISE)


def is_wide(ratio: Interval) -> bool:
    """Whether the interval of an A/A test is too wide for a verdict."""
    return ratio.high - ratio.low > MAX_NOISE


def speedup(cell: Cell, name: str) -> Interval | None:
    """The rate of an arm to the fastest plain arm."""
    fastest = fastest_plain(cell)
    if fastest is None or not cell.arms[name].trials or failed_samples(cell.arms[name]):
        return None
    return paired(measurements(cell.arms[fastest], seconds_per_sample), measurements(cell.arms[name], seconds_per_sample))


def gateway_arm(cell: Cell) -> str | None:
    """The arm that represents the gateway: `auto`, or a pushed arm in cells without a planner."""
    return next(iter(arms_of_kind(cell, "auto") or arms_of_kind(cell, "pushed")), None)


def arms_ahead(cell: Cell, measure: str) -> dict[str, Interval]:
    """Arms that need less than the gateway's arm for the same work, by the whole interval; with the ratio of the gateway's arm to
    each."""
    judged = gateway_arm(cell)
    if judged is None:
        return {}
    fixed = ["pushed"] if cell.arms[judged].kind == "auto" else []
    others = arms_of_kind(cell, "plain", "peer", "rival", "layout", *fixed)
    get = AHEAD_MEASURES[measure]
    ratio = lambda arm: paired(measurements(cell.arms[judged], get), measurements(arm, get))
    ratios = {name: ratio(arm) for name, arm in others.items() if not failed_samples(arm)}
    return {name: each for name, each in ratios.items() if each is not None and each.low > 1}


def verdicts(cell: Cell) -> list[Verdict]:
    """All verdicts of a cell, in the order of the rules."""
    verdicts = []
    for name, arm in arms_of_kind(cell, "auto").items():
        if arms_of_kind(cell, "plain", "peer"):
            fastest = {each: cell.arms[each] for each in [fastest_plain(cell)] if each}
            verdicts += _clock_verdicts(cell, name, "plain", MIN_RATIO_TO_PLAIN, fastest)
            verdicts += _first_epoch_verdict(cell, name)
        fixed = {each: arm for each, arm in arms_of_kind(cell, "plain", "pushed").items() if not failed_samples(arm)}
        verdicts += _clock_verdicts(cell, name, "best", MIN_RATIO_TO_BEST_FIXED, fixed)
        plain = cell.arms[cell.baseline]
        if plain.kind == "plain":
            measured = (measurements(plain, wire_bytes_per_sample), measurements(arm, wire_bytes_per_sample))
            ratio = None if failed_samples(plain) else paired(*measured)
            verdicts.append(_judge(cell, "bytes", name, cell.baseline, "wire", MIN_BYTES_RATIO, ratio))
        verdicts += _table_verdicts(cell, name)
        if plain.kind == "plain" and cell.bound is not None and cell.x is not None and cell.x <= MAX_BOUND_LINK_RATIO:
            rates = [1 / each for each in measurements(arm, seconds_per_sample) if each > 0]
            ratio = interval([rate / cell.bound.samples_per_second for rate in rates])
            verdicts.append(_judge(cell, "bound", name, cell.bound.limited_by, "seconds", MIN_RATIO_TO_BOUND, ratio))
    of_modules = trainer_rules.verdicts(cell, _judge) + cache_rules.verdicts(cell, _judge)
    return verdicts + _simulator_verdicts(cell) + _repeat_verdict(cell) + of_modules


def _first_epoch_verdict(cell: Cell, name: str) -> list[Verdict]:
    """The first epoch of `auto` against that of the fastest plain arm, if `auto` has later epochs, which count."""
    arm, against = cell.arms[name], fastest_plain(cell)
    if against is None or all(len(trial.epoch_seconds) == 1 for trial in arm.trials):
        return []
    ratio = paired(*(measurements(each, first_epoch_seconds_per_sample) for each in (cell.arms[against], arm)))
    if ratio is None or failed_samples(arm):
        return [_judge(cell, "first", name, against, "seconds", EQUAL, ratio)]
    notes = "; ".join(filter(None, [_rounds_note(ratio), NOISE_NOTE if is_noisy(cell) else ""]))
    return [_verdict("first", name, against, "seconds", EQUAL, ratio, "informational", notes)]


def _simulator_verdicts(cell: Cell) -> list[Verdict]:
    """Whether the simulator agrees with the clock. Unlike other rules it has a lower and an upper limit."""
    verdicts = []
    for name, epochs in cell.simulated_epoch_seconds.items():
        ratio = paired(epochs, [seconds_per_sample(trial) * trial.samples for trial in cell.arms[name].trials])
        verdict = _judge(cell, "simulator", name, "clock", "seconds", 1 - SIMULATOR_TOLERANCE, ratio)
        judged = verdict.outcome in ("pass", "fail", "undecided")
        if ratio is not None and judged and ratio.high > 1 + SIMULATOR_TOLERANCE:
            outcome = "fail" if ratio.low > 1 + SIMULATOR_TOLERANCE and ratio.drawn else "undecided"
            verdict = replace(verdict, outcome=outcome)
        verdicts.append(verdict)
    return verdicts


def _repeat_verdict(cell: Cell) -> list[Verdict]:
    """The A/A test, if the cell has one."""
    ratio = repeat_ratio(cell)
    if ratio is None:
        return []
    arm, repeat = repeated_pair(cell)
    lost = failed_samples(cell.arms[repeat]) + failed_samples(cell.arms[arm])
    is_tie = ratio.low <= EQUAL + TIE_TOLERANCE and ratio.high >= EQUAL - TIE_TOLERANCE
    decided = "pass" if is_tie else "fail"
    outcome = "void" if lost else "undecided" if is_wide(ratio) or not ratio.drawn else decided
    noise = f"{NOISE_NOTE}: no verdict by the clock" if is_noisy(cell) else ""
    notes = [f"{lost} samples failed" if lost else "", _rounds_note(ratio), noise]
    return [_verdict("repeat", repeat, arm, "seconds", EQUAL, ratio, outcome, "; ".join(filter(None, notes)))]


def _table_verdicts(cell: Cell, name: str) -> list[Verdict]:
    """The rules for tables: against readers that read them directly, and against a download."""
    rivals = {each: arm for each, arm in arms_of_kind(cell, "rival").items() if each in TABLE_RIVALS and not failed_samples(arm)}
    judged, verdicts = cell.arms[name], []
    if TABLE_RIVALS[0] in rivals:
        verdicts += _clock_verdicts(cell, name, "rival", MIN_RATIO_TO_RANGES, {TABLE_RIVALS[0]: rivals[TABLE_RIVALS[0]]})
    if rivals:
        lowest = [min(round) for round in zip(*(measurements(arm, cpu_seconds_per_sample) for arm in rivals.values()))]
        ratio = paired(lowest, measurements(judged, cpu_seconds_per_sample))
        verdicts.append(_judge(cell, "rival-cpu", name, " or ".join(rivals), "cpu", MIN_CPU_RATIO, ratio, cpu_decides=True))
        if cell.bandwidth is not None and cell.bandwidth <= MAX_DOWNLOAD_BITS_PER_SECOND:
            verdicts += _clock_verdicts(cell, name, "download", MIN_RATIO_TO_DOWNLOAD, arms_of_kind(cell, "plain"))
    return verdicts


def _clock_verdicts(cell: Cell, name: str, rule: str, required: float, others: dict[str, Arm]) -> list[Verdict]:
    """The verdict by the clock; in a noisy cell, where it is void, also the ratio of CPU seconds."""
    verdicts = []
    for measure in ["seconds", "cpu"] if is_noisy(cell) else ["seconds"]:
        get = MEASURES[measure]
        rounds = [list(filter(None, round)) for round in zip(*(measurements(arm, get) for arm in others.values()))]
        lowest = [min(round, default=0.0) for round in rounds]
        ratio = paired(lowest, measurements(cell.arms[name], get))
        verdicts.append(_judge(cell, rule, name, " or ".join(others), measure, required, ratio))
    return verdicts


def _judge(cell: Cell, rule: str, name: str, against: str, measure: str, required: float, ratio: Interval | None,
           cpu_decides: bool = False) -> Verdict:
    lost = failed_samples(cell.arms[name])
    if ratio is None:
        return _verdict(rule, name, against, measure, required, None, "void", "no complete measurement to compare with")
    if lost:
        return _verdict(rule, name, against, measure, required, ratio, "void", f"{lost} samples failed")
    is_paired = measure == "seconds" and rule != "simulator"
    if is_paired and is_noisy(cell):
        return _verdict(rule, name, against, measure, required, ratio, "void", NOISE_NOTE)
    if measure == "cpu" and not cpu_decides:
        return _verdict(rule, name, against, measure, required, ratio, "informational", _rounds_note(ratio))
    outcome = "pass" if ratio.low >= required else "fail" if ratio.high < required else "undecided"
    outcome = outcome if ratio.drawn else "undecided"
    no_repeat = NO_REPEAT_NOTE if is_paired and repeat_ratio(cell) is None else ""
    notes = "; ".join(filter(None, [_rounds_note(ratio), no_repeat]))
    return _verdict(rule, name, against, measure, required, ratio, outcome, notes)


def interval_of(verdict: Verdict) -> Interval | None:
    """The ratio of a verdict, if it has one."""
    if verdict.median is None:
        return None
    return Interval(verdict.median, verdict.low, verdict.high, verdict.rounds, verdict.rounds >= MIN_ROUNDS)


def _rounds_note(ratio: Interval) -> str:
    if ratio.rounds >= MIN_BOOTSTRAP_ROUNDS:
        return ""
    note = f"range of {ratio.rounds} round{'s' if ratio.rounds > 1 else ''}"
    return f"{note}, {range_confidence(ratio.rounds) * 100:.3g} % confidence" if ratio.drawn else note


def _verdict(rule: str, arm: str, against: str, measure: str, required: float, ratio: Interval | None, outcome: str,
             note: str) -> Verdict:
    median, low, high, rounds = (ratio.median, ratio.low, ratio.high, ratio.rounds) if ratio else (None, None, None, 0)
    return Verdict(rule, arm, against, measure, required, median, low, high, rounds, outcome, note)
