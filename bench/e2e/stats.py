"""Ratios, intervals and verdicts.

Arms run in turns, one turn each in every round, so that what slows the machine down for a while slows all arms down alike.
Ratios are therefore taken round by round. The figure is their median, and its interval is where 95 % of the medians of 2,000
draws with replacement lie, from a fixed seed. Of fewer than 6 rounds these are the least and the greatest ratio, and the median
of all rounds that might have been is between them in 1 - 2 * 0.5^n of the cases: 75 % of 3 rounds, 87.5 % of 4, 94 % of 5. With
fewer than 3 rounds nothing is drawn, and `Interval.drawn` is false.

Later epochs count: of a turn, the median of all but its first epoch, or its only epoch. Everything is per sample, so that arms
may read different numbers of epochs. What was not measured is told as 0 here, and gives no ratio: the CPU seconds of a turn are
those of all tiers or of none, since a store on another machine is not one that takes nothing.

A ratio above 1 is always good for the arm that is judged. What is asked of it, and of which arm:

- `plain` (`auto`): rate against the fastest arm of kind `plain` or `peer`, by its median: 0.97.
- `first` (`auto` of several epochs): its first epoch against the first of that same arm, which may read no other: like with
  like, but a plan has to find out first what samples cost, so that nothing is asked.
- `best` (`auto`): rate against the fastest arm of kind `plain` or `pushed` of the same round: 0.95.
- `bytes` (`auto`): bytes on the wire, up and down, of the baseline to its own, where that is plain reading: 1.
- `bound` (`auto`, where x is at most 0.3, the baseline is plain reading and the bound is known): rate against the bound: 0.85.
- `rival` (`auto` of a table): rate against pyarrow, which reads ranges itself: 0.97. `rival-cpu`: CPU seconds of the sparer of
  pyarrow and DuckDB to its own: 0.8. `download`: rate against downloading all of it, over at most 100 Mbit/s: 5.
- `simulator` (each way that it knows): the planner's simulator against the clock, from what samples cost in the same turn: its
  epoch to that of the turn, from 0.85 to 1.15. A turn is held against itself here, of which A/A says nothing.
- `again`: the baseline, or the arm that it names, against itself, an A/A test: a tie, unless its whole interval is more than 3 %
  from 1. Where it is wider than 0.05 that is noise, and undecided whatever side it lies on.

*pass* is an interval that lies at or above what is asked, *fail* one that lies below, *undecided* any other, and whatever fewer
than 3 rounds say. An arm of kind `rival` does what ours does in its own way: other rules know nothing of it, and it is told
first where it is ahead. Where the interval
of A/A is wider than 0.05, or as far from 1, wall-clock verdicts (`plain`, `best`, `bound`) are *void*, however clear they look, and `plain` and
`best` are *given* once more on CPU seconds of store, gateway and host together, all epochs. These decide nothing, and neither
does `first`: a plan that keeps both sides busy is sooner done, not cheaper, and two busy threads of one core take more CPU
seconds for the same work. Void is also what cannot be measured, and every verdict on an arm that failed samples: what is not
delivered costs nothing.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .results import TIERS, Arm, Cell, Turn, Verdict

SEED, DRAWS, TAIL = 7, 2000, 50
FEWEST = 3
# With fewer rounds the least and the greatest are in more of the draws than the interval leaves out.
ENOUGH = 6
PLAIN, BEST, BYTES, BOUND, SAME = 0.97, 0.95, 1.0, 0.85, 1.0
RANGES, SPARER, DOWNLOAD = 0.97, 0.8, 5.0
AGREES = 0.15
# Rivals that read tables; the first of them reads ranges by itself.
READERS = ("pyarrow", "duckdb", "duckdb-httpfs")
# With packets one by one a link passes a little more or less than is asked.
DOWNLOADED = 105e6
THIN, NOISE, TIE = 0.3, 0.05, 0.03
NOISY = f"A/A is off by more than {NOISE * 100:g} %"
ALONE = "no A/A in this cell"

Measure = Callable[[Turn], float]


@dataclass(frozen=True)
class Interval:
    """A median, and where it may as well lie. `drawn` is whether there were enough rounds to draw from."""

    median: float
    low: float
    high: float
    rounds: int
    drawn: bool


def seconds(turn: Turn) -> float:
    """Seconds per sample of the later epochs."""
    return statistics.median(turn.seconds[1:] or turn.seconds) / turn.samples if turn.samples else 0.0


def first(turn: Turn) -> float:
    """Seconds per sample of the first epoch."""
    return turn.seconds[0] / turn.samples if turn.samples else 0.0


def first_batch(turn: Turn) -> float:
    """Seconds to the first batch."""
    return turn.first_batch_seconds or 0.0


def cpu(turn: Turn) -> float:
    """CPU seconds per sample of all tiers and epochs; 0 where a tier was not measured."""
    whole = turn.samples and set(TIERS) <= set(turn.cpu)
    return sum(turn.cpu[tier] for tier in TIERS) / read(turn) if whole else 0.0


def wire(turn: Turn) -> float:
    """Bytes on the wire per sample, both ways, of all epochs; 0 where one of them was not measured."""
    ways = (turn.wire_up, turn.wire_down)
    return sum(ways) / read(turn) if turn.samples and None not in ways else 0.0


def read(turn: Turn) -> int:
    """Samples of all epochs."""
    return turn.samples * len(turn.seconds)


MEASURES: dict[str, Measure] = {"seconds": seconds, "cpu": cpu, "wire": wire}
# By what others may be ahead of ours.
AHEAD: dict[str, Measure] = {"seconds": seconds, "cpu": cpu, "first batch": first_batch}


def interval(ratios: Sequence[float]) -> Interval | None:
    """The median of paired ratios with its interval."""
    if len(ratios) < FEWEST:
        return Interval(statistics.median(ratios), min(ratios), max(ratios), len(ratios), False) if ratios else None
    draw = random.Random(SEED)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    return Interval(statistics.median(ratios), medians[TAIL], medians[-TAIL - 1], len(ratios), True)


def unpaired(over: Sequence[float], under: Sequence[float]) -> Interval | None:
    """The ratio of two medians whose rounds have nothing to do with each other: each is drawn for itself."""
    rounds = min(len(over), len(under))
    if rounds == 0 or min(under) <= 0:
        return None
    middle = statistics.median(over) / statistics.median(under)
    if rounds < FEWEST:
        return Interval(middle, min(over) / max(under), max(over) / min(under), rounds, False)
    draw = random.Random(SEED)
    drawn = lambda values: statistics.median(draw.choices(values, k=len(values)))
    medians = sorted(drawn(over) / drawn(under) for _ in range(DRAWS))
    return Interval(middle, medians[TAIL], medians[-TAIL - 1], rounds, True)


def paired(over: Sequence[float], under: Sequence[float]) -> Interval | None:
    """The interval of ratios that are taken round by round. A round in which nothing was measured gives none."""
    return interval([a / b for a, b in zip(over, under) if a > 0 and b > 0])


def measured(arm: Arm, measure: Measure) -> list[float]:
    """What each round of an arm took."""
    return [measure(turn) for turn in arm.turns]


def middle(arm: Arm, get: Callable[[Turn], float | None]) -> float | None:
    """The median of the turns that can tell."""
    told = [value for value in map(get, arm.turns) if value is not None]
    return statistics.median(told) if told else None


def failed(arm: Arm) -> int:
    """Samples that were not delivered."""
    return sum(turn.errors for turn in arm.turns)


def of_kind(cell: Cell, *kinds: str) -> dict[str, Arm]:
    """The arms of these kinds that ran."""
    return {name: arm for name, arm in cell.arms.items() if arm.kind in kinds and arm.turns}


def fastest_plain(cell: Cell) -> str | None:
    """The fastest of the arms that do without the gateway's work, of those that delivered every sample."""
    sound = {name: arm for name, arm in of_kind(cell, "plain", "peer").items() if not failed(arm)}
    took = {name: statistics.median(measured(arm, seconds)) for name, arm in sound.items()}
    took = {name: value for name, value in took.items() if value > 0}
    return min(took, key=took.get) if took else None


