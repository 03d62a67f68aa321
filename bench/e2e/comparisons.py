"""What is compared in a cell: the ratio of two measurements of the same rounds, by the rules of `targets`.

An arm that failed samples meets no target, and nothing is compared with it: samples that are not delivered take no time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from . import targets, trials
from .ratios import Ratio, Target, of_rounds, paired
from .results import Arm, Cell
from .targets import RULES

# The columns of `trials` in which another arm can be ahead of the gateway's arm.
AHEAD = {"rate": "seconds", "CPU seconds": "cpu", "first batch": "first_batch_seconds"}


@dataclass(frozen=True)
class Comparison:
    """A ratio of two arms, or of an arm and a limit. It is about the arm `arm`; without a ratio something was not measured."""

    rule: str
    arm: str
    over: str
    under: str
    ratio: Ratio | None
    target: Target | None
    failed_samples: int

    @property
    def name(self) -> str:
        """The division: `auto / plain`, with the quantity before it unless that is the rate."""
        quantity = RULES[self.rule].quantity
        return f"{quantity}{': ' if quantity else ''}`{self.over} / {self.under}`"

    @property
    def is_missed(self) -> bool:
        """Whether there is a target and the median misses it, or samples failed. A ratio that was not measured misses nothing."""
        return self.target is not None and self.ratio is not None and (self.failed_samples > 0 or not self.target.is_met(self.ratio))


class Rounds:
    """The measurements of a cell, by round and arm."""

    def __init__(self, cell: Cell) -> None:
        self.cell, self.trials = cell, trials.table(cell)

    def column(self, name: str) -> pd.DataFrame:
        """The measurements of a column of `trials`: a row for each round, a column for each arm."""
        return self.trials[name].unstack("arm").reindex(columns=list(self.cell.arms))

    def ratio(self, column: str, over: str, under: str) -> Ratio | None:
        """The ratio of two arms."""
        measured = self.column(column)
        return paired(measured[over], measured[under])

    def compare(self, rule: str, name: str, over: str, under: str, ratio: Ratio | None) -> Comparison:
        """A comparison about the arm `name`."""
        target = Target(at_least=self.cell.required[rule]) if rule in targets.OWN_TARGETS else RULES[rule].target
        return Comparison(rule, name, over, under, ratio, target, self.cell.arms[name].failed_samples)

    def compare_best(self, rule: str, name: str, others: list[str], column: str) -> Comparison:
        """The comparison with whichever of the others needed least in a round."""
        measured = self.column(column)
        shown = others[0] if len(others) == 1 else f"best of {', '.join(others)}"
        over, under = (shown, name) if RULES[rule].quantity else (name, shown)
        return self.compare(rule, name, over, under, paired(measured[others].min(axis=1), measured[name]))

    def fastest_plain(self) -> str | None:
        """The fastest arm that reads plainly, among those that delivered every sample."""
        medians = self.trials["seconds"].groupby("arm").median().reindex(complete(self.cell, "plain", "peer")).dropna()
        return None if medians.empty else str(medians.idxmin())


def of_kind(cell: Cell, *kinds: str) -> dict[str, Arm]:
    """The arms of these kinds that ran."""
    return {name: arm for name, arm in cell.arms.items() if arm.kind in kinds and arm.trials}


def complete(cell: Cell, *kinds: str) -> list[str]:
    """Those of them that delivered every sample."""
    return [name for name, arm in of_kind(cell, *kinds).items() if not arm.failed_samples]


def gateway_arm(cell: Cell) -> str | None:
    """The arm that represents the gateway: `auto`, another arm with a planner, or a pushed arm in cells without one."""
    planned = of_kind(cell, "auto")
    return "auto" if "auto" in planned else next(iter(planned or of_kind(cell, "pushed")), None)


def speedup(cell: Cell, name: str) -> Ratio | None:
    """The rate of an arm to that of the fastest plain arm."""
    rounds = Rounds(cell)
    fastest = rounds.fastest_plain()
    if fastest is None or not cell.arms[name].trials or cell.arms[name].failed_samples:
        return None
    return rounds.ratio("seconds", fastest, name)


def rate_to_baseline(cell: Cell, name: str) -> Ratio | None:
    """The rate of an arm to that of the cell's baseline; None for the baseline itself, and if one of them failed samples."""
    is_comparable = name != cell.baseline and not cell.arms[name].failed_samples and not cell.arms[cell.baseline].failed_samples
    return Rounds(cell).ratio("seconds", cell.baseline, name) if is_comparable else None


