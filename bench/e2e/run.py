"""A run: one stack for scenarios with the same flags, the scenarios in order, and results saved after each cell."""

import dataclasses
import datetime
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import links
import programs
from stack import MODELS, NotStarted, Stack, split_cores
from tqdm import tqdm

from . import arms, comparisons, guard, machine, plots, report, results
from .data import StoredData
from .kinds import (
    RunContext,
    bounds,
    forward,
    growth,
    layouts,
    materialize,
    materialize_replicas,
    qualifying,
    read,
    replicas,
    scans,
    second_epoch,
    sharing,
    table,
    tenants,
    transfer,
    warm_link,
)
from .scenario import Scenario, ScenarioError, load_all, needs_shaping, open_link_variant
from .tiers import ArmError, Tiers

KINDS = {"read": read, "forward": forward, "table": table, "scans": scans, "tenants": tenants, "growth": growth}
KINDS |= {"transfer": transfer, "sharing": sharing, "second-epoch": second_epoch, "layouts": layouts}
KINDS |= {"replicas": replicas, "materialize": materialize, "materialize-replicas": materialize_replicas, "warm-link": warm_link}
# Kinds that start replicas.
REPLICA_KINDS = ("replicas", "materialize-replicas")
# Kinds that restart the gateway with other flags.
RESTARTING_KINDS = ("sharing", "second-epoch", "materialize", "warm-link")
PROGRAMS = (
    *("pushdown", "pushdown-bench", "pushdown-gateway"),
    *("file-reader", "object-reader", "table-reader", "transfer-learning"),
)
NO_SHAPING_HINT = "--no-shaping (make: NO_SHAPING=1) runs without"


@dataclass
class Options:
    """The options of a run."""

    scenarios: list[Scenario]
    results: Path
    shaping: bool = True
    upstream: str | None = None
    gateway: str | None = None
    admin: str | None = None
    interface: str | None = None
    rounds: int | None = None
    # Flags of the command line, for the report.
    flags: tuple[str, ...] = ()
    has_external_store: bool = field(init=False)

    def __post_init__(self) -> None:
        self.has_external_store = self.upstream is not None
        if self.rounds is not None:
            replaced = [dataclasses.replace(scenario, rounds=self.rounds) for scenario in self.scenarios]
            self.scenarios = replaced
        for scenario in self.scenarios:
            known = getattr(KINDS[scenario.kind], "ARMS", scenario.arms)
            if unknown := [name for name in scenario.arms if arms.listed_name(name) not in known]:
                expected = ", ".join(known)
                raise ScenarioError(f"{scenario.name}: arms: expected some of {expected}, found {', '.join(unknown)}")
        if not self.shaping:
            self.scenarios = with_open_link_variants(self.scenarios)


def with_open_link_variants(scenarios: list[Scenario]) -> list[Scenario]:
    """The scenarios, and for those that need a shaped link, and will be skipped, their open-link variants."""
    variants = [open_link_variant(scenario, load_all()) for scenario in scenarios]
    by_name = {scenario.name: scenario for scenario in [*scenarios, *filter(None, variants)]}
    return list(by_name.values())


def run_scenarios(options: Options) -> Path:
    """Runs all scenarios. Returns the file of the results; the report and the plots are next to it."""
    if options.has_external_store:
        programs.KEYS |= {name: os.environ[name] for name in programs.KEYS if name in os.environ}
    started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    for program in PROGRAMS:
        if not (programs.BINARIES / program).exists():
            raise SystemExit(f"e2e: {programs.BINARIES / program} is not built: run `make build`")
    commit, dirty = machine.commit()
    with links.create(options.shaping, options.interface) as link:
        if link.reason and options.shaping:
            print(f"e2e: links cannot be shaped: {link.reason}. {NO_SHAPING_HINT}", file=sys.stderr)
            raise SystemExit(2)
        environment = machine.read_environment(link, options.upstream, options.flags)
        found = results.Results(commit, dirty, started.strftime("%Y-%m-%dT%H:%M:%SZ"), 0.0, environment)
        file = options.results / f"e2e-{started:%Y%m%d-%H%M%S}.json"
        total = sum(trial_count(scenario) for scenario in options.scenarios)
        with tqdm(total=total, unit="trial", dynamic_ncols=True, disable=None) as progress:
            stacks = Stacks(options, link, progress)
            try:
                for scenario in options.scenarios:
                    progress.set_description(scenario.name)
                    measured = results.Scenario(scenario.name, scenario.title, scenario.settings)
                    found.scenarios.append(measured)
                    for cell in cells(scenario, stacks, link, measured):
                        measured.cells.append(cell)
                        progress.write(f"e2e: {scenario.name}: {cell.name}: done", file=sys.stderr)
                        found.duration_seconds = time.monotonic() - clock
                        results.save(found, file)
            finally:
                stacks.stop()
    found.duration_seconds = time.monotonic() - clock
    results.save(found, file)
    write_report(found, file)
    return file