def twice(cell: Cell) -> tuple[str, str] | None:
    """The arm that ran once more, and its second run: of `again` the baseline, of `again:NAME` the arm of that name."""
    again = next(iter(of_kind(cell, "again")), None)
    return None if again is None else (again.partition(":")[2] or cell.baseline, again)


def same(cell: Cell) -> Interval | None:
    """The A/A test: the seconds of an arm to those of the same thing run once more."""
    found = twice(cell)
    return paired(*(measured(cell.arms[name], seconds) for name in found)) if found else None


def noisy(cell: Cell) -> bool:
    """Whether the same thing run twice differs so much, from round to round or altogether, that the clock cannot decide
    anything."""
    found = same(cell)
    return found is not None and (wide(found) or found.low > SAME + NOISE or found.high < SAME - NOISE)


def wide(tie: Interval) -> bool:
    """Whether an A/A test says too little of itself."""
    return tie.high - tie.low > NOISE


def speedup(cell: Cell, name: str) -> Interval | None:
    """How many times as fast as the fastest plain arm an arm is."""
    fastest = fastest_plain(cell)
    if fastest is None or not cell.arms[name].turns or failed(cell.arms[name]):
        return None
    return paired(measured(cell.arms[fastest], seconds), measured(cell.arms[name], seconds))


