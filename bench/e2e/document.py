"""docs/BENCHMARKS.md: the tables and figures of one recorded run, with the method and the command of each section.

`make benchmarks-doc` writes the page. A test of the harness compares the committed page with what this module writes, so a figure
on it always comes from the recorded run.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import accuracy, intervals, later_epoch, layouts, measures, overview, plots, published, report, sharing, stats, text
from .results import Arm, Cell, Results, Scenario, Trial, Verdict

# The figures of the page, by file name, with their captions.
FIGURES = {
    "speedup": "Speedup of `auto` and of the best fixed split over the fastest plain reader, by link bandwidth",
    "wire-features-100mbit": "Bytes on the wire per sample over 100 Mbit/s",
    "cpu-features-100mbit": "CPU seconds per 1,000 samples over 100 Mbit/s",
    "jobs": "Cost of jobs on one data set, relative to one job without a result cache",
}
BREAKDOWN = "features-100mbit"
FIGURES_OF_KINDS = {"sharing": "jobs"}
ARM_COLUMNS = [
    "cell", "arm", "samples/s", "rate to baseline", "wire bytes per sample", "CPU s per 1,000 samples", "first batch",
    "peak memory of the reader",
]
MEASURES = {"seconds": "rate", "cpu": "CPU seconds", "first batch": "first batch"}
RULES = {
    "plain": "`auto`: rate to the fastest plain reader",
    "best": "`auto`: rate to the best fixed split",
    "bytes": "`auto`: wire bytes of plain reading to its own",
    "bound": "`auto`: rate to the upper bound",
    "rival": "`auto`, tables: rate to pyarrow",
    "rival-cpu": "`auto`, tables: CPU seconds of pyarrow or DuckDB to its own",
    "download": "`auto`, tables: rate to a download of the whole object",
    "simulator": "planner's simulator: epoch to the measured epoch",
    "repeat": "A/A: an arm against a repetition of itself",
    "first": "`auto`: rate of its first epoch to the fastest plain reader",
    "store-bytes": "jobs that share values: bytes from the store of one job without a cache to those of all jobs",
    "jobs-cpu": "jobs that share values: CPU seconds of one job without a cache to those of all jobs",
    "later-cpu": "jobs that share values: CPU seconds of store and gateway in the first epoch to those in a later one",
    "hit-cpu": "hits: aim of CPU of store and gateway per hit to its own",
    "trainer-cpu": "samples per CPU second of the trainer to those of a loader of others as documented",
    "link": "later epoch from memory: rate on the wire to that of the link",
    "hits": "later epoch: hits per sample to the announced cached ratio",
}
# Sections of kinds whose arms fill one table: title, method, and what one sample is.
KINDS = {
    "layouts": ("Tar shards and image columns", "The same photos as loose objects, as tar shards with a saved index, and in an image "
                "column of Parquet, read into the same tensors by `pushdown.torch.Loader` and by loaders of others as documented: "
                "`webdataset-pil` is WebDataset with `decode(\"pil\")`, `datasets` that of Hugging Face. All are warm."),
    "forward": ("Forwarding", "Plain GETs of one object size over 8 connections: from the store, through the gateway, and "
                "through nginx (`proxy_pass`, one worker). One sample is one GET."),
    "tenants": ("Tenants", "Concurrent jobs, each with the keys of another tenant, read the same photos. The time runs from the "
                "first start to the last end."),
    "sharing": ("Jobs on one data set", "Concurrent jobs read the same photos through one gateway, without a result cache, with one "
                "in memory, and on a disk. `one` is one job without a cache. The time is that of the slowest job."),
    "second-epoch": ("Second epoch", "One job reads a later epoch over a link, with all values, or a part of them, in the memory of "
                     "the result cache."),
    "growth": ("Key counts and connection counts", "Listing a prefix and reading its first samples; GETs over a growing number "
               "of connections. One sample is one object."),
    "transfer": ("Transfer learning", "One process reads labelled photos by every method in turn and trains a classifier head on "
                 "frozen features (`examples/transfer-learning`)."),
}

HEAD = """# Benchmarks

