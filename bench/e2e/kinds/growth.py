"""Growing numbers: of listed keys, with the time to the first batch and the reader's memory, and of connections."""

from collections.abc import Iterator

from stack import BUCKET

from .. import arms
from ..results import Arm, Cell
from ..scenario import OPEN, Scenario
from . import RunContext, build_cell, cell_notes, forward, interleave

# All arms; they are measured if a scenario names none.
ARMS = ("plain", "repeat", "pushed")
# Samples read after listing: few, since the listing is measured.
SAMPLES_READ = 256
BYTES, OBJECTS, REQUESTS = 100_000, 16, 1_500


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each number of keys, then one for each number of connections."""
    context.tiers.shape(OPEN, scenario.latency_ms)
    for count in scenario.sizes:
        yield keys_cell(scenario, context, count)
    for count in scenario.connections:
        yield connections_cell(scenario, context, count)


def keys_cell(scenario: Scenario, context: RunContext, count: int) -> Cell:
    """The first batches of a prefix with `count` keys."""
    prefix = context.data.tiny(count, context.progress)
    stack = context.tiers.stack
    settings = {"pushed": "through the gateway"}
    measured_arms = {name: Arm(name, settings.get(name, "from the store")) for name in scenario.arms or ARMS}

    def run_trial(name: str) -> None:
        endpoint, flags = (stack.gateway, ["--split", "full"]) if name == "pushed" else (stack.store, ["--plain"])
        command = [arms.PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", scenario.pipeline, *flags]
        command += ["--limit", SAMPLES_READ, "--batch-size", scenario.batch_size, "--endpoint-url", endpoint, "--json"]
        measured_arms[name].trials.append(context.tiers.run_trial(lambda: context.tiers.run(command)))

    interleave(list(measured_arms), scenario.rounds, run_trial, context.progress)
    notes = [*cell_notes(scenario, context), f"the first {SAMPLES_READ} samples, photos of 16 x 16 pixels"]
    return build_cell(f"{count:,} keys", "listed keys", measured_arms, notes, x=float(count), x_label="listed keys")


def connections_cell(scenario: Scenario, context: RunContext, count: int) -> Cell:
    """GETs over `count` connections."""
    prefix = context.data.blobs(BYTES, OBJECTS)
    stack = context.tiers.stack
    proxy = lambda name: "gateway" if name == "pushed" else name
    measured_arms = {name: Arm(name, forward.describe_arm(proxy(name))) for name in scenario.arms or ARMS}

    def run_trial(name: str) -> None:
        endpoint = stack.gateway if name == "pushed" else stack.store
        command = forward.reader_command(endpoint, prefix, OBJECTS, BYTES, REQUESTS, count)
        measured_arms[name].trials.append(context.tiers.run_trial(lambda: context.tiers.run(command)))

    interleave(list(measured_arms), scenario.rounds, run_trial, context.progress)
    name = f"{count} connection{'' if count == 1 else 's'}"
    notes = [*cell_notes(scenario, context), f"{REQUESTS} GETs of {forward.format_size(BYTES)}"]
    return build_cell(name, "connections", measured_arms, notes, x=float(count), x_label="connections")
