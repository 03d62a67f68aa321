"""Plans against a clock: cells.py [ROUNDS [NAME]], what `make bench-cells` runs; with a name only the cells that have it.

Store and gateway on one core, the reader on the other, a shaped link between them. Each cell is a pipeline over 200
or 800 photos and a link in multiples of the crossover `b* = stored bits / CPU seconds of plain reading`. In each round every way
reads in its turn: plainly, everything pushed, `auto`; and plainly once more, to tell what the same thing differs by. Ratios
are taken round by round; intervals are those of 2,000 bootstraps of the median. A cell is lost where the whole interval is.

What a sample costs is recorded in the turns of plain and pushed: CPU seconds of store and gateway, those of the reader, and
bytes on the wire, of the same round, since a machine that is shared is not equally fast in all of them. From that and the
link's rate the planner's simulator tells how long an epoch takes in each way, `auto` included, without a clock.

The second epoch of `auto` counts: the first finds out what samples cost, and is told apart. In the cells of a first start
the reader has no weights, in none of the ways, and the first epoch is all there is.
"""

import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import links
from programs import BINARIES, ROOT, run
from stack import BUCKET, Stack

PHOTOS = ROOT / ".cache/photos/imagenet"
LITE0 = (
    "decode | resize(short=256) | center_crop(224) | to_float | normalize(model=efficientnet_lite0)"
    " | model(efficientnet_lite0, until=features) | cast(f16)"
)
SHUFFLE = "decode | resize(short=256) | center_crop(224) | to_float | normalize(imagenet) | model(shufflenet) | cast(f16)"
PIXELS = "decode | resize(short=144) | center_crop(128)"
OPEN = float("inf")
# Copies of the photos: where the link does not take most of the time, an epoch is to be long enough to tell.
SHORT, LONG = 1, 4
CELLS = [
    ("EfficientNet-Lite0", LITE0, [0.1, 0.3, 1, 3, 10, OPEN]),
    ("EfficientNet-Lite0, first start", LITE0, [0.3]),
    ("ShuffleNet", SHUFFLE, [0.3, 1, 3]),
    ("128 x 128 pixels", PIXELS, [0.1, 0.5, OPEN]),
]
WAYS = {
    "plain": ["--plain"],
    "again": ["--plain"],
    "pushed": ["--split", "full"],
    "auto": ["--auto"],
}
FIRST_START = "first start"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
CHOSEN = sys.argv[2] if len(sys.argv) > 2 else ""
# What has to hold: `auto` beside plain and beside the better of both, the simulator beside the clock, and where the link is
# this thin, how near `auto` comes to what gateway and link let through.
PLAIN, BEST, AGREES = 0.97, 0.95, 0.15
THIN, BOUND = 0.1, 0.85


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The median, and where 95 % of the medians of samples with replacement lie."""
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[-51]


def read(stack: Stack, pipeline: str, way: str, copies: int, first_start: bool = False) -> dict:
    """One turn of a way, with what a sample cost each side."""
    prefix = "photos/0/" if copies == SHORT else "photos/"
    epochs = 2 if way == "auto" and not first_start else 1
    arguments = ["--pipeline", pipeline, "--batch-size", "32", "--epochs", epochs, "--json", *WAYS[way]]
    before = stack.cpu_seconds()
    answer = stack.pushdown("read", f"s3://{BUCKET}/{prefix}", *arguments, weights_at_hand=not first_start)
    report = json.loads(answer)
    costs = {"bytes": report["wire_bytes_down"], "host_seconds": report["cpu_seconds"]}
    costs |= {"store_seconds": stack.cpu_seconds() - before}
    return report | {"costs": {name: cost / report["samples"] for name, cost in costs.items()}}


def crossover(stack: Stack, pipeline: str) -> float:
    """The link over which plain reading keeps the host's core just busy, in bits per second."""
    stack.side.open()
    # The gateway finds out how many samples its networks are best run on at once.
    read(stack, pipeline, "pushed", LONG)
    plain = read(stack, pipeline, "plain", LONG)
    return plain["stored_bytes"] * 8 / plain["cpu_seconds"]


