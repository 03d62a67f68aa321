"""A run: a stack for as long as its flags stay the same, the scenarios one after the other, and results after each cell."""

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
from stack import NotStarted, Stack, sides
from tqdm import tqdm

from . import arms, guard, machine, plots, report, results, stats
from .data import Data
from .kinds import Run, bounds, forward, growth, heats, read, scans, table, tenants, transfer
from .scenario import Scenario, ScenarioError, all_of, shaped, unshaped
from .tiers import ArmError, Tiers

KINDS = {"read": read, "forward": forward, "table": table, "scans": scans, "tenants": tenants, "growth": growth}
KINDS |= {"transfer": transfer}
PROGRAMS = ("pushdown", "pushdown-bench", "pushdown-gateway", "file-reader", "object-reader", "table-reader")
WITHOUT = "--no-shaping goes on without; for make it is NO_SHAPING=1"


@dataclass
class Options:
    """How a run is to be done."""

    scenarios: list[Scenario]
    results: Path
    shaping: bool = True
    upstream: str | None = None
    gateway: str | None = None
    admin: str | None = None
    interface: str | None = None
    repeats: int | None = None
    # What the command line said, for the report.
    flags: tuple[str, ...] = ()
    elsewhere: bool = field(init=False)

    def __post_init__(self) -> None:
        self.elsewhere = self.upstream is not None
        if self.repeats is not None:
            replaced = [dataclasses.replace(scenario, repeats=self.repeats) for scenario in self.scenarios]
            self.scenarios = replaced
        for scenario in self.scenarios:
            known = getattr(KINDS[scenario.kind], "ARMS", scenario.arms)
            if unknown := [name for name in scenario.arms if arms.family(name) not in known]:
                expected = ", ".join(known)
                raise ScenarioError(f"{scenario.name}: arms: {', '.join(unknown)} found, expected some of {expected}")
        if not self.shaping:
            self.scenarios = instead(self.scenarios)


def instead(scenarios: list[Scenario]) -> list[Scenario]:
    """The same, and what measures over an open link what those would that need a shaped one: they are going to be skipped."""
    others = [unshaped(scenario, all_of()) for scenario in scenarios]
    found = {scenario.name: scenario for scenario in [*scenarios, *filter(None, others)]}
    return list(found.values())


def run(options: Options) -> Path:
    """Runs them all. The file with the results, beside which stand a report and plots."""
    if options.elsewhere:
        programs.KEYS |= {name: os.environ[name] for name in programs.KEYS if name in os.environ}
    started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    for program in PROGRAMS:
        if not (programs.BINARIES / program).exists():
            raise SystemExit(f"e2e: {programs.BINARIES / program} is not built: `make build`")
    commit, dirty = machine.commit()
    with links.links(options.shaping, options.interface) as link:
        if link.reason and options.shaping:
            print(f"e2e: links cannot be shaped: {link.reason}. {WITHOUT}", file=sys.stderr)
            raise SystemExit(2)
        environment = machine.environment(link, options.upstream, options.flags)
        found = results.Results(commit, dirty, started.strftime("%Y-%m-%dT%H:%M:%SZ"), 0.0, environment)
        file = options.results / f"e2e-{started:%Y%m%d-%H%M%S}.json"
        total = sum(turns(scenario) for scenario in options.scenarios)
        with tqdm(total=total, unit="turn", dynamic_ncols=True, disable=None) as progress:
            stacks = Stacks(options, link, progress)
            try:
                for scenario in options.scenarios:
                    progress.set_description(scenario.name)
                    measured = results.Scenario(scenario.name, scenario.title, scenario.settings)
                    found.scenarios.append(measured)
                    for cell in cells(scenario, stacks, link, measured):
                        cell.verdicts = stats.verdicts(cell)
                        measured.cells.append(cell)
                        progress.write(f"e2e: {scenario.name}: {cell.name}: done", file=sys.stderr)
                        found.seconds = time.monotonic() - clock
                        results.save(found, file)
            finally:
                stacks.stop()
    found.seconds = time.monotonic() - clock
    results.save(found, file)
    write(found, file)
    return file


