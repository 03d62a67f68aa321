"""The report of a run as Markdown.

The report computes verdicts from the trials, so it always follows the rules that it states. Losses and undecided verdicts come
first, then the overview. A figure of an arm is the median of its trials; rates also have the lowest and the highest.
"""

import json
import shlex
import statistics
from collections import Counter
from collections.abc import Iterable

from . import accuracy, cache_rules, intervals, later_epoch, layouts, measures, overview, published, sharing, stats, text, trainer_rules
from .results import TIERS, UNBOUND, Arm, Bound, Cell, Environment, Results, Scenario, Verdict

RULES = {
    "plain": "rate to the fastest plain reader",
    "first": "rate of the first epoch to that of the fastest plain reader",
    "best": "rate to the best fixed split",
    "bytes": "wire bytes of the baseline to its own",
    "bound": "rate to the upper bound",
    "simulator": "simulated epoch to the measured epoch",
    "rival": "rate to a reader of ranges",
    "rival-cpu": "CPU seconds of the cheaper rival to its own",
    "download": "rate to a download of the whole object",
    "store-bytes": "bytes from the store of one job without a cache to those of all jobs",
    "jobs-cpu": "CPU seconds of one job without a cache to those of all jobs",
    "later-cpu": "CPU seconds of store and gateway in the first epoch to its own",
    "hit-cpu": "aim of CPU of store and gateway per hit to its own",
    "trainer-cpu": "samples per CPU second of the trainer to those of a loader of others",
    "link": "rate on the wire to that of the link",
    "hits": "hits per sample to the announced cached ratio",
    "repeat": "A/A",
}
MEASURES = {"seconds": "", "cpu": ", by CPU seconds", "wire": "", "store": "", "values": ""}
# Rules that name their measure.
CPU_RULES = ("rival-cpu", "jobs-cpu", "later-cpu", "hit-cpu", "trainer-cpu")
# Rules that do not compare with another arm.
ARMLESS_RULES = ("bound", "simulator", "hit-cpu")
COLUMNS = [
    "arm", "samples/s", "first epoch", "upper bound", "value bytes", "wire up", "wire down", "stall", "batch p50 / p99",
    "first batch",
    *(f"CPU s: {tier}" for tier in (*TIERS, "all")), *(f"peak memory: {tier}" for tier in TIERS),
]
# Titles and lines about arms that are ahead of the gateway's arm, by `measures.AHEAD_MEASURES`.
AHEAD = {
    "seconds": ("Faster than the gateway's arm", "`{name}` has {ratio} times the rate of `{arm}`"),
    "cpu": ("Less CPU than the gateway's arm", "`{arm}` uses {ratio} times the CPU seconds of `{name}`"),
    "first batch": ("Earlier first batch than the gateway's arm", "`{arm}` waits {ratio} times as long for it as `{name}`"),
}
SEVERITY = ("fail", "undecided", "void", "informational", "pass")


def _confidences() -> str:
    """The confidence of the range, by the number of rounds."""
    rounds = range(intervals.MIN_ROUNDS, intervals.MIN_BOOTSTRAP_ROUNDS)
    return ", ".join(f"{intervals.range_confidence(count) * 100:.3g} % with {count}" for count in rounds)


def _aims() -> str:
    """The aims of hits, by arm."""
    return ", ".join(f"`{name}` {seconds * 1000:g} ms" for name, seconds in cache_rules.MAX_CPU_SECONDS_PER_HIT.items())