`make benchmarks-doc` generates this page from one recorded run, [figures/e2e.json](figures/e2e.json); do not edit it.
[bench/README.md](../bench/README.md#end-to-end) documents the method and how to add a scenario.
`scripts/e2e.sh compare docs/figures/e2e.json YOURS.json` compares a run of yours with this one. `make bench` and
`make bench-memory` measure operators, forwarding and memory on your machine; this page has no figures of theirs."""

READING = """## How to read it

- Each arm runs once per round, and arms alternate. A ratio is the median of the rounds' ratios, with its interval in brackets.
  Above 1 is good for the arm that is judged.
- `plain` reads the stored objects and runs the pipeline on the host. `pushed` runs the pipeline at the gateway. `auto` lets the
  planner choose for each object. The [table of arms](../bench/README.md#arms) lists the others.
- `B` is the crossover bandwidth: over a faster link plain reading is limited by the host, over a slower one by the link.
- `*` marks a cell whose A/A test exceeds the noise limit; its times decide nothing."""

ABOUT_VERDICTS = """Verdicts compare the whole interval with the required ratio
([rules](../bench/README.md#verdicts)). An informational ratio has no requirement."""

ABOUT_AHEAD = """Arms that need less than the arm of the gateway, by the whole interval, whether or not a rule compares them. The
ratio is how much more the gateway's arm needs."""

ABOUT_PHOTOS = """Seconds of one epoch, medians of the rounds; for `auto` the second epoch. The cell with the smallest margin
comes first. The fastest plain reader is our own or the fastest of boto3, s3torchconnector and WebDataset."""

ABOUT_ARMS = """All arms of these cells. The baseline is `plain`, or the first arm where a cell has no `plain`. CPU is the sum of
store, gateway and host; a dash is a value that was not measured."""

ABOUT_TABLES = """A projection and a filter of TPC-H's `lineitem` at scale 1, read once per round by processes that are already
warm. CPU is gateway plus reader; bytes count both directions. Each cell has three columns."""

ABOUT_SIMULATOR = """The planner's simulator predicts an epoch from the costs of the same round. A verdict requires it within
15 % of the measured epoch."""


def write(results: Results, source: Path, page: Path) -> list[Path]:
    """Writes the page, and its figures as SVG into the folder of the recorded run. Returns the files."""
    drawn = plots.draw(results, source.parent, FIGURES, ("svg",))
    addresses = {path.stem: str(path.relative_to(page.parent)) for path in drawn}
    page.write_text(markdown(results, addresses), encoding="utf-8")
    return [page, *drawn]


def markdown(results: Results, figures: dict[str, str]) -> str:
    """The page; `figures` are the addresses of the figures by name, relative to the page."""
    lines = [HEAD, "", *_environment(results), "", READING, *_verdicts(results)]
    lines += _photos(results, figures)
    lines += _tables(results)
    for kind, (title, about) in KINDS.items():
        lines += _kind(results, figures, kind, title, about)
    lines += _simulator(results)
    return "\n".join([*lines, *_orientation(results)]) + "\n"


def _environment(results: Results) -> list[str]:
    environment = results.environment
    rounds = sorted({scenario.settings["rounds"] for scenario in results.scenarios if "rounds" in scenario.settings})
    rows = [
        ["command", "`make bench-e2e`, as root"],
        ["commit", results.commit + (", with uncommitted changes" if results.dirty else "")],
        ["started", results.started_at],
        ["duration", f"{text.number(results.duration_seconds / 60)} minutes"],
        ["machine", f"{environment.cpu}, {text.count(environment.cores, 'core')}, {text.size(environment.memory_bytes)}"],
        ["kernel", "Linux " + re.sub("-[^,]*", "", environment.kernel)],
        ["rounds", ", ".join(map(str, rounds))],
        ["versions", ", ".join(f"{name} {version}" for name, version in {"Python": environment.python, **environment.versions}.items())],
    ]
    return text.table(["run", ""], rows)


def _verdicts(results: Results) -> list[str]:
    cells = [(scenario, cell) for scenario in results.scenarios for cell in scenario.cells]
    verdicts = [(scenario, cell, verdict) for scenario, cell in cells for verdict in stats.verdicts(cell)]
    lines = ["", "## Losses and undecided verdicts", "", ABOUT_VERDICTS, "", *_outcomes([verdict for *_, verdict in verdicts])]
    not_passed = [each for each in verdicts if each[2].outcome in report.SEVERITY[:3]]
    not_passed.sort(key=lambda each: report.SEVERITY.index(each[2].outcome))
    if not_passed:
        rows = [_open(scenario, cell, verdict) for scenario, cell, verdict in not_passed]
        lines += ["", *text.table(["outcome", "scenario", "cell", "verdict", "found", "required"], rows)]
    ahead = {measure: list(_ahead(cells, measure)) for measure in MEASURES}
    if any(ahead.values()):
        lines += ["", ABOUT_AHEAD]
    for measure, rows in ahead.items():
        title = f"{MEASURES[measure]}: {text.count(len(rows), 'arm')} ahead"
        lines += _folded(title, text.table(["scenario", "cell", "arm", "gateway's arm", "ratio"], rows)) if rows else []
    return lines


def _outcomes(verdicts: Sequence[Verdict]) -> list[str]:
    """How many verdicts each rule has, by outcome."""
    counts = Counter((verdict.rule, verdict.outcome) for verdict in verdicts)
    by_rule = {verdict.rule: verdict for verdict in verdicts}
    shown = lambda rule, outcome: str(counts[rule, outcome] or text.NONE)
    rows = [
        [name, report.required(by_rule[rule]), *(shown(rule, outcome) for outcome in report.SEVERITY)]
        for rule, name in RULES.items() if rule in by_rule
    ]
    rows.append(["all", "", *(str(sum(verdict.outcome == outcome for verdict in verdicts)) for outcome in report.SEVERITY)])
    return text.table(["rule", "required", *report.SEVERITY], rows)


def _open(scenario: Scenario, cell: Cell, verdict: Verdict) -> list[str]:
    what, found, required, *_ = report.judged(verdict)
    return [f"**{verdict.outcome}**", scenario.name, cell.name, what, found, required]


def _ahead(cells: Sequence[tuple[Scenario, Cell]], measure: str) -> Iterator[list[str]]:
    for scenario, cell in cells:
        star = "*" if measure != "cpu" and stats.is_noisy(cell) else ""
        for name, ratio in stats.arms_ahead(cell, measure).items():
            yield [scenario.name, cell.name, f"`{name}`", f"`{stats.gateway_arm(cell)}`", text.ratio(ratio) + star]


def _photos(results: Results, figures: dict[str, str]) -> list[str]:
    scenarios = _of_kind(results, "read")
    if not scenarios:
        return []
    cells = [cell for scenario in scenarios for cell in scenario.cells]
    lines = ["", "## Photos", "", ABOUT_PHOTOS, "", _command(scenarios), ""]
    lines += [*_figure(figures, "speedup"), *text.table(overview.PHOTOS, overview.photos(cells))]
    if any(scenario.name == BREAKDOWN for scenario in scenarios):
        lines += ["", "Bytes and CPU by tier:", "", f"`make bench-e2e SCENARIO={BREAKDOWN}`", ""]
        lines += [line for name in FIGURES if name.endswith(BREAKDOWN) for line in _figure(figures, name)]
    lines += [*([] if lines[-1] == "" else [""]), ABOUT_ARMS]
    return lines + _folded("All arms", _arms(cells))


def _tables(results: Results) -> list[str]:
    scenarios = _of_kind(results, "table")
    if not scenarios:
        return []
    cells = [cell for scenario in scenarios for cell in scenario.cells]
    columns = ["arm", *overview.table_columns(cells)]
    return ["", "## Tables", "", ABOUT_TABLES, "", _command(scenarios), "", *text.table(columns, overview.tables(cells))]


def _kind(results: Results, figures: dict[str, str], kind: str, title: str, about: str) -> list[str]:
    scenarios = _of_kind(results, kind)
    if not scenarios:
        return []
    cells = [cell for scenario in scenarios for cell in scenario.cells]
    lines = ["", f"## {title}", "", about, "", _command(scenarios), ""]
    lines += [*_figure(figures, FIGURES_OF_KINDS.get(kind, "")), *_arms(cells), *layouts.section(cells)]
    for cell in cells:
        section = accuracy.section(cell) + sharing.section(cell) + later_epoch.section(cell)
        lines += ["", f"{cell.name}:", *section] if section else []
    return lines


def _simulator(results: Results) -> list[str]:
    rows = [
        [scenario.name, cell.name, f"`{verdict.arm}`", text.ratio(stats.interval_of(verdict)), verdict.outcome]
        for scenario in results.scenarios for cell in scenario.cells for verdict in stats.verdicts(cell)
        if verdict.rule == "simulator"
    ]
    if not rows:
        return []
    columns = ["scenario", "cell", "arm", "simulated epoch to measured epoch", "outcome"]
    lines = ["", "## Planner's simulator", "", ABOUT_SIMULATOR, "", "`make bench-e2e`"]
    return lines + _folded(text.count(len(rows), "comparison"), text.table(columns, rows))


def _orientation(results: Results) -> list[str]:
    if not _of_kind(results, "read"):
        return []
    source = "[logs of its authors](../bench/README.md#hapis-curve)"
    about = f"HAPI, from the {source}: other models, machines and GPUs, so not a comparison."
    return ["", "## For orientation", "", about, "", *published.table()]


def _of_kind(results: Results, kind: str) -> list[Scenario]:
    return [scenario for scenario in results.scenarios if scenario.settings.get("kind") == kind and scenario.cells]


def _command(scenarios: Sequence[Scenario]) -> str:
    names = " ".join(scenario.name for scenario in scenarios)
    return f"`make bench-e2e SCENARIO={shlex.quote(names) if len(scenarios) == 1 else chr(34) + names + chr(34)}`"


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    """A section that the reader opens."""
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _figure(figures: dict[str, str], name: str) -> list[str]:
    return [f"![{FIGURES[name]}]({figures[name]})", ""] if name in figures else []


def _arms(cells: Sequence[Cell]) -> list[str]:
    """A row for each arm of each cell, without the repetitions of the A/A tests."""
    rows = [_arm(cell, name, arm) for cell in cells for name, arm in cell.arms.items() if arm.trials and arm.kind != "repeat"]
    return text.table(ARM_COLUMNS, rows)


def _arm(cell: Cell, name: str, arm: Arm) -> list[str]:
    median = lambda get: measures.median_of(arm, get)
    took = median(measures.seconds_per_sample)
    baseline = cell.arms[cell.baseline]
    ratio = None
    if name != cell.baseline and not stats.failed_samples(arm) and not stats.failed_samples(baseline):
        ratio = intervals.paired(*(measures.measurements(each, measures.seconds_per_sample) for each in (baseline, arm)))
    star = "*" if ratio is not None and stats.is_noisy(cell) else ""
    lost = f", {stats.failed_samples(arm)} failed" if stats.failed_samples(arm) else ""
    return [
        cell.name, f"`{name}`", text.number(1 / took if took else None) + lost, text.ratio(ratio) + star,
        text.size(median(_positive(measures.wire_bytes_per_sample))),
        text.number(_thousand(median(_positive(measures.cpu_seconds_per_sample)))),
        text.seconds(median(lambda trial: trial.first_batch_seconds)),
        text.size(median(lambda trial: trial.peak_bytes.get("host"))),
    ]


def _positive(get: Callable[[Trial], float]) -> Callable[[Trial], float | None]:
    """The measure, with None in place of the 0 that stands for *not measured*."""
    return lambda trial: get(trial) or None


def _thousand(value: float | None) -> float | None:
    return None if value is None else 1000 * value
