"""What grows: listed keys, with the time to the first batch and the memory that takes; and connections."""

from collections.abc import Iterator

from stack import BUCKET

from .. import arms
from ..results import Arm, Cell
from ..scenario import OPEN, Scenario
from . import Run, cell_of, forward, in_turns

# So many samples of a listing: what lists is measured, not what reads.
READ = 256
CONNECTIONS = (1, 4, 16, 64)
BYTES, OBJECTS, REQUESTS = 100_000, 16, 2_000


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each number of keys, then one for each number of connections."""
    run.tiers.shape(OPEN)
    for count in scenario.sizes:
        yield keys(scenario, run, count)
    for count in CONNECTIONS:
        yield connections(scenario, run, count)


def keys(scenario: Scenario, run: Run, count: int) -> Cell:
    """The first batches of a prefix with so many keys."""
    prefix = run.data.tiny(count, run.progress)
    stack = run.tiers.stack
    found = {"plain": Arm("plain", "straight to the store"), "pushed": Arm("pushed", "through the gateway")}
    endpoints = {"plain": (stack.store, ["--plain"]), "pushed": (stack.gateway, ["--split", "full"])}

    def turn(name: str) -> None:
        endpoint, flags = endpoints[name]
        command = [arms.PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", scenario.pipeline, *flags]
        command += ["--limit", READ, "--batch-size", scenario.batch_size, "--endpoint-url", endpoint, "--json"]
        found[name].turns.append(run.tiers.turn(lambda: run.tiers.run(command)))

    in_turns(list(found), scenario.repeats, turn, run.progress)
    notes = [arms.cores(run.tiers), f"the first {READ} samples of them, photos of 16 x 16 pixels"]
    return cell_of(f"{count:,} keys", "listed keys", found, notes, x=float(count), x_label="listed keys")


def connections(scenario: Scenario, run: Run, count: int) -> Cell:
    """Objects read over so many connections."""
    prefix = run.data.blobs(BYTES, OBJECTS)
    stack = run.tiers.stack
    endpoints = {"plain": stack.store, "pushed": stack.gateway}
    found = {"plain": Arm("plain", forward.settings("plain")), "pushed": Arm("pushed", forward.settings("gateway"))}

    def turn(name: str) -> None:
        command = forward.reader(endpoints[name], prefix, OBJECTS, BYTES, REQUESTS, count)
        found[name].turns.append(run.tiers.turn(lambda: run.tiers.run(command)))

    in_turns(list(found), scenario.repeats, turn, run.progress)
    what = f"{count} connection{'' if count == 1 else 's'}"
    notes = [arms.cores(run.tiers), f"{REQUESTS} GETs of {forward.human(BYTES)}"]
    return cell_of(what, "connections", found, notes, x=float(count), x_label="connections")