def cells(scenario: Scenario, stacks: "Stacks", link: links.Links, measured: results.Scenario) -> Iterator[results.Cell]:
    """The cells of a scenario, or why there are none."""
    measured.skipped = why_not(scenario, stacks.options, link)
    if measured.skipped:
        stacks.progress.write(f"e2e: {scenario.name} is skipped: {measured.skipped}")
        return
    clock = time.monotonic()
    try:
        for cell in KINDS[scenario.kind].cells(scenario, stacks.of(scenario)):
            cell.bound = bounds.of(scenario, cell)
            measured.seconds = time.monotonic() - clock
            yield cell
    except (Exception, NotStarted) as error:
        # Whatever it is, the other scenarios are measured, and the run's status tells. Who is asked to end ends all the same.
        measured.seconds = time.monotonic() - clock
        known = isinstance(error, (ArmError, NotStarted, FileNotFoundError))
        measured.broke = str(error) if known else f"{type(error).__name__}: {error}"
        stacks.progress.write(f"e2e: {scenario.name} broke: {measured.broke}", file=sys.stderr)
        # A store or a gateway that is gone would break them all.
        stacks.stop()


def status(found: results.Results, check: bool) -> int:
    """What a run ends with: 1 where a scenario broke, and where it is to be checked also where a verdict is a fail."""
    failed = any(
        verdict.outcome == "fail"
        for scenario in found.scenarios
        for cell in scenario.cells
        for verdict in stats.verdicts(cell)
    )
    return int(any(scenario.broke for scenario in found.scenarios) or (check and failed))


def why_not(scenario: Scenario, options: Options, link: links.Links) -> str:
    """Why a scenario cannot be measured here, if so."""
    if options.elsewhere and (why := not_there(scenario, options)):
        return why
    if link.reason and shaped(scenario):
        other = unshaped(scenario, all_of())
        hint = f"; {other.name}, which measures the same over an open link, runs instead" if other else ""
        return f"its links are to be shaped, and {link.reason}{hint}"
    try:
        sides(scenario.store_cores, scenario.host_cores)
    except ValueError as error:
        return str(error)
    if scenario.latency_ms and not link.can_delay():
        return "its links are to have latency, and this kernel has no netem"
    return ""


def not_there(scenario: Scenario, options: Options) -> str:
    """What a scenario needs that a store or a gateway that runs already lacks, if anything."""
    if options.gateway is not None and scenario.gateway_flags:
        return f"its gateway has the flags {' '.join(scenario.gateway_flags)}, and this one runs already"
    strangers = tenants.strangers(options.upstream, max(scenario.sizes)) if scenario.kind == "tenants" else []
    if strangers:
        owner = programs.KEYS["AWS_ACCESS_KEY_ID"]
        return f"the store refuses {', '.join(strangers)}, each of whom is to have the secret of {owner}"
    return ""


def turns(scenario: Scenario) -> int:
    """How many steps its progress has, about."""
    rows = len(scenario.sizes) or 1
    growing = len(scenario.connections) if scenario.kind == "growth" else 0
    usual = {"forward": 4, "scans": 1, "growth": len(growth.ARMS), "transfer": 2}
    of_kind = len(scenario.arms) or usual[scenario.kind]
    before = len(heats.wanted(scenario)) if scenario.kind == "read" else 0
    return ((rows + growing) * of_kind * scenario.repeats + before) * len(scenario.links)


class Stacks:
    """One stack at a time: another one where a scenario asks for other flags or cores."""

    def __init__(self, options: Options, link: links.Links, progress: tqdm) -> None:
        self.options, self.link, self.progress = options, link, progress
        models = {model for scenario in options.scenarios for model in scenario.models}
        self.models = sorted(models)
        self.asked: tuple | None = None
        self.run: Run | None = None
        self.count = 0

    def of(self, scenario: Scenario) -> Run:
        """What a scenario runs on."""
        here, there = sides(scenario.store_cores, scenario.host_cores)
        asked = (scenario.gateway_flags, there)
        if self.run is None or self.asked != asked:
            self.stop()
            self.count += 1
            folder = guard.folder() / f"stack-{self.count}"
            folder.mkdir()
            given = {"store": self.options.upstream, "gateway": self.options.gateway, "admin": self.options.admin}
            given["there"] = there
            stack = Stack(folder, self.link, self.models, *scenario.gateway_flags, **given)
            self.asked = asked
            self.run = Run(Tiers(stack), Data(stack), folder, self.progress)
        self.run.tiers.here = here
        return self.run

    def stop(self) -> None:
        """Ends the stack."""
        if self.run is not None:
            self.run.tiers.stack.stop()
        self.run = None


def write(found: results.Results, file: Path) -> None:
    """The report and the plots, beside the results."""
    drawn = plots.draw(found, file.with_suffix(""))
    shown = [str(plot.relative_to(file.parent)) for plot in drawn if plot.suffix == ".svg"]
    file.with_suffix(".md").write_text(report.markdown(found, shown), encoding="utf-8")
