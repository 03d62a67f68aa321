"""Whole data sets: photos are made smaller and written as shards, by the gateway and by programs of others on the host.

`pushdown` is `pushdown materialize`, which only signs. `warm` computes the same values at the gateway in batches that are not
delivered, with a result cache that has no room for them: the steps alone. Each of their trials starts a gateway, which first makes
some other photos. Programs of others read from the same store and write to it. Every trial has a target of its own.

A trial of 16 samples decides how large parts are, and in a small data set it would count. So the target has the recipe of an earlier
run, like one that goes on after it was stopped.
"""

from collections.abc import Iterator
from pathlib import Path

import programs
from stack import BUCKET

from .. import arms, clocks, targets
from ..results import Arm, Cell, Trial
from ..scenario import OPEN, Scenario
from ..tiers import ArmError
from . import RunContext, build_cell, cell_notes, interleave

# Programs of others: the environment with their packages.
PEERS = {
    "litdata": ".venv-e2e-torch",
    "img2dataset": ".venv-e2e-materialize",
    "webdataset": ".venv-e2e-materialize",
    "webdataset-scaled": ".venv-e2e-materialize",
}
ARMS = (targets.MATERIALIZED, targets.STEPS_ALONE, *PEERS)
WARM_FLAGS = ["--cache-memory=1MiB"]
# The status of `pushdown warm` is 1 if the cache has no room for all values.
WARM_STATUSES = (0, 1)
RECIPE = "_recipe.json"
# With fewer samples the CPU of the client is mostly that of its start, about 20 ms.
MIN_CLIENT_SAMPLES = 1000
# The warm-up of a new gateway makes a trial's samples divided by this.
WARM_UP_DIVISOR = 8
NOTES = (
    "pushdown and torchvision resize bilinearly with antialiasing, OpenCV by the mean of the covered pixels (`INTER_AREA`)",
    "CPU of the host is without imports and the first photo in programs of others, and without the trial of 16 samples in `pushdown`",
)


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """One cell, over an open link. The gateway has the scenario's flags again after it."""
    context.tiers.shape(OPEN, scenario.latency_ms)
    yield measure_cell(scenario, context)
    context.tiers.stack.restart_gateway(*scenario.gateway_flags)


def measure_cell(scenario: Scenario, context: RunContext) -> Cell:
    """All arms on one data set."""
    left_out = {name: reason for name in scenario.arms if (reason := unavailable_reason(name))}
    names = [name for name in scenario.arms if name not in left_out]
    measured = {name: arm_of(name) for name in names}
    photos = context.data.photos(scenario.data, scenario.samples)
    recipe = written_recipe(scenario, context, photos, f"{scenario.name}-recipe/", gateway_flags(context))

    def run_trial(name: str) -> None:
        target = f"{scenario.name}-{name}-{len(measured[name].trials)}/"
        if name in PEERS:
            trial, measured[name].settings = run_peer(scenario, context, name, target)
        elif name == targets.STEPS_ALONE:
            trial = run_warm(scenario, context)
        else:
            trial = run_materialize(scenario, context, target, recipe)
        check_samples(scenario.samples, trial)
        measured[name].trials.append(trial)

    interleave(names, scenario.rounds, run_trial, context.progress)
    notes = [*cell_notes(scenario, context), *left_out.values(), *NOTES]
    notes.append(f"{scenario.samples} samples in parts of {scenario.batch_size}: `{scenario.pipeline}`")
    cell = build_cell(scenario.group, "materialize", measured, notes)
    cell.required = requirements(scenario)
    return cell


def requirements(scenario: Scenario) -> dict[str, float]:
    """The requirements of a cell, by rule, as ratios of which more is better."""
    required = {"peer-cpu": scenario.min_peer_ratio} if scenario.min_peer_ratio else {}
    return required | ({"client-cpu": 1.0} if scenario.samples >= MIN_CLIENT_SAMPLES else {})


def unavailable_reason(name: str) -> str:
    """Why an arm cannot run on this machine; empty if it can."""
    if name in PEERS and not python_of(name).exists():
        return f"{name} is left out: {PEERS[name]} is not installed"
    return ""


def python_of(name: str) -> Path:
    """The Python of a program of others."""
    return programs.ROOT / PEERS[name] / "bin/python"


def arm_of(name: str) -> Arm:
    """An arm without trials. Programs of others report their settings themselves."""
    if name in PEERS:
        return Arm("peer", "")
    if name == targets.STEPS_ALONE:
        return Arm("ceiling", f"`pushdown warm`: the steps alone; gateway: {' '.join(WARM_FLAGS)}")
    return Arm("pushed", "`pushdown materialize --format wds`")