READING = f"""Each round runs one trial of each arm. A ratio is taken round by round. The figure is the median; brackets are
the 95 % interval of its bootstrap ({intervals.DRAWS:,} draws). Above 1 is good for the judged arm. With fewer than
{intervals.MIN_BOOTSTRAP_ROUNDS} rounds the brackets are the range of the rounds: the median of all possible rounds lies in it
with probability 1 - 2 * 0.5^n, {_confidences()}. With fewer than {intervals.MIN_ROUNDS} rounds nothing is decided. An interval at
or above the requirement is a pass, one below it a fail, any other undecided.

A/A compares an arm with its repetition. It is a tie unless its whole interval is more than
{text.percent(stats.TIE_TOLERANCE)} from 1. An interval wider than {text.percent(stats.MAX_NOISE)} is noise, and undecided.
With noise, or with a difference that large, verdicts by the clock are void, and the ratio of the CPU seconds of store,
gateway and host is given as information. It decides nothing: a plan that keeps both sides busy finishes earlier but is not
cheaper, and two busy threads of one core need more CPU seconds for the same work. A verdict on an arm with failed samples is
void. A cell without A/A says nothing about noise, and has a note.

Requirements for `auto`: {stats.MIN_RATIO_TO_PLAIN} of the rate of the fastest plain reader, peers included;
{stats.MIN_RATIO_TO_BEST_FIXED} of the best fixed split of the same round; no more bytes on the wire than the baseline;
{stats.MIN_RATIO_TO_BOUND} of the upper bound, if the link is at most {stats.MAX_BOUND_LINK_RATIO} of the crossover and plain
reading is an arm. For tables: {stats.MIN_RATIO_TO_RANGES} of the rate of pyarrow, which reads ranges; {stats.MIN_CPU_RATIO}
of the CPU seconds of pyarrow or DuckDB, whichever needs less; {stats.MIN_RATIO_TO_DOWNLOAD:g} times the rate of a download
over at most 100 Mbit/s. Other rivals do the gateway's work in their own way and have no requirement.

Jobs that share values of a result cache are compared with one job without a cache in the same round: together they may receive
1.02 times its bytes from the store. The CPU seconds of four jobs have a requirement, which is printed and decides nothing. With
one job, a later epoch may need a tenth of the CPU seconds of store and gateway, where a model computes the features. A hit from
memory has an aim of CPU of store and gateway: {_aims()}. Values of tf.data
service are shared by its own cache; its trainers can skip samples and repeat others.

Data loaders of others that run as documented, `webdataset-pil` and `datasets`, deliver the same tensors as ours. Ours has to
deliver {trainer_rules.MIN_RATIO} times their samples per CPU second of the trainer, workers included, also if it reads plainly. All
are warm: their epochs include neither start nor listing. The table of layouts has rates of `auto`; those to loose objects are
from independent rounds.

A later epoch with all values in the memory of the result cache has to fill {cache_rules.MIN_LINK_RATIO} of a shaped link, by
bytes on the wire. Hits per sample have to reach {cache_rules.MIN_HITS_TO_ANNOUNCED} of the cached ratio that the gateway announced.

Only `auto`, `value-cache`, `resized` and arms that measure hits read several epochs: their samples/s are those of the later
epochs, with the first epoch in its own column. Other arms read one epoch; for loaders of others it includes the listing. The
first epoch of `auto`, in which it measures costs, is compared for information. Brackets after samples/s are the lowest and the
highest round. Bytes are per sample, those on the wire from the counters of the interface; CPU is per 1,000 samples. Both cover
all epochs, as does the time that the trainer waits (stall). The first batch of our reader includes program start, listing, and fetching or
loading weights; the clock of a peer starts after its imports and loading. A dash is a value that was not measured: an
external tier reports no CPU, except a gateway by its metrics, so there is no sum of all tiers.

The upper bound of a cell is an estimate. If a plan can mix `plain` and `pushed`, it comes from the planner's simulator, or
over slow links from the slowest of gateway, link and trainer, at the lowest CPU seconds and bytes per sample in any round of
these two arms. In other cells it is the slowest of store and gateway, link and host, each at its lowest cost in any round of
any arm, which is looser. An arm above the bound is marked. The bound does not apply to another layout or to local files. A
dash means incomplete costs."""