def cost_of_jobs(cell: Cell, name: str, column: str) -> Ratio | None:
    """What an arm costs, relative to one job without a cache; None in cells without that, and for arms with hits only."""
    if targets.ONE_JOB not in cell.arms or name in targets.MAX_CPU_SECONDS_PER_HIT:
        return None
    return Rounds(cell).ratio(column, name, targets.ONE_JOB)


def arms_ahead(cell: Cell, column: str) -> dict[str, Ratio]:
    """Arms that need less than the gateway's arm in every round; with the ratio of the gateway's arm to each."""
    own = gateway_arm(cell)
    if own is None:
        return {}
    fixed = ["pushed"] if cell.arms[own].kind == "auto" else []
    others = complete(cell, "plain", "peer", "alternative", "layout", *fixed)
    rounds = Rounds(cell)
    ratios = {name: rounds.ratio(column, own, name) for name in others if name != own}
    return {name: ratio for name, ratio in ratios.items() if ratio is not None and ratio.low > 1}


def comparisons(cell: Cell) -> list[Comparison]:
    """All comparisons of a cell, in the order of the rules."""
    rounds = Rounds(cell)
    found = [each for name in of_kind(cell, "auto") for each in _planned(rounds, name)]
    found += [*_simulated(rounds), *_documented_loaders(rounds), *_jobs(rounds), *_hits(rounds)]
    found += [*_later_epoch(rounds), *_trained(rounds), *_replicas(rounds), *_materialized(rounds), *_warmed(rounds)]
    return [*found, *_repeated(rounds)]


def _planned(rounds: Rounds, name: str) -> Iterator[Comparison]:
    """The comparisons of an arm with a planner."""
    cell, fastest = rounds.cell, rounds.fastest_plain()
    plain = cell.arms[cell.baseline]
    if fastest is not None:
        yield rounds.compare("plain", name, name, fastest, rounds.ratio("seconds", fastest, name))
        if any(len(trial.epoch_seconds) > 1 for trial in cell.arms[name].trials):
            yield rounds.compare("first", name, name, fastest, rounds.ratio("first_epoch_seconds", fastest, name))
    if fixed := complete(cell, "plain", "pushed"):
        yield rounds.compare_best("best", name, fixed, "seconds")
    if plain.kind == "plain" and not plain.failed_samples:
        yield rounds.compare("bytes", name, cell.baseline, name, rounds.ratio("wire_bytes", cell.baseline, name))
    yield from _table_readers(rounds, name)
    if plain.kind == "plain" and cell.bound is not None and cell.x is not None and cell.x <= targets.MAX_BOUND_LINK_RATIO:
        ratio = of_rounds(rounds.column("rate")[name] / cell.bound.samples_per_second)
        yield rounds.compare("bound", name, name, f"upper bound of the {cell.bound.limited_by}", ratio)


def _table_readers(rounds: Rounds, name: str) -> Iterator[Comparison]:
    """Tables: readers that read ranges themselves, and a download."""
    readers = [each for each in complete(rounds.cell, "alternative") if each in targets.TABLE_READERS]
    if targets.TABLE_READERS[0] in readers:
        ranges = targets.TABLE_READERS[0]
        yield rounds.compare("ranges", name, name, ranges, rounds.ratio("seconds", ranges, name))
    if readers:
        yield rounds.compare_best("ranges-cpu", name, readers, "cpu")
        if rounds.cell.bandwidth is not None and rounds.cell.bandwidth <= targets.MAX_DOWNLOAD_BITS_PER_SECOND:
            for plain in complete(rounds.cell, "plain"):
                yield rounds.compare("download", name, name, plain, rounds.ratio("seconds", plain, name))


def _simulated(rounds: Rounds) -> Iterator[Comparison]:
    """The planner's simulator and the clock. This compares a trial with itself."""
    for name, epochs in rounds.cell.simulated_epoch_seconds.items():
        ratio = paired(epochs, rounds.column("epoch_seconds")[name])
        yield rounds.compare("simulator", name, "simulated", name, ratio)


def _documented_loaders(rounds: Rounds) -> Iterator[Comparison]:
    """What the trainer's CPU delivers with our loader and with loaders of others as documented."""
    for other in targets.DOCUMENTED_LOADERS:
        for name in targets.LOADERS:
            if {other, name} <= set(rounds.cell.arms):
                yield rounds.compare("trainer-cpu", name, name, other, rounds.ratio("host_rate", name, other))