def simulate(plain: dict, pushed: dict, bits: float) -> dict:
    """Seconds of an epoch in each way, without a clock, by what samples cost in two turns."""
    epoch = {"plain": plain["costs"], "pushed": pushed["costs"], "store_cores": 1, "host_cores": 1}
    epoch |= {"samples": plain["samples"], "link_bits": None if bits == OPEN else bits}
    command = [BINARIES / "pushdown-bench", "simulate"]
    ended = subprocess.run(command, input=json.dumps(epoch), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def cell(stack: Stack, pipeline: str, bits: float, copies: int, first_start: bool) -> dict:
    """All turns of a cell."""
    if bits < OPEN:
        stack.side.shape(bits)
    else:
        stack.side.open()
    turns = {way: [] for way in WAYS}
    for turn in range(ROUNDS):
        for way in sorted(WAYS, key=lambda way: (list(WAYS).index(way) + turn) % len(WAYS)):
            turns[way].append(read(stack, pipeline, way, copies, first_start))
    seconds = {way: [turn["epoch_seconds"][-1] for turn in turns] for way, turns in turns.items()}
    best = [min(pair) for pair in zip(seconds["plain"], seconds["pushed"])]
    ratio = lambda a, b: interval([a / b for a, b in zip(a, b)])
    simulated = [simulate(plain, pushed, bits) for plain, pushed in zip(turns["plain"], turns["pushed"])]
    to_clock = lambda way: [found[way] / clock for found, clock in zip(simulated, seconds[way])]
    # No way is faster where the gateway makes all values and the link brings nothing else.
    least = lambda turn: max(turn["costs"]["store_seconds"], turn["costs"]["bytes"] * 8 / bits) * turn["samples"]
    of_bound = [least(turn) / clock for turn, clock in zip(turns["pushed"], seconds["auto"])]
    return {
        "seconds": {way: statistics.median(values) for way, values in seconds.items()},
        "all_seconds": seconds,
        "costs": {way: [turn["costs"] for turn in turns] for way, turns in turns.items()},
        "simulated": simulated,
        "simulated_to_clock": {way: statistics.median(to_clock(way)) for way in simulated[0]},
        "first_epoch": statistics.median(turn["epoch_seconds"][0] for turn in turns["auto"]),
        "against_plain": ratio(seconds["plain"], seconds["auto"]),
        "against_best": ratio(best, seconds["auto"]),
        "same": ratio(seconds["plain"], seconds["again"]),
        "of_bound": statistics.median(of_bound),
    }


def main() -> None:
    """All cells, as a table and as JSON."""
    if not links.forbidden() == "":
        sys.exit(f"cells: the link cannot be shaped: {links.forbidden()}")
    results = []
    with links.side() as side, tempfile.TemporaryDirectory(prefix="pushdown-cells-") as folder:
        stack = Stack(pathlib.Path(folder), side, ["efficientnet_lite0", "shufflenet"])
        try:
            files = sorted(PHOTOS.glob("*.jpg"))
            stack.upload({f"photos/{copy}/{file.name}": file for copy in range(LONG) for file in files})
            ratios = "| to plain | to the best fixed | plain again | simulated / clock | verdict |"
            print(f"| cell | plain | pushed | `auto` | its first epoch {ratios}")
            print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
            for name, pipeline, factors in (cell for cell in CELLS if CHOSEN in cell[0]):
                even = crossover(stack, pipeline)
                for factor in factors:
                    short = factor < 1 and pipeline != PIXELS and not name.endswith(FIRST_START)
                    copies = SHORT if short else LONG
                    found = {"name": name, "pipeline": pipeline, "factor": str(factor), "crossover": even}
                    found |= cell(stack, pipeline, even * factor, copies, name.endswith(FIRST_START))
                    found |= {"verdict": verdict(found)}
                    results.append(found)
                    print(row(name, factor, even, found), flush=True)
        finally:
            stack.stop()
    out = ROOT / f"bench/results/cells-{int(time.time())}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"rounds": ROUNDS, "binaries": BINARIES.name, "cells": results}, indent=1))
    count = lambda verdict: sum(found["verdict"] == verdict for found in results)
    print(f"\n{len(results)} cells: {count('held')} held, {count('undecided')} undecided, {count('lost')} lost")
    # The simulator knows nothing of weights that are fetched.
    known = [found["simulated_to_clock"].values() for found in results if not found["name"].endswith(FIRST_START)]
    ratios = [ratio for cell in known for ratio in cell]
    agree = sum(abs(ratio - 1) <= AGREES for ratio in ratios)
    print(f"the simulator is within {AGREES:.0%} of the clock in {agree} of {len(ratios)}")
    for found in results:
        if float(found["factor"]) <= THIN:
            where, reached = f"{found['name']} at {found['factor']} b*", found["of_bound"]
            print(f"{where}: {reached:.2f} of what gateway and link let through ({BOUND} asked)")
    print(f"written to {out.relative_to(ROOT)}")


def verdict(found: dict) -> str:
    """Whether `auto` is proved slow enough to lose a cell, proved not to be, or neither."""
    asked = (found["against_plain"], PLAIN), (found["against_best"], BEST)
    if any(highest < least for (_, _, highest), least in asked):
        return "lost"
    return "held" if all(lowest >= least for (_, lowest, _), least in asked) else "undecided"


def row(name: str, factor: float, even: float, found: dict) -> str:
    """A line of the table."""
    link = "open" if factor == OPEN else f"{factor:g} b* = {factor * even / 1e6:.0f} Mbit/s"
    seconds = found["seconds"]
    spread = lambda three: f"{three[0]:.2f} ({three[1]:.2f} to {three[2]:.2f})"
    columns = [f"{name}, {link}"] + [f"{seconds[way]:.2f} s" for way in ("plain", "pushed", "auto")]
    columns += [f"{found['first_epoch']:.2f} s", spread(found["against_plain"]), spread(found["against_best"])]
    simulated = ", ".join(f"{ratio:.2f}" for ratio in found["simulated_to_clock"].values())
    return "| " + " | ".join(columns + [spread(found["same"]), simulated, found["verdict"]]) + " |"


if __name__ == "__main__":
    run(main)
