"""The report of a run as Markdown: one page with the speed-up of each cell and the targets, and a section for each kind of scenario.

`make bench-e2e` writes all of it into one file. docs/BENCHMARKS.md is the first page of a recorded run, and docs/benchmarks has its
sections: `make benchmarks-doc` writes them, and a test compares the committed pages with what this module writes. Everything is
computed from the trials.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from . import comparisons, plots, published, text, trials
from .comparisons import AHEAD, Comparison
from .results import ORIGINS, TIERS, UNBOUND, Cell, Environment, Results, Scenario

Show = Callable[[float | None], str]
Columns = dict[str, tuple[str, Show]]
Compared = Sequence[tuple[Scenario, Cell, list[Comparison]]]

HEAD = """# Benchmarks

`make benchmarks-doc` writes this page and the pages of its sections from one recorded run, [{source}]({source}).
[bench/README.md](../bench/README.md#end-to-end) documents the method, the arms and the targets, and how to add a scenario.
`scripts/e2e.sh compare docs/{source} YOURS.json` compares a run of yours with this one. `make bench` and `make bench-memory`
measure operators, forwarding and memory on your machine."""

READING = """`auto / plain` = 3.1 (2.9 to 3.3) means that the arm `auto` delivered 3.1 times the samples per second of `plain`: the
median of the rounds, and the lowest and the highest of them. All arms run in turn in every round. Above 1 is good for the gateway;
costs are therefore divided the other way round. `plain` reads the stored objects and runs the pipeline on the host, `pushed` runs it
at the gateway, and `auto` lets the planner choose for each object."""

NOISE = """A target is met if the median meets it. Noise decides nothing; it shows in the range of the rounds, and in the ratio of an
arm to a repetition of itself."""

ABOUT_SPEEDUP = """The smallest speed-up comes first. The baseline is the fastest plain reader, ours or another one; for tables it is
pyarrow, which reads ranges, and for a first start `pushed`. Seconds are medians of an epoch, for `auto` of a later one; the speed-up is the
median of the quotients of each round. `B` is the crossover bandwidth: over a faster
link plain reading is limited by the host, over a slower one by the link. *Limited by* is the tier that limits every
plan, with the part of this estimated upper bound that was reached."""

ABOUT_SECTIONS = """An arm is ahead if it needed less than the gateway's arm in every round."""


@dataclass(frozen=True)
class Section:
    """The section of a kind of scenario: its page, and how it is measured."""

    title: str
    page: str
    about: str
    figures: tuple[str, ...] = ()


# The order of the sections. Photos and tables are on the first page, too.
SECTIONS = {
    "read": Section("Photos", "photos", "Photos of a data set, read into values of a pipeline over links of several bandwidths.",
                    ("wire-features-100mbit", "cpu-features-100mbit")),
    "table": Section("Tables", "tables", "A projection and a filter of TPC-H's `lineitem` at scale 1, read once per round by processes "
                     "that are already warm."),
    "layouts": Section("Tar shards and image columns", "layouts", "The same photos as loose objects, as tar shards with a saved index, "
                       "and in an image column of Parquet, read into the same tensors by `pushdown.torch.Loader` and by loaders of others "
                       "as documented. All are warm."),
    "forward": Section("Forwarding", "forwarding", "Plain GETs of one object size over 8 connections: from the store, through the "
                       "gateway, and through nginx (`proxy_pass`, one worker). One sample is one GET."),
    "tenants": Section("Tenants", "tenants", "Concurrent jobs, each with the keys of another tenant, read the same photos. The time runs "
                       "from the first start to the last end."),
    "sharing": Section("Jobs on one data set", "jobs", "Concurrent jobs read the same photos through one gateway, without a result cache, "
                       "with one in memory, and on a disk. `one` is one job without a cache. The time is that of the slowest job.",
                       ("jobs",)),
    "second-epoch": Section("Second epoch", "second-epoch", "One job reads a later epoch over a link, with all values, or a part of them, "
                            "in the memory of the result cache."),
    "replicas": Section("Replicas", "replicas", "Several gateways, each with a CPU quota of a part of a core, and one of them alone. Each "
                        "computes the same number of samples in both arms. Linear is that many times the rate of one."),
    "materialize": Section("Whole data sets", "data-sets", "Photos are made smaller and written as shards: by `pushdown materialize` at the "
                           "gateway, and by programs of others on the host, from and to the same store. `warm` is the steps alone."),
    "materialize-replicas": Section("Whole data sets by replicas", "data-sets-replicas", "`pushdown materialize` by several gateways, each with "
                                    "a CPU quota of a part of a core, and by one of them. Linear is that many times the rate of one."),
    "warm-link": Section("Warmed values over a link", "warmed", "Values that `pushdown warm` has put on the gateway's disk, and a plain "
                         "download of as many bytes."),
    "growth": Section("Key counts and connection counts", "growth", "Listing a prefix and reading its first samples; GETs over a growing "
                      "number of connections. One sample is one object."),
    "scans": Section("Scans", "scans", "Concurrent scans of a table with a small memory budget. Each ends with 200 or 503."),
    "transfer": Section("Transfer learning", "transfer-learning", "One process reads labelled photos by every method in turn and trains a "
                        "classifier head on frozen features (`examples/transfer-learning`)."),
}  # fmt: skip
# The figures of the documented run, with their captions.
FIGURES = {
    "speedup": "Speed-up of `auto` and of the best fixed split over the fastest plain reader, by link bandwidth",
    "wire-features-100mbit": "Bytes on the wire per sample over 100 Mbit/s",
    "cpu-features-100mbit": "CPU seconds per 1,000 samples over 100 Mbit/s",
    "jobs": "Cost of jobs on one data set, relative to one job without a result cache",
}

# The columns of arms, by their column in `trials`. A column that no arm of a scenario has is left out.
COLUMNS: Columns = {
    "epoch": ("epoch_seconds", text.seconds),
    "wire bytes per sample": ("wire_bytes", text.size),
    "CPU per sample": ("cpu", text.seconds),
    "first batch": ("first_batch_seconds", text.seconds),
    "peak memory of the reader": ("peak_host", text.size),
    "samples per CPU s of the host": ("host_rate", text.number),
    "samples per CPU s of gateway and host": ("work_rate", text.number),
    "time to the trained head": ("trained_seconds", text.seconds),
    "balanced accuracy": ("balanced_accuracy", text.number),
    "from the store": ("epoch_store_bytes", text.size),
    "values, bit/s": ("value_bits_per_second", text.rate),
    "wire, bit/s": ("wire_bits_per_second", text.rate),
    "announced cached ratio": ("cached_ratio", text.number),
    "hits per sample": ("hits", text.number),
    "CPU of store and gateway per hit": ("cpu_per_hit", text.seconds),
    **{f"values {origin}": (f"values_{origin}", text.number) for origin in ORIGINS},
}
# Columns of one kind only.
COLUMNS_OF_KINDS = {
    "samples per CPU s of the host": ("layouts",), "samples per CPU s of gateway and host": ("materialize",),
    "values, bit/s": ("second-epoch", "warm-link"), "wire, bit/s": ("second-epoch", "warm-link"),
}  # fmt: skip
DETAILS: Columns = {
    "first epoch, samples/s": ("first_epoch_rate", text.number),
    "stall": ("stall", text.percent),
    "batch p50": ("batch_wait_p50_seconds", text.seconds),
    "batch p99": ("batch_wait_p99_seconds", text.seconds),
    "value bytes": ("value_bytes", text.size),
    "wire up": ("wire_up_bytes", text.size),
    "wire down": ("wire_down_bytes", text.size),
    **{f"CPU: {tier}": (f"cpu_{tier}", text.seconds) for tier in TIERS},
    **{f"peak memory: {tier}": (f"peak_{tier}", text.size) for tier in TIERS},
}


def markdown(results: Results, figures: Iterable[str] = ()) -> str:
    """All of the report. `figures` are addresses of pictures, relative to it."""
    lines = ["# End to end", "", READING, *_first_page(results, lambda section: "#" + section.title.lower().replace(" ", "-"))]
    for figure in figures:
        lines += ["", f"![{figure.rsplit('/', 1)[-1].rsplit('.', 1)[0]}]({figure})"]
    for kind in _kinds(results):
        lines += ["", f"## {SECTIONS[kind].title}", "", *_section(results, kind)]
    return "\n".join(lines) + "\n"


def write(results: Results, source: Path, page: Path) -> list[Path]:
    """Writes the first page, its sections into the folder with the page's name in lower case, and the figures as SVG into the folder
    of the recorded run. Returns the files."""
    drawn = plots.draw(results, source.parent, FIGURES, ("svg",))
    folder = page.with_name(page.stem.lower())
    folder.mkdir(exist_ok=True)
    images = lambda names, place: [
        f"![{FIGURES[path.stem]}]({os.path.relpath(path, place)})" for path in drawn if path.stem in names
    ]
    head = HEAD.format(source=os.path.relpath(source, page.parent))
    address = lambda section: f"{folder.name}/{section.page}.md"
    lines = [head, "", READING, *_first_page(results, address, images(["speedup"], page.parent))]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    written = [page, *drawn]
    for kind in _kinds(results):
        section = SECTIONS[kind]
        lines = [f"# {section.title}", "", f"Of the run in [{page.name}](../{page.name}), which says how to read it."]
        lines += [line for image in images(section.figures, folder) for line in ("", image)]
        written.append(folder / f"{section.page}.md")
        written[-1].write_text("\n".join([*lines, "", *_section(results, kind)]) + "\n", encoding="utf-8")
    return written


def _kinds(results: Results) -> list[str]:
    """The kinds with results, in the order of the sections."""
    measured = {scenario.settings.get("kind") for scenario in results.scenarios if scenario.cells}
    return [kind for kind in SECTIONS if kind in measured]


def _of_kind(results: Results, kind: str) -> list[Scenario]:
    return [scenario for scenario in results.scenarios if scenario.settings.get("kind") == kind and scenario.cells]


def _first_page(results: Results, address: Callable[[Section], str], figures: Sequence[str] = ()) -> list[str]:
    """Speed-ups, targets and failures, the list of the sections, and the run."""
    compared = [(scenario, cell, comparisons.comparisons(cell)) for scenario in results.scenarios for cell in scenario.cells]
    lines = [*_speedups(compared), *(line for figure in figures for line in ("", figure))]
    lines += ["", "## Targets", "", *_targets(compared), *_failures(results)]
    if kinds := _kinds(results):
        columns = ["section", "cells", "gateway's arm to plain reading", *(f"arms ahead in {name}" for name in AHEAD)]
        rows = [_overview(_of_kind(results, kind), SECTIONS[kind], address) for kind in kinds]
        lines += ["", "## All measurements", "", ABOUT_SECTIONS, "", *text.table(columns, rows)]
    return [*lines, "", "## The run", "", *_run(results)]


def _speedups(compared: Compared) -> list[str]:
    """The planned arm of each cell of photos and tables, compared with the reader that it has to beat."""
    rows = []
    for scenario, cell, found in compared:
        if scenario.settings.get("kind") in ("read", "table"):
            by_rule = {each.rule: each for each in found if each.rule == "repeat" or each.arm == comparisons.gateway_arm(cell)}
            best = next((by_rule[rule] for rule in ("ranges", "plain", "best") if rule in by_rule), None)
            if best is not None:
                rows.append((best.ratio.median if best.ratio and not best.failed_samples else 0.0, _speedup(cell, best, by_rule)))
    columns = ["what is read", "link", "baseline", "gateway", "speed-up", "limited by", "an arm to itself"]
    table = text.table(columns, [row for _, row in sorted(rows, key=lambda each: each[0])])
    return ["", "## Speed-up", "", ABOUT_SPEEDUP, "", *table] if rows else []


def _speedup(cell: Cell, found: Comparison, by_rule: Mapping[str, Comparison]) -> list[str]:
    medians = trials.table(cell).groupby("arm").median()
    seconds = lambda name: f"`{name}` {_seconds(cell, medians, name)}" if name in medians.index else name
    link = cell.name.removeprefix(cell.group).lstrip(", ").removesuffix(" link")
    limit = text.NONE if cell.bound is None else f"{cell.bound.limited_by}, {_of_bound(cell, medians, found.arm)}"
    ratio = text.NONE if found.failed_samples else text.ratio(found.ratio)
    repeat = text.ratio(by_rule["repeat"].ratio) if "repeat" in by_rule else text.NONE
    return [cell.group, link, seconds(found.under), seconds(found.arm), ratio, limit, repeat]


def _seconds(cell: Cell, medians: pd.DataFrame, name: str) -> str:
    """The seconds of an epoch, and the number of failed samples: samples that are not delivered take no time."""
    failed = cell.arms[name].failed_samples
    return text.seconds(medians.at[name, "epoch_seconds"]) + (f", {failed} failed" if failed else "")


def _targets(compared: Compared) -> list[str]:
    """How many targets are met, and which are missed."""
    judged = [
        (scenario, cell, each) for scenario, cell, found in compared for each in found
        if each.target is not None and each.ratio is not None
    ]  # fmt: skip
    missed = [each for each in judged if each[2].is_missed]
    lines = [f"{len(judged) - len(missed)} of {text.count(len(judged), 'target')} are met.", NOISE]
    if missed:
        rows = [[scenario.name, cell.name, *_comparison(each)] for scenario, cell, each in missed]
        lines += ["", *text.table(["scenario", "cell", "missed", "ratio", "target"], rows)]
    return lines if judged else ["No cell has a target."]


def _comparison(each: Comparison) -> list[str]:
    """The columns of a comparison: what, ratio, target."""
    failed = f", {text.count(each.failed_samples, 'sample')} failed" if each.failed_samples else ""
    target = text.NONE if each.target is None else f"{each.target}{': **missed**' if each.is_missed else ''}"
    return [each.name, text.ratio_over_rounds(each.ratio) + failed, target]


def _failures(results: Results) -> list[str]:
    """Failed samples, and scenarios that failed or were skipped."""
    arms = [(cell, name, arm) for scenario in results.scenarios for cell in scenario.cells for name, arm in cell.arms.items()]
    lines = [f"- {cell.name}: `{name}` failed {text.count(arm.failed_samples, 'sample')}" for cell, name, arm in arms if arm.failed_samples]
    lines += [f"- **{each.name} failed**: {' '.join(each.error.split())}" for each in results.scenarios if each.error]
    skipped = [each for each in results.scenarios if each.skip_reason or not (each.cells or each.error)]
    lines += [f"- {each.name} was skipped: {each.skip_reason or 'it has no cells'}" for each in skipped]
    return ["", *lines] if lines else []


def _overview(scenarios: Sequence[Scenario], section: Section, address: Callable[[Section], str]) -> list[str]:
    """The row of a section in the list of all."""
    cells = [cell for scenario in scenarios for cell in scenario.cells]
    speedups = [comparisons.speedup(cell, name) for cell in cells for name in [comparisons.gateway_arm(cell)] if name]
    medians = sorted(ratio.median for ratio in speedups if ratio is not None)
    span = " to ".join(dict.fromkeys(text.number(each) for each in (medians[:1] + medians[-1:])))
    ahead = (sum(len(comparisons.arms_ahead(cell, column)) for cell in cells) for column in AHEAD.values())
    return [f"[{section.title}]({address(section)})", str(len(cells)), span or text.NONE, *map(str, ahead)]


def _run(results: Results) -> list[str]:
    environment: Environment = results.environment
    shaped = "shaped" + (", latency available" if environment.supports_latency else "")
    unshaped = f"**not shaped: {environment.shaping_error}. No figure applies to a limited link**"
    load = " ".join(f"{each:.2f}" for each in environment.load_average)
    size = f"{text.count(environment.cores, 'core')}, {text.size(environment.memory_bytes)}"
    versions = {"Python": environment.python, **environment.versions}
    changed = ", **with uncommitted changes**" if results.dirty else ""
    rows = [
        ["command", f"`scripts/e2e.sh run {shlex.join(environment.flags)}`" if environment.flags else "`make bench-e2e`"],
        ["started", f"{results.started_at}, took {text.number(results.duration_seconds / 60)} minutes, commit {results.commit}{changed}"],
        ["machine", f"{environment.cpu}, {size}, Linux {re.sub('-[^,]*', '', environment.kernel)}, load average {load}"],
        ["links", shaped if environment.shaped else unshaped],
        *([["store", f"{environment.store}, external"]] if environment.store else []),
        ["versions", ", ".join(f"{name} {version}" for name, version in versions.items())],
    ]
    return text.table(["run", ""], rows)


def _section(results: Results, kind: str) -> list[str]:
    """All scenarios of a kind."""
    scenarios = _of_kind(results, kind)
    lines = [SECTIONS[kind].about]
    for scenario in scenarios:
        lines += ["", *_scenario(scenario, results.environment)]
    # Photos over links are compared with published results, for which x is the bandwidth.
    if kind == "read" and any(cell.x is not None for scenario in scenarios for cell in scenario.cells):
        lines += ["", "### For orientation", "", published.ABOUT, "", *published.table()]
    return lines


def _scenario(scenario: Scenario, environment: Environment) -> list[str]:
    seconds = scenario.duration_seconds
    duration = "" if seconds is None else f"; took {text.seconds(seconds)}, set-up included"
    lines = [f"### {scenario.title}", "", _command(environment, scenario.name) + duration]
    if scenario.error or scenario.skip_reason:
        lines += ["", f"Incomplete: {' '.join((scenario.error or scenario.skip_reason).split())}"]
    lines += ["", *(f"- {cell.name}: {_limits(cell)}." for cell in scenario.cells)]
    kind = scenario.settings.get("kind", "")
    columns = {title: column for title, column in COLUMNS.items() if kind in COLUMNS_OF_KINDS.get(title, (kind,))}
    lines += ["", *_arms(scenario.cells, columns, rates=True)]
    rows = [[cell.name, *_comparison(each)] for cell in scenario.cells for each in comparisons.comparisons(cell)]
    lines += ["", *_table(["cell", "comparison", "ratio", "target"], rows)] if rows else []
    ahead = [line for cell in scenario.cells for line in _ahead(cell)]
    lines += ["", *ahead] if ahead else []
    lines += ["", "<details><summary>Tiers, settings and notes</summary>", "", *_arms(scenario.cells, DETAILS, rates=False), ""]
    for cell in scenario.cells:
        arms = [f"`{name}`: {arm.kind}; {arm.settings or 'no settings'}; {text.count(len(arm.trials), 'round')}"
                for name, arm in cell.arms.items()]
        lines += [f"- {cell.name}", *(f"  - {line}" for line in [*arms, *_plain_readers(cell), *cell.notes])]
    settings = json.dumps(scenario.settings, ensure_ascii=False)
    return [*lines, "", "```json", settings, "```", "", "</details>"]


def _command(environment: Environment, name: str) -> str:
    """The command that repeats a scenario."""
    if environment.flags:
        return f"`scripts/e2e.sh run {shlex.join([*environment.flags, name])}`"
    return f"`make bench-e2e SCENARIO={name}`"


def _limits(cell: Cell) -> str:
    """The link and the upper bound."""
    requested, measured = cell.requested_bits_per_second, cell.measured_bits_per_second
    shown = "no rate" if requested is None else text.rate(requested)
    link = f"link: {shown} requested, {'not' if measured is None else text.rate(measured)} measured"
    link = "open link" if requested is None and measured is None else link
    crossover = cell.crossover_bits_per_second
    bound = f"about {text.number(cell.bound.samples_per_second)} samples/s ({cell.bound.limited_by})" if cell.bound else None
    parts = [link, f"crossover at {text.rate(crossover)}" if crossover is not None else "", f"upper bound{f' {bound}' if bound else ': -'}"]
    return "; ".join(filter(None, parts))


def _arms(cells: Sequence[Cell], columns: Columns, rates: bool) -> list[str]:
    """A row for each arm of each cell: the medians of its rounds, with its rate if `rates`."""
    grouped = [(cell, trials.table(cell).groupby("arm", sort=False)) for cell in cells]
    every = pd.concat([table.median() for _, table in grouped])
    shown = {title: column for title, column in columns.items() if every[column[0]].notna().any()}
    rows = []
    for cell, table in grouped:
        medians, spread = table.median(), table["rate"].agg(["median", "min", "max", "count"])
        for name in medians.index:
            rate = [_rate(spread.loc[name]), text.ratio(comparisons.rate_to_baseline(cell, name)), _of_bound(cell, medians, name)]
            row = [show(medians.at[name, column]) for column, show in shown.values()]
            rows.append([cell.name, f"`{name}`", *(rate if rates else []), *row])
    baselines = {cell.baseline for cell in cells}
    baseline = baselines.pop() if len(baselines) == 1 else "baseline"
    of_rates = ["samples/s", f"`arm / {baseline}`", "of the upper bound"] if rates else []
    return _table(["cell", "arm", *of_rates, *shown], rows)


def _table(columns: list[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose first column is the cell, which is left out if it is the same in all rows."""
    first = 0 if len({row[0] for row in rows}) > 1 else 1
    return text.table(columns[first:], [row[first:] for row in rows])


def _rate(spread: pd.Series) -> str:
    """Samples per second, with the lowest and the highest round."""
    brackets = f" ({text.number(spread['min'])} to {text.number(spread['max'])})" if spread["count"] > 1 else ""
    return text.number(spread["median"]) + brackets


def _of_bound(cell: Cell, medians: pd.DataFrame, name: str) -> str:
    """The part of the upper bound that an arm reaches. The bound is an estimate, which arms can exceed."""
    rate = medians.at[name, "rate"]
    is_bound = cell.bound is not None and cell.arms[name].kind not in UNBOUND
    return text.percent(rate / cell.bound.samples_per_second) if is_bound else text.NONE


def _ahead(cell: Cell) -> list[str]:
    """A line about the arms that needed less than the gateway's arm in every round."""
    ahead = {measure: comparisons.arms_ahead(cell, column) for measure, column in AHEAD.items()}
    parts = [
        f"{measure}: {', '.join(f'`{name}` by {text.ratio_over_rounds(ratio)}' for name, ratio in arms.items())}"
        for measure, arms in ahead.items() if arms
    ]  # fmt: skip
    return [f"- {cell.name}: ahead of `{comparisons.gateway_arm(cell)}` in every round: {'; '.join(parts)}."] if parts else []


def _plain_readers(cell: Cell) -> list[str]:
    """The candidates for the fastest plain reader, in cells with an arm that is compared with it."""
    plain, peers = ([f"`{name}`" for name in comparisons.of_kind(cell, kind)] for kind in ("plain", "peer"))
    if not (comparisons.of_kind(cell, "auto") and plain + peers):
        return []
    if not cell.qualifying:
        return [f"plain is the fastest of {', '.join(plain + peers)}" if peers else "no loader of others was tried as plain"]
    failed = lambda run: f", {text.count(run.errors, 'sample')} failed" if run.errors else ""
    rates = (f"`{name}` {text.number(run.samples_per_second)}{failed(run)}" for name, run in cell.qualifying.items())
    # Peers with rounds are named by the scenario, or qualified.
    joined = f"{' and '.join(peers)} read in every round, too" if peers else "no loader of others was about as fast"
    settings = [f"`{name}`, qualifying: {run.settings}" for name, run in cell.qualifying.items() if name not in cell.arms]
    return [f"plain: samples/s in one qualifying run each: {'; '.join(rates)}. {joined[0].upper()}{joined[1:]}", *settings]