def _jobs(rounds: Rounds) -> Iterator[Comparison]:
    """Jobs on one data set: of all jobs and of one without a cache, and of the first epoch and a later one."""
    for name in targets.SHARED:
        if not {targets.ONE_JOB, name, targets.later(name)} <= set(rounds.cell.arms):
            continue
        for rule, column in (("store-bytes", "total_store_bytes"), ("jobs-cpu", "total_cpu")):
            if rule in rounds.cell.required:
                yield rounds.compare(rule, name, targets.ONE_JOB, name, rounds.ratio(column, targets.ONE_JOB, name))
        if "later-cpu" in rounds.cell.required:
            last = targets.later(name)
            yield rounds.compare("later-cpu", last, name, last, rounds.ratio("store_side_cpu", name, last))


def _hits(rounds: Rounds) -> Iterator[Comparison]:
    """Arms with hits only."""
    for name, aim in targets.MAX_CPU_SECONDS_PER_HIT.items():
        if name in rounds.cell.arms and "hit-cpu" in rounds.cell.required:
            used = rounds.column("cpu_per_hit")[name]
            yield rounds.compare("hit-cpu", name, f"{aim * 1000:g} ms", name, paired([aim] * len(used), used))


def _later_epoch(rounds: Rounds) -> Iterator[Comparison]:
    """A later epoch over a link."""
    if "link" in rounds.cell.required and rounds.cell.bandwidth is not None and targets.ALL_CACHED in rounds.cell.arms:
        rates = rounds.column("wire_bits_per_second")[targets.ALL_CACHED]
        yield rounds.compare("link", targets.ALL_CACHED, targets.ALL_CACHED, "link", of_rounds(rates / rounds.cell.bandwidth))
    for name in rounds.cell.arms if "hits" in rounds.cell.required else ():
        # No hits at all are a measurement, too.
        announced = rounds.column("cached_ratio")[name]
        ratio = of_rounds(rounds.column("hits")[name] / announced.where(announced > 0))
        yield rounds.compare("hits", name, name, "announced", ratio)


def _trained(rounds: Rounds) -> Iterator[Comparison]:
    """The time until the head of a method is trained, reading included."""
    for name in complete(rounds.cell, "pushed", "auto", "layout"):
        ratio = rounds.ratio("trained_seconds", rounds.cell.baseline, name)
        if ratio is not None:
            yield rounds.compare("trained", name, rounds.cell.baseline, name, ratio)


def _replicas(rounds: Rounds) -> Iterator[Comparison]:
    """Several replicas of a gateway, and that many times the rate of one."""
    one, all_ = targets.ONE_REPLICA, targets.ALL_REPLICAS
    if {one, all_} <= set(rounds.cell.arms) and not rounds.cell.arms[one].failed_samples:
        rates = rounds.column("rate")
        rule = "linear-parts" if rounds.cell.group == "materialize-replicas" else "linear"
        yield rounds.compare(rule, all_, all_, f"{rounds.cell.x:g} x {one}", paired(rates[all_], rounds.cell.x * rates[one]))


def _materialized(rounds: Rounds) -> Iterator[Comparison]:
    """Whole data sets that the gateway writes, and the programs of others and the steps alone."""
    own, alone = targets.MATERIALIZED, targets.STEPS_ALONE
    if own not in rounds.cell.arms:
        return
    if "peer-cpu" in rounds.cell.required and (peers := complete(rounds.cell, "peer")):
        yield rounds.compare_best("peer-cpu", own, peers, "work_cpu")
        yield rounds.compare_best("peer-total-cpu", own, peers, "cpu")
    if "client-cpu" in rounds.cell.required:
        used, limit = rounds.column("cpu_host")[own], targets.MAX_CLIENT_CPU_SECONDS
        yield rounds.compare("client-cpu", own, f"{limit * 1e6:g} us", own, paired([limit] * len(used), used))
    if alone in complete(rounds.cell, "ceiling"):
        yield rounds.compare("step-cpu", own, alone, own, rounds.ratio("cpu_gateway", alone, own))


def _warmed(rounds: Rounds) -> Iterator[Comparison]:
    """Warmed values over a link, and a plain download of as many bytes."""
    warmed, download = targets.WARMED, targets.DOWNLOAD
    if {warmed, download} <= set(rounds.cell.arms):
        yield rounds.compare("warm-link", warmed, warmed, download, rounds.ratio("value_bits_per_second", warmed, download))


def _repeated(rounds: Rounds) -> Iterator[Comparison]:
    """An arm and its own repetition: the baseline for `repeat`, the arm NAME for `repeat:NAME`."""
    for repeat in of_kind(rounds.cell, "repeat"):
        name = repeat.partition(":")[2] or rounds.cell.baseline
        yield rounds.compare("repeat", repeat, name, repeat, rounds.ratio("seconds", name, repeat))