def cells(scenario: Scenario, stacks: "Stacks", link: links.Links, measured: results.Scenario) -> Iterator[results.Cell]:
    """Measures the cells of a scenario, or records why it is skipped."""
    measured.skip_reason = skip_reason(scenario, stacks.options, link)
    if measured.skip_reason:
        stacks.progress.write(f"e2e: {scenario.name} is skipped: {measured.skip_reason}")
        return
    clock = time.monotonic()
    try:
        for cell in KINDS[scenario.kind].cells(scenario, stacks.context_for(scenario)):
            cell.bound = bounds.upper_bound(scenario, cell)
            measured.duration_seconds = time.monotonic() - clock
            yield cell
    except (Exception, NotStarted) as error:
        # The other scenarios continue, and the run's status reports the failure. A request to end still ends the run.
        measured.duration_seconds = time.monotonic() - clock
        known = isinstance(error, (ArmError, NotStarted, FileNotFoundError))
        measured.error = str(error) if known else f"{type(error).__name__}: {error}"
        stacks.progress.write(f"e2e: {scenario.name} failed: {measured.error}", file=sys.stderr)
        # If the store or the gateway has died, all following scenarios would fail.
        stacks.stop()


def exit_status(found: results.Results, check: bool) -> int:
    """The exit status of a run: 1 if a scenario failed or, with `check`, if a target is missed."""
    cells = [cell for scenario in found.scenarios for cell in scenario.cells]
    missed = any(each.is_missed for cell in cells for each in comparisons.comparisons(cell))
    return int(any(scenario.error for scenario in found.scenarios) or (check and missed))


def skip_reason(scenario: Scenario, options: Options, link: links.Links) -> str:
    """Why a scenario cannot be measured on this machine; empty if it can."""
    if options.has_external_store and (reason := missing_requirement(scenario, options)):
        return reason
    if scenario.kind == "layouts" and (reason := layouts.unavailable_reason()):
        return reason
    if link.reason and needs_shaping(scenario):
        variant = open_link_variant(scenario, load_all())
        hint = f"; {variant.name}, which measures the same over an open link, runs instead" if variant else ""
        return f"it needs shaped links, and {link.reason}{hint}"
    try:
        split_cores(scenario.store_cores, scenario.host_cores)
    except ValueError as error:
        return str(error)
    if scenario.kind in REPLICA_KINDS and (reason := replicas.unavailable_reason(scenario)):
        return reason
    if scenario.latency_ms and not link.can_delay():
        return "it needs latency, and this kernel has no netem"
    if missing := [name for name in scenario.models if not (MODELS / f"{name}.onnx").exists()]:
        return f"it needs the model {', '.join(missing)}: `scripts/models.sh {missing[0]}` writes it, in images the argument MODELS"
    return ""


def missing_requirement(scenario: Scenario, options: Options) -> str:
    """The requirement of a scenario that an external store or gateway does not meet; empty if it meets all."""
    if options.gateway is not None and scenario.gateway_flags:
        return f"it needs a gateway with the flags {' '.join(scenario.gateway_flags)}, and the gateway is external"
    if options.gateway is not None and scenario.kind in RESTARTING_KINDS:
        return "it restarts the gateway with other flags, and the gateway is external"
    if scenario.kind in REPLICA_KINDS:
        return "it starts gateways next to a store that has its own core, and the store is external"
    refused = tenants.refused_tenants(options.upstream, max(scenario.sizes)) if scenario.kind == "tenants" else []
    if refused:
        owner = programs.KEYS["AWS_ACCESS_KEY_ID"]
        return f"the store refuses {', '.join(refused)}: expected keys with the secret of {owner}"
    return ""


def trial_count(scenario: Scenario) -> int:
    """The approximate number of trials, for the progress bar."""
    rows = len(scenario.sizes or scenario.layouts) or 1
    growing = len(scenario.connections) if scenario.kind == "growth" else 0
    usual = {"forward": 4, "scans": 1, "growth": len(growth.ARMS), "transfer": 2}
    usual |= {"replicas": len(replicas.ARMS), "materialize-replicas": len(replicas.ARMS), "warm-link": len(warm_link.ARMS)}
    of_kind = len(scenario.arms) or usual[scenario.kind]
    before = len(qualifying.entrants(scenario)) if scenario.kind == "read" else 0
    return ((rows + growing) * of_kind * scenario.rounds + before) * len(scenario.links)


class Stacks:
    """One stack at a time. A scenario with other flags or cores gets a new one."""

    def __init__(self, options: Options, link: links.Links, progress: tqdm) -> None:
        self.options, self.link, self.progress = options, link, progress
        models = {model for scenario in options.scenarios for model in scenario.models}
        self.models = sorted(models)
        self.key: tuple | None = None
        self.context: RunContext | None = None
        self.count = 0

    def context_for(self, scenario: Scenario) -> RunContext:
        """The context of a scenario, with a new stack if needed."""
        host_cores, store_cores = split_cores(scenario.store_cores, scenario.host_cores)
        key = (scenario.gateway_flags, store_cores)
        if self.context is None or self.key != key:
            self.stop()
            self.count += 1
            folder = guard.folder() / f"stack-{self.count}"
            folder.mkdir()
            given = {"store": self.options.upstream, "gateway": self.options.gateway, "admin": self.options.admin}
            given["store_cores"] = store_cores
            stack = Stack(folder, self.link, self.models, *scenario.gateway_flags, **given)
            self.key = key
            self.context = RunContext(Tiers(stack), StoredData(stack), folder, self.progress)
        self.context.tiers.host_cores = host_cores
        return self.context

    def stop(self) -> None:
        """Ends the stack."""
        if self.context is not None:
            self.context.tiers.stack.stop()
        self.context = None


def write_report(found: results.Results, file: Path) -> None:
    """Writes the report and the plots next to the results."""
    drawn = plots.draw(found, file.with_suffix(""))
    shown = [str(plot.relative_to(file.parent)) for plot in drawn if plot.suffix == ".svg"]
    file.with_suffix(".md").write_text(report.markdown(found, shown), encoding="utf-8")
