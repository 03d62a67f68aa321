"""The report of a run as Markdown.

Verdicts are made anew from the turns, so that every report goes by the rules that it states. What is lost or cannot be decided
comes first, behind it all of it at a glance. Each figure of an arm is the median of its turns, beside its rate the least and
the greatest of them.
"""

import json
import shlex
import statistics
from collections import Counter
from collections.abc import Iterable

from . import accuracy, glance, published, stats, text
from .results import TIERS, UNBOUND, Arm, Bound, Cell, Environment, Results, Scenario, Verdict

ASKED = {
    "plain": "rate to the fastest plain arm",
    "first": "rate of the first epoch to that of the fastest plain arm",
    "best": "rate to the best of the fixed arms",
    "bytes": "wire bytes of the baseline to its own",
    "bound": "rate to the bound",
    "simulator": "the simulator's epoch to that of the clock",
    "rival": "rate to who reads ranges of its own",
    "rival-cpu": "CPU seconds of the sparer rival to its own",
    "download": "rate to downloading all of it",
    "again": "A/A",
}
MEASURED = {"seconds": "", "cpu": ", by CPU seconds", "wire": ""}
COLUMNS = [
    "arm", "samples/s", "first epoch", "bound", "value bytes", "wire up", "wire down", "stall", "batch p50 / p99", "first batch",
    *(f"CPU s: {tier}" for tier in (*TIERS, "all")), *(f"peak memory: {tier}" for tier in TIERS),
]
# What is said of who is ahead of ours, by `stats.AHEAD`.
AHEAD = {
    "seconds": ("Faster than ours", "`{name}` is {by} times as fast as `{mine}`"),
    "cpu": ("Sparer with CPU seconds than ours", "`{mine}` takes {by} times those of `{name}`"),
    "first batch": ("Sooner with the first batch than ours", "`{mine}` waits {by} times as long for it as `{name}`"),
}
SEVERITY = ("fail", "undecided", "void", "given", "pass")


def _sure() -> str:
    """How sure few rounds are."""
    each = [f"{stats.coverage(rounds) * 100:.3g} % with {rounds}" for rounds in range(stats.FEWEST, stats.ENOUGH)]
    return ", ".join(each)


READING = f"""Each arm has its turn in every round. A ratio is taken round by round; the figure is the median, in brackets is the
95 % interval of its bootstrap ({stats.DRAWS:,} draws), and above 1 is good for the arm that is judged. With fewer than
{stats.ENOUGH} rounds these brackets are no 95 % interval but the least to the greatest round: the median that any number of rounds
would have lies between them in 1 - 2 * 0.5^n of the cases, {_sure()}, as notes say. With fewer
than {stats.FEWEST} rounds nothing is decided. An interval at or above what
is asked is a pass, one below it a fail, any other undecided. A/A is the baseline, or another arm that is named, against itself, and a tie
unless its whole interval is more than {text.percent(stats.TIE)} from 1. Where it is wider than {text.percent(stats.NOISE)} that is noise, and
undecided whatever side it lies on; verdicts by the clock are void then, as where it is as far from 1, and the ratio of CPU seconds of store, gateway and host
together is given, which decides nothing: a plan that keeps both sides busy is sooner done, not cheaper, and two busy threads of
one core take more CPU seconds for the same work. A verdict on an
arm that failed samples is void. Where a cell has no A/A nothing tells how calm the clock was, and a note says so.

Asked of `auto`: {stats.PLAIN} of the rate of the fastest arm that reads plainly, peers included; {stats.BEST} of the best of
the fixed arms, plain, pushed and split at a step, of the same round; no more bytes on the wire than the baseline; {stats.BOUND} of
the bound where the link is at most {stats.THIN} of the crossover and plain reading is an arm. Of a
table: {stats.RANGES} of the rate of pyarrow, which reads ranges of its own; {stats.SPARER} of the CPU seconds of the sparer of pyarrow
and DuckDB; {stats.DOWNLOAD:g} times the rate of a download over at most 100 Mbit/s. Other rivals do what the gateway does in their own
way, and nothing is asked against them.

Only `auto`, `kept` and `resized` read several epochs: their samples/s are those of the later ones, the first beside them. Other
arms read one, and theirs are of that one, which for loaders of others has the listing in it. The first epoch of `auto`, in
which it finds out what samples cost, is held against it, too, but nothing is asked of that. In brackets behind samples/s are
the least and the greatest round. Bytes are per sample, those of the wire by the counters of the interface; CPU is per 1,000
samples. Both are of all epochs, and so is the time that the trainer waits (stall). The first batch of our reader has the
program's start before it, listing, and weights that had to be fetched or loaded; the clock of a peer starts once it has imported
and loaded what it needs. A dash is what was not measured: of a store or a gateway elsewhere no CPU but what it tells itself, so
that there is no sum of all tiers either.

The bound that a cell should not beat is an estimate. Where a plan may mix `plain` and `pushed` it is by the planner's simulator, or
over thin links the slowest of gateway, link and trainer, from the least CPU seconds and bytes that a sample took in any round of
these two. Elsewhere it is the slowest of store and gateway, link and host, each by the least that a sample took of it in any round of
any arm, which is further away. An arm that takes less than that is above it, and shown so; of an arm that reads another layout, or
local files, it says nothing. A dash is where nothing whole tells."""