def markdown(results: Results, plots: Iterable[str] = ()) -> str:
    """The report. `plots` are addresses of pictures, relative to the report."""
    ran = [scenario for scenario in results.scenarios if scenario.cells]
    lines = ["# End to end", "", *_head(results), "", "## Losses and undecided verdicts", "", *_losses(results)]
    lines += overview.section(results)
    for plot in plots:
        lines += ["", f"![{plot.rsplit('/', 1)[-1].rsplit('.', 1)[0]}]({plot})"]
    for scenario in ran:
        lines += ["", *_scenario(scenario, results.environment)]
    return "\n".join([*lines, "", "## How to read it", "", READING, "", *_orientation(ran)]) + "\n"


def _head(results: Results) -> list[str]:
    environment: Environment = results.environment
    versions = ", ".join(f"{name} {version}" for name, version in environment.versions.items())
    changed = ", **with uncommitted changes**" if results.dirty else ""
    shaped = "shaped" + (", latency available" if environment.supports_latency else "")
    unshaped = f"**not shaped: {environment.shaping_error}. No figure applies to a limited link**"
    commands = " ".join(_command(environment, scenario.name) for scenario in results.scenarios)
    store = [f"- Store: {environment.store}, external"] if environment.store else []
    return [
        f"- Commit {results.commit}{changed}; {results.started_at}, {text.number(results.duration_seconds)} s",
        f"- Machine: {environment.cpu}, {text.count(environment.cores, 'core')}, {text.size(environment.memory_bytes)}, "
        f"{environment.kernel}, load average {' '.join(f'{load:.2f}' for load in environment.load_average)}",
        f"- Links: {shaped if environment.shaped else unshaped}",
        *store,
        f"- Versions: Python {environment.python}{', ' if versions else ''}{versions}",
        f"- Commands: {commands or '`make bench-e2e`'}",
    ]


def _command(environment: Environment, name: str) -> str:
    """The command that repeats a scenario."""
    if environment.flags:
        return f"`scripts/e2e.sh run {shlex.join([*environment.flags, name])}`"
    return f"`make bench-e2e SCENARIO={name}`"


def _losses(results: Results) -> list[str]:
    """Verdicts that are not passes, arms ahead of the gateway's, and failures."""
    cells = [(scenario, cell) for scenario in results.scenarios for cell in scenario.cells]
    verdicts = [(scenario, cell, verdict) for scenario, cell in cells for verdict in stats.verdicts(cell)]
    outcomes = Counter(verdict.outcome for *_, verdict in verdicts)
    counts = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in SEVERITY if outcomes[outcome])
    lines = [f"{text.count(len(verdicts), 'verdict')}: {counts}." if verdicts else "No cell has a verdict."]
    losses = [each for each in verdicts if each[2].outcome not in ("pass", "informational")]
    losses.sort(key=lambda each: SEVERITY.index(each[2].outcome))
    if losses:
        rows = [
            [f"**{verdict.outcome}**", scenario.name, cell.name, *judged(verdict)[:-2], verdict.note]
            for scenario, cell, verdict in losses
        ]
        lines += ["", *text.table(["outcome", "scenario", "cell", "verdict", "found", "required", "note"], rows)]
    for measure, (title, template) in AHEAD.items():
        ahead = [(scenario, cell, *each) for scenario, cell in cells for each in stats.arms_ahead(cell, measure).items()]
        lines += ["", f"{title}, by the whole interval:", ""] if ahead else []
        for scenario, cell, name, ratio in ahead:
            noise = f"; {stats.NOISE_NOTE}" if measure != "cpu" and stats.is_noisy(cell) else ""
            line = template.format(name=name, arm=stats.gateway_arm(cell), ratio=text.ratio(ratio))
            lines.append(f"- {scenario.name}, {cell.name}: {line}{noise}")
    samples = [(cell, name, stats.failed_samples(arm)) for _, cell in cells for name, arm in cell.arms.items()]
    failures = [(cell, name, count) for cell, name, count in samples if count]
    lines += [""] * bool(failures)
    lines += [f"- {cell.name}: `{name}` failed {text.count(failed, 'sample')}" for cell, name, failed in failures]
    failed = [scenario for scenario in results.scenarios if scenario.error]
    lines += [""] * bool(failed) + [f"- **{each.name} failed**: {' '.join(each.error.split())}" for each in failed]
    skipped = [each for each in results.scenarios if each.skip_reason or not (each.cells or each.error)]
    lines += [""] * bool(skipped)
    return lines + [f"- {each.name} was skipped: {each.skip_reason or 'it has no cells'}" for each in skipped]


