"""Ray Data over a shaped link, as root: `pushdown.ray.read` with a gateway next to the store, and Ray's own reader of images.

    python -m loaders.over_link --photos 12mp --bandwidth 100
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import links
import programs
import psutil
from e2e.clocks import tree_cpu_seconds
from stack import BUCKET, Stack

from . import rounds, store
from .contestants import OURS_ON_RAY
from .task import REGION, Task, layout

PEER = "Ray Data, Pillow"
PREFIX = "train/"


def main() -> None:
    """Measures, and prints a line for each contestant."""
    options = parser().parse_args()
    names = layout(options.samples)
    with tempfile.TemporaryDirectory(prefix="pushdown-link-") as scratch, links.create() as link:
        if not link.can_be_shaped:
            sys.exit(f"over_link: {link.reason}")
        folder, stack = Path(scratch), Stack(Path(scratch), link, [])
        try:
            local = store.local_folder(options.photos, names)
            stack.upload({f"{PREFIX}{name}": local / name for name in names})
            task = Task(
                endpoint=stack.store,
                gateway=stack.gateway,
                bucket=BUCKET,
                prefix=PREFIX,
                shards="",
                folder=str(local),
                scratch=scratch,
                classes=tuple(sorted({name.split("/")[0] for name in names})),
                samples=options.samples,
                batch_size=options.batch_size,
                cores=len(os.sched_getaffinity(0)),
                region=REGION,
            )
            link.shape(options.bandwidth * 1e6)
            servers = [psutil.Process(process.pid) for _, process in stack.started]
            for name, log in ((PEER, "peer.log"), (OURS_ON_RAY, "ours.log")):
                print(json.dumps({"contestant": name} | measure(name, task, servers, folder / log, options.rounds)), flush=True)
        finally:
            stack.stop()


def measure(name: str, task: Task, servers: list[psutil.Process], log: Path, count: int) -> dict[str, Any]:
    """Samples per second, and per CPU second of all processes: readers, gateway and store. One epoch before them does not count."""
    contestant = rounds.Contestant(name, task, log)
    try:
        contestant.wait()
        contestant.read()
        per_second, per_cpu_second = [], []
        for _ in range(count):
            before = sum(map(tree_cpu_seconds, servers))
            epoch = contestant.read()
            cpu_seconds = epoch.cpu_seconds + sum(map(tree_cpu_seconds, servers)) - before
            per_second.append(round(epoch.samples / epoch.seconds, 2))
            per_cpu_second.append(round(epoch.samples / cpu_seconds, 2))
    finally:
        contestant.end()
    return {"samples_per_second": per_second, "samples_per_cpu_second": per_cpu_second, "settings": contestant.settings}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="loaders.over_link", description=__doc__)
    top.add_argument("--photos", default="12mp", help="a set in .cache/photos (default: %(default)s)")
    top.add_argument("--samples", type=int, default=96, help="samples of an epoch (default: %(default)s)")
    top.add_argument("--batch-size", type=int, default=16, help="samples of a batch (default: %(default)s)")
    top.add_argument("--bandwidth", type=float, default=100.0, help="megabits per second of the link (default: %(default)s)")
    top.add_argument("--rounds", type=int, default=2, help="measured epochs of each (default: %(default)s)")
    return top


if __name__ == "__main__":
    programs.run(main)