def markdown(results: Results, plots: Iterable[str] = ()) -> str:
    """The report; `plots` are addresses of pictures, relative to where it will be."""
    ran = [scenario for scenario in results.scenarios if scenario.cells]
    lines = ["# End to end", "", *_head(results), "", "## What we lose or cannot decide", "", *_lost(results)]
    lines += glance.section(results)
    for plot in plots:
        lines += ["", f"![{plot.rsplit('/', 1)[-1].rsplit('.', 1)[0]}]({plot})"]
    for scenario in ran:
        lines += ["", *_scenario(scenario, results.environment)]
    return "\n".join([*lines, "", "## How to read it", "", READING, "", *_orientation(ran)]) + "\n"


def _head(results: Results) -> list[str]:
    found: Environment = results.environment
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    changed = ", **with changes that are not committed**" if results.dirty else ""
    shaped = "shaped" + (", and may have latency" if found.latency else "") if found.shaped else (
        f"**not shaped: {found.why_not_shaped}. No figure here is one of a link**")
    again = " ".join(_again(found, scenario.name) for scenario in results.scenarios)
    store = [f"- Store: {found.store}, which ran already"] if found.store else []
    return [
        f"- Commit {results.commit}{changed}; {results.started}, {text.number(results.seconds)} s",
        f"- Machine: {found.cpu}, {text.count(found.cores, 'core')}, {text.size(found.memory_bytes)}, {found.kernel}, load "
        f"average {' '.join(f'{load:.2f}' for load in found.load_average)}",
        f"- Links: {shaped}",
        *store,
        f"- Versions: Python {found.python}{', ' if versions else ''}{versions}",
        f"- To run it again: {again or '`make bench-e2e`'}",
    ]


def _again(environment: Environment, name: str) -> str:
    """The command that runs a scenario once more, as it was."""
    if environment.flags:
        return f"`scripts/e2e.sh run {shlex.join([*environment.flags, name])}`"
    return f"`make bench-e2e SCENARIO={name}`"