def ours(cell: Cell) -> str | None:
    """The arm that stands for the gateway: `auto`, or what is pushed where nothing plans."""
    return next(iter(of_kind(cell, "auto") or of_kind(cell, "pushed")), None)


def ahead(cell: Cell, measure: str) -> dict[str, Interval]:
    """Arms that take less for the same work than ours, by their whole interval; with how many times as much ours takes."""
    mine = ours(cell)
    if mine is None:
        return {}
    others = of_kind(cell, "plain", "peer", "rival", "layout", *(["pushed"] if cell.arms[mine].kind == "auto" else []))
    ratio = lambda arm: paired(measured(cell.arms[mine], AHEAD[measure]), measured(arm, AHEAD[measure]))
    found = {name: ratio(arm) for name, arm in others.items() if not failed(arm)}
    return {name: each for name, each in found.items() if each is not None and each.low > 1}


def verdicts(cell: Cell) -> list[Verdict]:
    """All verdicts of a cell, in the order of the rules."""
    found = []
    for name, arm in of_kind(cell, "auto").items():
        if of_kind(cell, "plain", "peer"):
            found += _timed(cell, name, "plain", PLAIN, {each: cell.arms[each] for each in [fastest_plain(cell)] if each})
            found += _first(cell, name)
        fixed = {each: fixed for each, fixed in of_kind(cell, "plain", "pushed").items() if not failed(fixed)}
        found += _timed(cell, name, "best", BEST, fixed)
        plain = cell.arms[cell.baseline]
        if plain.kind == "plain":
            ratio = None if failed(plain) else paired(measured(plain, wire), measured(arm, wire))
            found.append(_judged(cell, "bytes", name, cell.baseline, "wire", BYTES, ratio))
        found += _table(cell, name)
        if plain.kind == "plain" and cell.bound is not None and cell.x is not None and cell.x <= THIN:
            rates = [1 / each for each in measured(arm, seconds) if each > 0]
            ratio = interval([rate / cell.bound.samples_per_second for rate in rates])
            found.append(_judged(cell, "bound", name, cell.bound.by, "seconds", BOUND, ratio))
    found += _simulator(cell)
    tie = same(cell)
    if tie is not None:
        once, again = twice(cell)
        lost = failed(cell.arms[again]) + failed(cell.arms[once])
        level = "pass" if tie.low <= SAME + TIE and tie.high >= SAME - TIE else "fail"
        outcome = "void" if lost else "undecided" if wide(tie) or not tie.drawn else level
        notes = [f"{lost} samples failed" if lost else "", _few(tie), f"{NOISY}: no verdict by the clock" if noisy(cell) else ""]
        found.append(_verdict("again", again, once, "seconds", SAME, tie, outcome, "; ".join(filter(None, notes))))
    return found


def _first(cell: Cell, name: str) -> list[Verdict]:
    """The first epoch beside that of the fastest plain arm, where `auto` has others, which count."""
    arm, against = cell.arms[name], fastest_plain(cell)
    if against is None or all(len(turn.seconds) == 1 for turn in arm.turns):
        return []
    ratio = paired(measured(cell.arms[against], first), measured(arm, first))
    if ratio is None or failed(arm):
        return [_judged(cell, "first", name, against, "seconds", SAME, ratio)]
    notes = "; ".join(filter(None, [_few(ratio), NOISY if noisy(cell) else ""]))
    return [_verdict("first", name, against, "seconds", SAME, ratio, "given", notes)]


