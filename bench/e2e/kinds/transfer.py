"""A whole transfer-learning run: labelled photos, frozen features, a classifier head, and the time until it is trained."""

import statistics
from collections.abc import Iterator

import programs
from stack import BUCKET

from ..results import Arm, Cell, Trial
from ..scenario import Link, Scenario
from ..text import size
from . import RunContext, build_cell, cell_notes, interleave, read

LABELS = programs.ROOT / ".cache/photos/elpv"
KINDS = {"plain": "plain", "pushed": "pushed", "auto": "auto", "cached": "layout", "repeat": "repeat"}
# The runs of a round: all methods in one process, and the baseline alone.
RUNS = {"all methods": (), "repeat": ("--methods", "plain")}


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each part of the run, over each link."""
    context.data.labelled(LABELS)
    for text in scenario.links:
        link = Link.parse(text)
        crossover = measure_crossover(scenario, context) if link.factor is not None else None
        measured = context.tiers.shape(link.bits(crossover), scenario.latency_ms)
        parts, peaks = {}, {}

        def run_trial(name: str) -> None:
            run_arm = lambda: run_program(scenario, context, "--epochs", scenario.epochs, *RUNS[name])
            figures, used = context.tiers.measure_peaks(run_arm, context.tiers.store_side_processes())
            peaks.setdefault(name, []).append(used)
            for part in figures["parts"]:
                for line in part["lines"]:
                    arm = "repeat" if name == "repeat" else line["method"]
                    parts.setdefault(part["name"], {}).setdefault(arm, []).append(line)

        interleave(list(RUNS), scenario.rounds, run_trial, context.progress)
        notes = [*cell_notes(scenario, context), *peak_memory_notes(peaks["all methods"])]
        for title, lines in parts.items():
            yield part_cell(notes, title, lines, link, crossover, measured)


def run_program(scenario: Scenario, context: RunContext, *arguments: object) -> dict:
    """Runs the example `transfer-learning`, like `make demo`."""
    stack = context.tiers.stack
    command = [programs.BINARIES / "transfer-learning", f"s3://{BUCKET}/labelled/", "--labels", LABELS / "labels.csv"]
    command += ["--plain-endpoint", stack.store, "--admin", stack.admin, "--endpoint-url", stack.gateway]
    command += ["--models", stack.models, "--samples", scenario.samples, "--json", *arguments]
    return context.tiers.run(command)


def peak_memory_notes(peaks: list[dict[str, float | None]]) -> list[str]:
    """The peak memory of store and gateway during a run of all methods: one process reads by all of them."""
    known = {tier: [peak[tier] for peak in peaks if peak.get(tier) is not None] for tier in ("store", "gateway")}
    medians = [f"{tier} {size(statistics.median(values))}" for tier, values in known.items() if values]
    return [f"peak memory in a run of all methods: {', '.join(medians)}"] if medians else []


def measure_crossover(scenario: Scenario, context: RunContext) -> float:
    """The crossover bandwidth in bits per second."""
    key = ("transfer", str(scenario.samples), scenario.host_cores)
    if key not in context.crossovers:
        context.tiers.shape(float("inf"))
        (line,) = run_program(scenario, context, "--epochs", 0, "--methods", "plain")["parts"][0]["lines"]
        context.crossovers[key] = line["stored_bytes"] * 8 / line["cpu_seconds"] * scenario.host_cores
    return context.crossovers[key]


def part_cell(
    notes: list[str], title: str, lines: dict[str, list[dict]], link: Link, crossover: float | None, measured: float | None
) -> Cell:
    """The cell of one head, with the lines of each method by round."""
    # Reading cached values again is a method of its own.
    kind = lambda name: KINDS.get(name, "layout")
    settings = lambda name: "plain, alone" if name == "repeat" else name
    trials = {name: list(map(to_trial, of_arm)) for name, of_arm in lines.items()}
    measured_arms = {name: Arm(kind(name), f"`transfer-learning`, {settings(name)}", trials[name]) for name in lines}
    # The repetition has no predictions of plain in its run to compare with.
    scores = [f"{name}: {describe_predictions(of_arm)}" for name, of_arm in lines.items() if name != "repeat"]
    rates = {"requested": link.bits(crossover), "measured": measured, "crossover": crossover}
    # No x: the time includes training, and the link is only a part of it.
    name = f"{title}, {read.link_label(link, link.bits(crossover))}"
    return build_cell(name, "transfer learning", measured_arms, [*notes, *scores], **rates)


def describe_predictions(lines: list[dict]) -> str:
    """The quality of a method's heads over all rounds."""
    areas = [line["auc"] for line in lines if line["auc"] is not None]
    score = f"AUC {statistics.median(areas):.3f}" if areas else "no score"
    others = max(line["other_predictions"] for line in lines)
    return f"{score} on held-out photos, at most {others} predictions that differ from plain"


def to_trial(line: dict) -> Trial:
    """The trial of a line of the report. All of its epochs count as one."""
    used = {"host": line["cpu_seconds"], "gateway": line["gateway_cpu_seconds"]}
    return Trial(
        samples=line["samples"],
        errors=0,
        epoch_seconds=[line["seconds"]],
        first_batch_seconds=None,
        batch_wait_p50_seconds=None,
        batch_wait_p99_seconds=None,
        stall_seconds=None,
        value_bytes=line["received_bytes"],
        stored_bytes=line["stored_bytes"],
        wire_up_bytes=line["sent_bytes"],
        wire_down_bytes=line["received_bytes"],
        cpu_seconds={tier: seconds for tier, seconds in used.items() if seconds is not None},
        peak_bytes={"host": line["peak_bytes"]},
        balanced_accuracy=line["balanced_accuracy"],
        trained_seconds=line["seconds"] + line["train_seconds"],
    )
