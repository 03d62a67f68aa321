"""One whole transfer-learning run: labelled photos, frozen features, a head, and the time until it is accurate."""

import statistics
from collections.abc import Iterator

import programs
from stack import BUCKET

from .. import arms
from ..results import Arm, Cell, Turn
from ..scenario import Link, Scenario
from ..text import size
from . import Run, cell_of, circumstances, in_turns, read

LABELS = programs.ROOT / ".cache/photos/elpv"
KINDS = {"plain": "plain", "pushed": "pushed", "auto": "auto", "keep": "layout", "again": "again"}
# What a round runs: all ways one after the other, and the baseline once more, by itself.
RUNS = {"all ways": (), "again": ("--ways", "plain")}


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each part of the run, over each link."""
    run.data.labelled(LABELS)
    for text in scenario.links:
        link = Link.parse(text)
        even = crossover(scenario, run) if link.factor is not None else None
        measured = run.tiers.shape(link.bits(even), scenario.latency_ms)
        parts, peaks = {}, {}

        def go(name: str) -> None:
            demonstrated = lambda: demo(scenario, run, "--epochs", scenario.epochs, *RUNS[name])
            found, held = run.tiers.peaks(demonstrated, run.tiers.beside())
            peaks.setdefault(name, []).append(held)
            for part in found["parts"]:
                for line in part["lines"]:
                    way = "again" if name == "again" else line["way"]
                    parts.setdefault(part["name"], {}).setdefault(way, []).append(line)

        in_turns(list(RUNS), scenario.repeats, go, run.progress)
        notes = [*circumstances(scenario, run), *beside(peaks["all ways"])]
        for title, ways in parts.items():
            yield cell(notes, title, ways, link, even, measured)


def demo(scenario: Scenario, run: Run, *arguments: object) -> dict:
    """Runs `pushdown demo transfer`, as `make demo` does."""
    stack = run.tiers.stack
    command = [arms.PUSHDOWN, "demo", "transfer", f"s3://{BUCKET}/labelled/", "--labels", LABELS / "labels.csv"]
    command += ["--plain-endpoint", stack.store, "--admin", stack.admin, "--endpoint-url", stack.gateway]
    command += ["--models", stack.models, "--samples", scenario.samples, "--json", *arguments]
    return run.tiers.run(command)


def beside(peaks: list[dict[str, float | None]]) -> list[str]:
    """The most memory beside the link: of all ways, which one run reads one after the other."""
    told = {tier: [peak[tier] for peak in peaks if peak.get(tier) is not None] for tier in ("store", "gateway")}
    each = [f"{tier} {size(statistics.median(found))}" for tier, found in told.items() if found]
    return [f"peak memory in a run of all ways: {', '.join(each)}"] if each else []


def crossover(scenario: Scenario, run: Run) -> float:
    """The link over which plain reading keeps the host just busy."""
    key = ("transfer", str(scenario.samples), scenario.host_cores)
    if key not in run.crossovers:
        run.tiers.shape(float("inf"))
        (line,) = demo(scenario, run, "--epochs", 0, "--ways", "plain")["parts"][0]["lines"]
        run.crossovers[key] = line["stored_bytes"] * 8 / line["cpu_seconds"] * scenario.host_cores
    return run.crossovers[key]


def cell(
    notes: list[str], title: str, ways: dict[str, list[dict]], link: Link, even: float | None, measured: float | None
) -> Cell:
    """One head, by every way; round by round."""
    # What was kept is read once more at the end: a way of its own.
    kind = lambda way: KINDS.get(way, "layout")
    settings = lambda way: "plain, by itself" if way == "again" else way
    turns = {way: list(map(turn, lines)) for way, lines in ways.items()}
    found = {way: Arm(kind(way), f"`pushdown demo transfer`, {settings(way)}", turns[way]) for way in ways}
    notes = list(notes)
    # What is read once more has nothing in its run to differ from.
    notes += [f"{way}: {held_out(lines)}" for way, lines in ways.items() if way != "again"]
    rates = {"asked": link.bits(even), "measured": measured, "crossover": even}
    # No x: a whole run is measured, training included, of which the link is a part.
    return cell_of(f"{title}, {read.at(link, link.bits(even))}", "transfer learning", found, notes, **rates)


def held_out(lines: list[dict]) -> str:
    """How good the heads of a way are, in all rounds."""
    areas = [line["auc"] for line in lines if line["auc"] is not None]
    score = f"AUC {statistics.median(areas):.3f}" if areas else "no score"
    others = max(line["other_predictions"] for line in lines)
    return f"{score} on photos that are held out, at most {others} predictions that differ from those of plain"


def turn(line: dict) -> Turn:
    """What the demo says of one way: all of its epochs are one."""
    spent = {"host": line["cpu_seconds"], "gateway": line["gateway_cpu_seconds"]}
    return Turn(
        samples=line["samples"],
        errors=0,
        seconds=[line["seconds"]],
        first_batch_seconds=None,
        batch_wait_p50_seconds=None,
        batch_wait_p99_seconds=None,
        stall_seconds=None,
        value_bytes=line["received_bytes"],
        stored_bytes=line["stored_bytes"],
        wire_up=line["sent_bytes"],
        wire_down=line["received_bytes"],
        cpu={tier: seconds for tier, seconds in spent.items() if seconds is not None},
        peak_bytes={"host": line["peak_bytes"]},
        balanced_accuracy=line["balanced_accuracy"],
        trained_seconds=line["seconds"] + line["train_seconds"],
    )