def run_materialize(scenario: Scenario, context: RunContext, target: str, recipe: bytes) -> Trial:
    """A run of `pushdown materialize` with a new gateway."""
    stack = context.tiers.stack
    stack.restart_gateway(*scenario.gateway_flags)
    context.tiers.run(command(scenario, warm_up_photos(scenario, context), f"{target[:-1]}-warm-up/", gateway_flags(context)))
    stack.client.put_object(Bucket=BUCKET, Key=target + RECIPE, Body=recipe)
    photos = context.data.photos(scenario.data, scenario.samples)
    return context.tiers.run_trial(lambda: run_client(context, command(scenario, photos, target, gateway_flags(context))))


def run_warm(scenario: Scenario, context: RunContext) -> Trial:
    """A run of `pushdown warm` with a new gateway, whose cache has no room."""
    context.tiers.stack.restart_gateway(*scenario.gateway_flags, *WARM_FLAGS)

    def run(photos: str) -> dict:
        line = [arms.PUSHDOWN, "warm", f"s3://{BUCKET}/{photos}", "--pipeline", scenario.pipeline, *gateway_flags(context), "--json"]
        used = clocks.ended_children_cpu_seconds()
        report = context.tiers.run(line, statuses=WARM_STATUSES)
        return {
            "samples": report["samples"] - report["errors"],
            "errors": report["errors"],
            "epoch_seconds": [report["seconds"]],
            "value_bytes": 0,
            "wire_bytes_down": report["wire_bytes_down"],
            "wire_bytes_up": report["wire_bytes_up"],
            "cpu_seconds": clocks.ended_children_cpu_seconds() - used,
        }

    run(warm_up_photos(scenario, context))
    photos = context.data.photos(scenario.data, scenario.samples)
    return context.tiers.run_trial(lambda: run(photos))


def run_peer(scenario: Scenario, context: RunContext, name: str, target: str) -> tuple[Trial, str]:
    """A run of a program of others, and its settings."""
    pipeline, figures = scenario.pipeline, {}
    photos = context.data.photos(scenario.data, scenario.samples)
    line = [python_of(name), arms.FOLDER / "materialize.py", name, "--endpoint", context.tiers.stack.store, "--bucket", BUCKET]
    line += ["--prefix", photos, "--target", target, "--shard-samples", scenario.batch_size]
    line += ["--short", arms.short_side(pipeline), "--quality", number_after(pipeline, "quality=")]
    line += ["--min-short", number_after(pipeline, "min_short=")]

    def run() -> dict:
        figures.update(context.tiers.run(line))
        return figures

    return context.tiers.run_trial(run), figures["settings"]


def number_after(pipeline: str, argument: str) -> int:
    """The number of an argument of a step; 0 without it."""
    _, found, rest = pipeline.partition(argument)
    return int(rest.partition(")")[0].partition(",")[0]) if found else 0


def warm_up_photos(scenario: Scenario, context: RunContext) -> str:
    """The prefix of the photos that warm the gateway up: no key of the measured ones."""
    return context.data.photos(scenario.data, max(1, scenario.samples // WARM_UP_DIVISOR))


def written_recipe(scenario: Scenario, context: RunContext, photos: str, target: str, addresses: list) -> bytes:
    """The recipe of these photos, which a run writes into this target."""
    context.tiers.run(command(scenario, photos, target, addresses))
    return context.tiers.stack.client.get_object(Bucket=BUCKET, Key=target + RECIPE)["Body"].read()


def gateway_flags(context: RunContext) -> list:
    """The gateway in the place of the store."""
    return ["--endpoint-url", context.tiers.stack.gateway]


def command(scenario: Scenario, photos: str, target: str, addresses: list) -> list:
    """`pushdown materialize` of the photos of this prefix into this one."""
    line = [arms.PUSHDOWN, "materialize", f"s3://{BUCKET}/{photos}", f"s3://{BUCKET}/{target}", "--pipeline", scenario.pipeline]
    return [*line, "--format", "wds", "--part-samples", scenario.batch_size, *addresses, "--json"]


def run_client(context: RunContext, line: list, **environment: str) -> dict:
    """The figures of a run of `pushdown materialize`, with the CPU of its process."""
    used = clocks.ended_children_cpu_seconds()
    report = context.tiers.run(line, **environment)
    return {
        "samples": report["samples"],
        "errors": report["errors"] + report["vanished"],
        "epoch_seconds": [report["seconds"]],
        "value_bytes": report["bytes"],
        # Values do not cross the link of the host.
        "wire_bytes_down": 0,
        "cpu_seconds": clocks.ended_children_cpu_seconds() - used,
    }


def check_samples(expected: int, trial: Trial) -> None:
    """Raises an ArmError unless a trial has this number of samples."""
    if trial.samples + trial.errors != expected:
        raise ArmError(f"expected {expected} samples, found {trial.samples} and {trial.errors} failed ones")