def _lost(results: Results) -> list[str]:
    """What a reader has to know first."""
    cells = [(scenario, cell) for scenario in results.scenarios for cell in scenario.cells]
    found = [(scenario, cell, verdict) for scenario, cell in cells for verdict in stats.verdicts(cell)]
    outcomes = Counter(verdict.outcome for _, _, verdict in found)
    said = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in SEVERITY if outcomes[outcome])
    lines = [f"{text.count(len(found), 'verdict')}: {said}." if found else "No cell has a verdict."]
    bad = [each for each in found if each[2].outcome not in ("pass", "given")]
    bad.sort(key=lambda each: SEVERITY.index(each[2].outcome))
    if bad:
        rows = [[f"**{each.outcome}**", scenario.name, cell.name, *judged(each)[:-2], each.note] for scenario, cell, each in bad]
        lines += ["", *text.table(["outcome", "scenario", "cell", "verdict", "found", "asked", "note"], rows)]
    for measure, (title, said) in AHEAD.items():
        slow = [(scenario, cell, *each) for scenario, cell in cells for each in stats.ahead(cell, measure).items()]
        lines += ["", f"{title} by its whole interval, a verdict or not:", ""] if slow else []
        for scenario, cell, name, by in slow:
            noisy = f"; {stats.NOISY}" if measure != "cpu" and stats.noisy(cell) else ""
            told = said.format(name=name, mine=stats.ours(cell), by=text.ratio(by))
            lines.append(f"- {scenario.name}, {cell.name}: {told}{noisy}")
    lost = [(cell, name, stats.failed(arm)) for _, cell in cells for name, arm in cell.arms.items() if stats.failed(arm)]
    lines += [""] * bool(lost) + [f"- {cell.name}: `{name}` failed {text.count(failed, 'sample')}" for cell, name, failed in lost]
    broke = [scenario for scenario in results.scenarios if scenario.broke]
    lines += [""] * bool(broke) + [f"- **{each.name} broke**: {' '.join(each.broke.split())}" for each in broke]
    skipped = [each for each in results.scenarios if each.skipped or not (each.cells or each.broke)]
    lines += [""] * bool(skipped)
    return lines + [f"- {each.name} was skipped: {each.skipped or 'it has no cells'}" for each in skipped]


def _scenario(scenario: Scenario, environment: Environment) -> list[str]:
    took = f"; took {text.seconds(scenario.seconds)}, set-up included" if scenario.seconds is not None else ""
    lines = [f"## {scenario.title}", "", _again(environment, scenario.name) + took]
    if scenario.broke or scenario.skipped:
        lines += ["", f"Not whole: {' '.join((scenario.broke or scenario.skipped).split())}"]
    for cell in scenario.cells:
        lines += ["", *_cell(cell)]
    settings = json.dumps(scenario.settings, indent=1, ensure_ascii=False)
    return lines + ["", "<details><summary>Settings</summary>", "", "```json", settings, "```", "", "</details>"]


def _cell(cell: Cell) -> list[str]:
    rate = text.number(cell.bound.samples_per_second) if cell.bound else ""
    bound = f"cannot beat about {rate} samples/s ({cell.bound.by})" if cell.bound else f"bound: {text.NONE}"
    if cell.asked_link_bits is None and cell.link_bits is None:
        link = "open link"
    else:
        asked = "no rate" if cell.asked_link_bits is None else text.rate(cell.asked_link_bits)
        measured = "not" if cell.link_bits is None else text.rate(cell.link_bits)
        link = f"link: {asked} asked, {measured} measured"
    crossover = "" if cell.crossover_bits is None else f"crossover at {text.rate(cell.crossover_bits)}"
    lines = [f"### {cell.name}", "", "; ".join(filter(None, [link, crossover, bound])) + ".", ""]
    lines += text.table(COLUMNS, [_arm(name, arm, cell.bound) for name, arm in cell.arms.items()])
    lines += accuracy.section(cell)
    found = stats.verdicts(cell)
    if found:
        rows = [judged(verdict) for verdict in found]
        lines += ["", *text.table(["verdict", "found", "asked", "outcome", "note"], rows)]
    lines += ["", *(f"- `{name}`: {arm.kind}; {arm.settings or 'no settings'}; {text.count(len(arm.turns), 'round')}"
                    for name, arm in cell.arms.items())]
    return lines + [f"- {note}" for note in [*_tried(cell), *cell.notes]]


def _tried(cell: Cell) -> list[str]:
    """Of which arms the fastest plain one is, where one is judged against it."""
    plain, peers = ([f"`{name}`" for name in stats.of_kind(cell, kind)] for kind in ("plain", "peer"))
    if not (stats.of_kind(cell, "auto") and plain + peers):
        return []
    if not cell.heats:
        return [f"plain is the fastest of {', '.join(plain + peers)}" if peers else "no loader of others was tried as plain"]
    # Who reads from the store in each round was named, or was the fastest of others in the heats.
    rates = (f"`{name}` {text.number(heat.samples_per_second)}" + (f", {text.count(heat.errors, 'sample')} failed" if heat.errors else "")
             for name, heat in cell.heats.items())
    went_on = f"{' and '.join(peers)} read in every round beside it" if peers else "no loader of others was about as fast"
    settings = [f"`{name}`, in its heat: {heat.settings}" for name, heat in cell.heats.items() if name not in cell.arms]
    return [f"plain: samples/s in one turn each before the rounds: {'; '.join(rates)}. {went_on[0].upper()}{went_on[1:]}", *settings]