def _simulator(cell: Cell) -> list[Verdict]:
    """Whether the simulator is where the clock is: it is asked for neither more nor less."""
    found = []
    for way, epochs in cell.simulated.items():
        arm = cell.arms[way]
        ratio = paired(epochs, [seconds(turn) * turn.samples for turn in arm.turns])
        verdict = _judged(cell, "simulator", way, "clock", "seconds", 1 - AGREES, ratio)
        if ratio is not None and verdict.outcome in ("pass", "fail", "undecided") and ratio.high > 1 + AGREES:
            outcome = "fail" if ratio.low > 1 + AGREES and ratio.drawn else "undecided"
            verdict = replace(verdict, outcome=outcome)
        found.append(verdict)
    return found


def _table(cell: Cell, name: str) -> list[Verdict]:
    """What is asked of a table: against those who read it by themselves, and against a download."""
    rivals = {each: arm for each, arm in of_kind(cell, "rival").items() if each in READERS and not failed(arm)}
    mine, found = cell.arms[name], []
    if READERS[0] in rivals:
        found += _timed(cell, name, "rival", RANGES, {READERS[0]: rivals[READERS[0]]})
    if rivals:
        least = [min(round) for round in zip(*(measured(arm, cpu) for arm in rivals.values()))]
        ratio = paired(least, measured(mine, cpu))
        found.append(_judged(cell, "rival-cpu", name, " or ".join(rivals), "cpu", SPARER, ratio, decides=True))
        if cell.width is not None and cell.width <= DOWNLOADED:
            found += _timed(cell, name, "download", DOWNLOAD, of_kind(cell, "plain"))
    return found


def _timed(cell: Cell, name: str, rule: str, asked: float, others: dict[str, Arm]) -> list[Verdict]:
    """The verdict by the clock, and where that is void for its noise the ratio of CPU seconds."""
    found = []
    for measure in ["seconds", "cpu"] if noisy(cell) else ["seconds"]:
        each = MEASURES[measure]
        rounds = [list(filter(None, round)) for round in zip(*(measured(arm, each) for arm in others.values()))]
        least = [min(round, default=0.0) for round in rounds]
        ratio = paired(least, measured(cell.arms[name], each))
        found.append(_judged(cell, rule, name, " or ".join(others), measure, asked, ratio))
    return found


def _judged(cell: Cell, rule: str, name: str, against: str, measure: str, asked: float, ratio: Interval | None,
            decides: bool = False) -> Verdict:
    lost = failed(cell.arms[name])
    if ratio is None:
        return _verdict(rule, name, against, measure, asked, None, "void", "there is nothing whole to measure it against")
    if lost:
        return _verdict(rule, name, against, measure, asked, ratio, "void", f"{lost} samples failed")
    paired_turns = measure == "seconds" and rule != "simulator"
    if paired_turns and noisy(cell):
        return _verdict(rule, name, against, measure, asked, ratio, "void", NOISY)
    if measure == "cpu" and not decides:
        return _verdict(rule, name, against, measure, asked, ratio, "given", _few(ratio))
    outcome = "pass" if ratio.low >= asked else "fail" if ratio.high < asked else "undecided"
    outcome = outcome if ratio.drawn else "undecided"
    alone = ALONE if paired_turns and same(cell) is None else ""
    return _verdict(rule, name, against, measure, asked, ratio, outcome, "; ".join(filter(None, [_few(ratio), alone])))


def interval_of(verdict: Verdict) -> Interval | None:
    """The ratio of a verdict, where there is one."""
    if verdict.median is None:
        return None
    return Interval(verdict.median, verdict.low, verdict.high, verdict.rounds, verdict.rounds >= FEWEST)


def coverage(rounds: int) -> float:
    """How often the median of all rounds that might have been lies between the least and the greatest of so many."""
    return 1 - 2 * 0.5**rounds


def _few(ratio: Interval) -> str:
    if ratio.rounds >= ENOUGH:
        return ""
    said = f"least to greatest of {ratio.rounds} round{'s' if ratio.rounds > 1 else ''}"
    return f"{said}, {coverage(ratio.rounds) * 100:.3g} % sure" if ratio.drawn else said


def _verdict(rule: str, arm: str, against: str, measure: str, asked: float, ratio: Interval | None, outcome: str,
             note: str) -> Verdict:
    median, low, high, rounds = (ratio.median, ratio.low, ratio.high, ratio.rounds) if ratio else (None, None, None, 0)
    return Verdict(rule, arm, against, measure, asked, median, low, high, rounds, outcome, note)
