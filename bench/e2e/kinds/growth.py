"""What grows: listed keys, with the time to the first batch and the memory that takes; and connections."""

from collections.abc import Iterator

from stack import BUCKET

from .. import arms
from ..results import Arm, Cell
from ..scenario import OPEN, Scenario
from . import Run, cell_of, circumstances, forward, in_turns

# What there is, all of which is measured where a scenario names none.
ARMS = ("plain", "again", "pushed")
# So many samples of a listing: what lists is measured, not what reads.
READ = 256
BYTES, OBJECTS, REQUESTS = 100_000, 16, 1_500


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each number of keys, then one for each number of connections."""
    run.tiers.shape(OPEN, scenario.latency_ms)
    for count in scenario.sizes:
        yield keys(scenario, run, count)
    for count in scenario.connections:
        yield connections(scenario, run, count)


def keys(scenario: Scenario, run: Run, count: int) -> Cell:
    """The first batches of a prefix with so many keys."""
    prefix = run.data.tiny(count, run.progress)
    stack = run.tiers.stack
    where = {"pushed": "through the gateway"}
    found = {name: Arm(name, where.get(name, "straight to the store")) for name in scenario.arms or ARMS}

    def turn(name: str) -> None:
        endpoint, flags = (stack.gateway, ["--split", "full"]) if name == "pushed" else (stack.store, ["--plain"])
        command = [arms.PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", scenario.pipeline, *flags]
        command += ["--limit", READ, "--batch-size", scenario.batch_size, "--endpoint-url", endpoint, "--json"]
        found[name].turns.append(run.tiers.turn(lambda: run.tiers.run(command)))

    in_turns(list(found), scenario.repeats, turn, run.progress)
    notes = [*circumstances(scenario, run), f"the first {READ} samples of them, photos of 16 x 16 pixels"]
    return cell_of(f"{count:,} keys", "listed keys", found, notes, x=float(count), x_label="listed keys")


def connections(scenario: Scenario, run: Run, count: int) -> Cell:
    """Objects read over so many connections."""
    prefix = run.data.blobs(BYTES, OBJECTS)
    stack = run.tiers.stack
    way = lambda name: "gateway" if name == "pushed" else name
    found = {name: Arm(name, forward.settings(way(name))) for name in scenario.arms or ARMS}

    def turn(name: str) -> None:
        endpoint = stack.gateway if name == "pushed" else stack.store
        command = forward.reader(endpoint, prefix, OBJECTS, BYTES, REQUESTS, count)
        found[name].turns.append(run.tiers.turn(lambda: run.tiers.run(command)))

    in_turns(list(found), scenario.repeats, turn, run.progress)
    what = f"{count} connection{'' if count == 1 else 's'}"
    notes = [*circumstances(scenario, run), f"{REQUESTS} GETs of {forward.human(BYTES)}"]
    return cell_of(what, "connections", found, notes, x=float(count), x_label="connections")