def judged(verdict: Verdict) -> list[str]:
    """The columns of a verdict: what, found, asked, outcome, note."""
    against = verdict.against if verdict.rule in ("bound", "simulator") else " or ".join(f"`{name}`" for name in verdict.against.split(" or "))
    against = f" ({against})" if verdict.against else ""
    measured = MEASURED[verdict.measure] if verdict.rule != "rival-cpu" else ""
    what = f"`{verdict.arm}`: {ASKED[verdict.rule]}{against}{measured}"
    within = f"{verdict.asked:g} to {2 - verdict.asked:g}"
    asked = {"again": "a tie", "simulator": within, "first": text.NONE}.get(verdict.rule, f"{verdict.asked:g}")
    return [what, text.ratio(stats.interval_of(verdict)), asked, f"**{verdict.outcome}**", verdict.note]


def _arm(name: str, arm: Arm, bound: Bound | None) -> list[str]:
    """A row of the table."""
    median = lambda each: stats.middle(arm, each)
    rates = [1 / stats.seconds(turn) for turn in arm.turns if turn.samples]
    rate = statistics.median(rates) if rates else None
    spread = f" ({text.number(min(rates))} to {text.number(max(rates))})" if len(rates) > 1 else ""
    first = median(lambda turn: turn.samples / turn.seconds[0] if len(turn.seconds) > 1 else None)
    per_sample = lambda get: median(lambda turn: _over(get(turn), stats.read(turn)))
    cpu = [per_sample(lambda turn, tier=tier: turn.cpu.get(tier)) for tier in TIERS]
    cpu.append(median(lambda turn: stats.cpu(turn) or None))
    waits = [median(lambda turn: turn.batch_wait_p50_seconds), median(lambda turn: turn.batch_wait_p99_seconds)]
    of_bound = text.NONE
    if bound and rate and arm.kind not in UNBOUND:
        above = "**above it**: " if rate > bound.samples_per_second else ""
        of_bound = f"{above}{text.percent(rate / bound.samples_per_second)} of {text.number(bound.samples_per_second)}, {bound.by}"
    return [
        f"`{name}`", text.number(rate) + spread, text.number(first), of_bound,
        text.size(per_sample(lambda turn: turn.value_bytes)),
        text.size(per_sample(lambda turn: turn.wire_up)),
        text.size(per_sample(lambda turn: turn.wire_down)),
        text.percent(median(lambda turn: _over(turn.stall_seconds, sum(turn.seconds)))),
        text.NONE if waits == [None, None] else " / ".join(map(text.seconds, waits)),
        text.seconds(median(lambda turn: turn.first_batch_seconds)),
        *(text.number(None if each is None else each * 1000) for each in cpu),
        *(text.size(median(lambda turn, tier=tier: turn.peak_bytes.get(tier))) for tier in TIERS),
    ]


def _over(part: float | None, whole: float) -> float | None:
    return None if part is None or whole == 0 else part / whole


def _orientation(scenarios: list[Scenario]) -> list[str]:
    """What others published, beside ours: photos over links, of which x is the width."""
    photos = [scenario for scenario in scenarios if scenario.settings.get("kind") == "read"]
    cells = [cell for scenario in photos for cell in scenario.cells if cell.x is not None]
    found = [(cell, stats.speedup(cell, name)) for cell in cells for name in stats.of_kind(cell, "auto")]
    rows = [[cell.name, text.ratio(ratio)] for cell, ratio in found if ratio is not None]
    if not rows:
        return []
    ours = text.table(["here", "`auto` to the fastest plain arm"], rows)
    return ["## For orientation", "", published.ABOUT, "", *published.table(), "", *ours, ""]