def _scenario(scenario: Scenario, environment: Environment) -> list[str]:
    seconds = scenario.duration_seconds
    duration = "" if seconds is None else f"; took {text.seconds(seconds)}, set-up included"
    lines = [f"## {scenario.title}", "", _command(environment, scenario.name) + duration]
    if scenario.error or scenario.skip_reason:
        lines += ["", f"Incomplete: {' '.join((scenario.error or scenario.skip_reason).split())}"]
    lines += layouts.section(scenario.cells)
    for cell in scenario.cells:
        lines += ["", *_cell(cell)]
    settings = json.dumps(scenario.settings, indent=1, ensure_ascii=False)
    return lines + ["", "<details><summary>Settings</summary>", "", "```json", settings, "```", "", "</details>"]


def _cell(cell: Cell) -> list[str]:
    if cell.bound:
        bound = f"upper bound about {text.number(cell.bound.samples_per_second)} samples/s ({cell.bound.limited_by})"
    else:
        bound = f"upper bound: {text.NONE}"
    crossover = cell.crossover_bits_per_second
    crossover = "" if crossover is None else f"crossover at {text.rate(crossover)}"
    lines = [f"### {cell.name}", "", "; ".join(filter(None, [_link(cell), crossover, bound])) + ".", ""]
    lines += text.table(COLUMNS, [_arm(name, arm, cell.bound) for name, arm in cell.arms.items()])
    lines += accuracy.section(cell) + sharing.section(cell) + later_epoch.section(cell)
    verdicts = stats.verdicts(cell)
    if verdicts:
        rows = [judged(verdict) for verdict in verdicts]
        lines += ["", *text.table(["verdict", "found", "required", "outcome", "note"], rows)]
    lines += ["", *(f"- `{name}`: {arm.kind}; {arm.settings or 'no settings'}; {text.count(len(arm.trials), 'round')}"
                    for name, arm in cell.arms.items())]
    return lines + [f"- {note}" for note in [*_plain_readers(cell), *cell.notes]]


def _link(cell: Cell) -> str:
    requested, measured = cell.requested_bits_per_second, cell.measured_bits_per_second
    if requested is None and measured is None:
        return "open link"
    shown = "no rate" if requested is None else text.rate(requested)
    return f"link: {shown} requested, {'not' if measured is None else text.rate(measured)} measured"


def _plain_readers(cell: Cell) -> list[str]:
    """The candidates for the fastest plain reader, in cells with an arm that is judged against it."""
    plain, peers = ([f"`{name}`" for name in stats.arms_of_kind(cell, kind)] for kind in ("plain", "peer"))
    if not (stats.arms_of_kind(cell, "auto") and plain + peers):
        return []
    if not cell.qualifying:
        return [f"plain is the fastest of {', '.join(plain + peers)}" if peers else "no loader of others was tried as plain"]
    failed = lambda run: f", {text.count(run.errors, 'sample')} failed" if run.errors else ""
    rates = (f"`{name}` {text.number(run.samples_per_second)}{failed(run)}" for name, run in cell.qualifying.items())
    # Peers with rounds are named by the scenario, or qualified.
    joined = f"{' and '.join(peers)} read in every round, too" if peers else "no loader of others was about as fast"
    settings = [f"`{name}`, qualifying: {run.settings}" for name, run in cell.qualifying.items() if name not in cell.arms]
    return [f"plain: samples/s in one qualifying run each: {'; '.join(rates)}. {joined[0].upper()}{joined[1:]}", *settings]


