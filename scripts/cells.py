"""Plans against a clock: cells.py [ROUNDS], what `make bench-cells` runs.

Store and gateway on one core, the reader on the other, a shaped link between them. Each cell is a pipeline over 200
or 800 photos and a link in multiples of the crossover `b* = stored bits / CPU seconds of plain reading`. In each round every way
reads in its turn: plainly, everything pushed, `auto`; and plainly once more, to tell what the same thing differs by. Ratios
are taken round by round; intervals are those of 2,000 bootstraps of the median. A cell is lost where the whole interval is.

What a sample costs each side is recorded before, over the open link: CPU seconds of store and gateway, those of the reader,
and bytes on the wire. From that the planner's simulator tells how long each epoch takes, without a clock.
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
    ("ShuffleNet", SHUFFLE, [0.3, 1, 3]),
    ("128 x 128 pixels", PIXELS, [0.1, 0.5, OPEN]),
]
# The second epoch is the one that counts: the first finds out what samples cost, and is told apart.
WAYS = {
    "plain": ["--plain", "--epochs", "1"],
    "again": ["--plain", "--epochs", "1"],
    "pushed": ["--split", "full", "--epochs", "1"],
    "auto": ["--auto", "--epochs", "2"],
}
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
# The simulator is to be so close to the clock.
AGREES = 0.15


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The median, and where 95 % of the medians of samples with replacement lie."""
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[-51]


def read(stack: Stack, pipeline: str, way: str, copies: int) -> dict:
    """One turn of a way."""
    prefix = "photos/0/" if copies == SHORT else "photos/"
    arguments = ["--pipeline", pipeline, "--batch-size", "32", "--json", *WAYS[way]]
    return json.loads(stack.pushdown("read", f"s3://{BUCKET}/{prefix}", *arguments))


def record(stack: Stack, pipeline: str) -> dict:
    """What a sample costs each side in either way, over the open link."""
    stack.side.open()
    # The gateway finds out how many samples its networks are best run on at once.
    read(stack, pipeline, "pushed", LONG)

    def costs(way: str) -> dict:
        before = stack.cpu_seconds()
        report = read(stack, pipeline, way, LONG)
        costs = {"bytes": report["wire_bytes_down"], "host_seconds": report["cpu_seconds"]}
        costs |= {"store_seconds": stack.cpu_seconds() - before, "stored_bytes": report["stored_bytes"]}
        return {name: cost / report["samples"] for name, cost in costs.items()}

    # Whatever else the machine does can only add to them.
    least = lambda way: min((costs(way) for _ in range(2)), key=lambda cost: cost["store_seconds"] + cost["host_seconds"])
    return {"store_cores": 1, "host_cores": 1, "plain": least("plain"), "pushed": least("pushed")}


def simulate(recorded: dict, samples: int, bits: float) -> dict:
    """Seconds of an epoch in each way, without a clock."""
    epoch = recorded | {"samples": samples, "link_bits": None if bits == OPEN else bits}
    command = [BINARIES / "pushdown-bench", "simulate"]
    ended = subprocess.run(command, input=json.dumps(epoch), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def cell(stack: Stack, pipeline: str, recorded: dict, bits: float, copies: int) -> dict:
    """All turns of a cell."""
    if bits < OPEN:
        stack.side.shape(bits)
    else:
        stack.side.open()
    turns = {way: [] for way in WAYS}
    for turn in range(ROUNDS):
        for way in sorted(WAYS, key=lambda way: (list(WAYS).index(way) + turn) % len(WAYS)):
            turns[way].append(read(stack, pipeline, way, copies))
    seconds = {way: [turn["epoch_seconds"][-1] for turn in turns] for way, turns in turns.items()}
    best = [min(pair) for pair in zip(seconds["plain"], seconds["pushed"])]
    ratio = lambda a, b: interval([a / b for a, b in zip(a, b)])
    seconds_of = {way: statistics.median(values) for way, values in seconds.items()}
    simulated = simulate(recorded, turns["plain"][0]["samples"], bits)
    return {
        "seconds": seconds_of,
        "simulated": simulated,
        "simulated_to_clock": {way: value / seconds_of[way] for way, value in simulated.items()},
        "first_epoch": statistics.median(turn["epoch_seconds"][0] for turn in turns["auto"]),
        "against_plain": ratio(seconds["plain"], seconds["auto"]),
        "against_best": ratio(best, seconds["auto"]),
        "same": ratio(seconds["plain"], seconds["again"]),
        "bytes": {way: values[-1]["wire_bytes_down"] / values[-1]["samples"] for way, values in turns.items()},
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
            print("| cell | plain | pushed | `auto` | its first epoch | to plain | to the best fixed | plain again | simulated / clock |")
            print("|---|---|---|---|---|---|---|---|---|", flush=True)
            for name, pipeline, factors in CELLS:
                recorded = record(stack, pipeline)
                even = recorded["plain"]["stored_bytes"] * 8 / recorded["plain"]["host_seconds"]
                for factor in factors:
                    copies = SHORT if factor < 1 and pipeline != PIXELS else LONG
                    found = {"pipeline": pipeline, "factor": str(factor), "crossover": even, "recorded": recorded}
                    found |= cell(stack, pipeline, recorded, even * factor, copies)
                    results.append(found)
                    print(row(name, factor, even, found), flush=True)
        finally:
            stack.stop()
    out = ROOT / f"bench/results/cells-{int(time.time())}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"rounds": ROUNDS, "binaries": BINARIES.name, "cells": results}, indent=1))
    lost = [found for found in results if found["against_plain"][2] < 0.97 or found["against_best"][2] < 0.95]
    ratios = [ratio for found in results for ratio in found["simulated_to_clock"].values()]
    agree = sum(abs(ratio - 1) <= AGREES for ratio in ratios)
    print(f"\n{len(results)} cells, {len(lost)} lost; the simulator is within {AGREES:.0%} of the clock in {agree} of {len(ratios)}")
    print(f"written to {out.relative_to(ROOT)}")


def row(name: str, factor: float, even: float, found: dict) -> str:
    """A line of the table."""
    link = "open" if factor == OPEN else f"{factor:g} b* = {factor * even / 1e6:.0f} Mbit/s"
    seconds = found["seconds"]
    spread = lambda three: f"{three[0]:.2f} ({three[1]:.2f} to {three[2]:.2f})"
    columns = [f"{name}, {link}"] + [f"{seconds[way]:.2f} s" for way in ("plain", "pushed", "auto")]
    columns += [f"{found['first_epoch']:.2f} s", spread(found["against_plain"]), spread(found["against_best"])]
    simulated = ", ".join(f"{ratio:.2f}" for ratio in found["simulated_to_clock"].values())
    return "| " + " | ".join(columns + [spread(found["same"]), simulated]) + " |"


if __name__ == "__main__":
    run(main)