def judged(verdict: Verdict) -> list[str]:
    """The columns of a verdict: what, found, required, outcome, note."""
    against = verdict.against
    if verdict.rule not in ARMLESS_RULES:
        against = " or ".join(f"`{name}`" for name in against.split(" or "))
    against = f" ({against})" if verdict.against else ""
    measure = MEASURES[verdict.measure] if verdict.rule not in CPU_RULES else ""
    what = f"`{verdict.arm}`: {RULES[verdict.rule]}{against}{measure}"
    return [what, text.ratio(stats.interval_of(verdict)), required(verdict), f"**{verdict.outcome}**", verdict.note]


def required(verdict: Verdict) -> str:
    """The requirement of a verdict."""
    both = f"{verdict.required:g} to {2 - verdict.required:g}"
    return {"repeat": "a tie", "simulator": both, "first": text.NONE}.get(verdict.rule, f"{verdict.required:.3g}")


def _arm(name: str, arm: Arm, bound: Bound | None) -> list[str]:
    """A row of the table."""
    median = lambda get: measures.median_of(arm, get)
    rates = [1 / measures.seconds_per_sample(trial) for trial in arm.trials if trial.samples]
    rate = statistics.median(rates) if rates else None
    spread = f" ({text.number(min(rates))} to {text.number(max(rates))})" if len(rates) > 1 else ""
    first = median(lambda trial: trial.samples / trial.epoch_seconds[0] if len(trial.epoch_seconds) > 1 else None)
    per_sample = lambda get: median(lambda trial: _over(get(trial), measures.samples_read(trial)))
    cpu = [per_sample(lambda trial, tier=tier: trial.cpu_seconds.get(tier)) for tier in TIERS]
    cpu.append(median(lambda trial: measures.cpu_seconds_per_sample(trial) or None))
    waits = [median(lambda trial: trial.batch_wait_p50_seconds), median(lambda trial: trial.batch_wait_p99_seconds)]
    of_bound = text.NONE
    if bound and rate and arm.kind not in UNBOUND:
        above = "**above it**: " if rate > bound.samples_per_second else ""
        share = text.percent(rate / bound.samples_per_second)
        of_bound = f"{above}{share} of {text.number(bound.samples_per_second)}, {bound.limited_by}"
    return [
        f"`{name}`", text.number(rate) + spread, text.number(first), of_bound,
        text.size(per_sample(lambda trial: trial.value_bytes)),
        text.size(per_sample(lambda trial: trial.wire_up_bytes)),
        text.size(per_sample(lambda trial: trial.wire_down_bytes)),
        text.percent(median(lambda trial: _over(trial.stall_seconds, sum(trial.epoch_seconds)))),
        text.NONE if waits == [None, None] else " / ".join(map(text.seconds, waits)),
        text.seconds(median(lambda trial: trial.first_batch_seconds)),
        *(text.number(None if each is None else each * 1000) for each in cpu),
        *(text.size(median(lambda trial, tier=tier: trial.peak_bytes.get(tier))) for tier in TIERS),
    ]


def _over(part: float | None, whole: float) -> float | None:
    return None if part is None or whole == 0 else part / whole


def _orientation(scenarios: list[Scenario]) -> list[str]:
    """Published results of others next to photos over links, for which x is the bandwidth."""
    photos = [scenario for scenario in scenarios if scenario.settings.get("kind") == "read"]
    cells = [cell for scenario in photos for cell in scenario.cells if cell.x is not None]
    speedups = [(cell, stats.speedup(cell, name)) for cell in cells for name in stats.arms_of_kind(cell, "auto")]
    rows = [[cell.name, text.ratio(ratio)] for cell, ratio in speedups if ratio is not None]
    if not rows:
        return []
    ours = text.table(["this run", "`auto` to the fastest plain reader"], rows)
    return ["## For orientation", "", published.ABOUT, "", *published.table(), "", *ours, ""]
