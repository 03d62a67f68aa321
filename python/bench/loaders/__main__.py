"""The command line of the comparison of data loaders, `make bench-python`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import programs
from e2e import components

from . import report, rounds, store
from .contestants import CONTESTANTS, OURS
from .task import Task

RESULTS = programs.ROOT / "bench/results"


def main() -> None:
    """Measures, prints the tables, and writes the results."""
    options = parser().parse_args()
    names = [*options.contestant] or list(CONTESTANTS)
    with tempfile.TemporaryDirectory(prefix="pushdown-loaders-") as scratch:
        folder = Path(scratch)
        try:
            with store.gateway(folder) as endpoint:
                print(f"bench-python: load {os.getloadavg()[0]:.1f}, measuring CPU time", file=sys.stderr)
                task = store.prepare(endpoint, folder, options.photos, options.samples, options.batch_size)
                with rounds.running(names, task, folder) as contestants:
                    settings = {name: contestant.settings for name, contestant in contestants.items()}
                    epochs = rounds.measure(dict(contestants), options.rounds)
                rates = {name: [epoch.samples_per_cpu_second for epoch in each] for name, each in epochs.items()}
                tables = [report.loaders_table(rates, options.photos), *(layer_tables(task) if OURS in names else [])]
        except (rounds.ContestantError, store.NotStarted, FileNotFoundError) as error:
            sys.exit(f"bench-python: {error}")
    found = report.results(tables, settings)
    print(components.markdown(found), end="\n\n")
    print("\n".join(f"- {name}: {text}" for name, text in settings.items()))
    print(f"\nwrote {report.write(found, options.results)}")
    missed = report.missed_targets(tables)
    if missed and options.check:
        sys.exit("\n".join(["bench-python: targets missed:", *missed]))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="loaders", description=__doc__)
    top.add_argument("--photos", default="imagenet", help="a set in .cache/photos, or a pattern from the repository's root")
    top.add_argument("--samples", type=positive, default=800, help="samples of an epoch (default: %(default)s)")
    top.add_argument("--batch-size", type=positive, default=64, help="samples of a batch (default: %(default)s)")
    top.add_argument("--rounds", type=positive, default=3, help="measured epochs of each (default: %(default)s)")
    top.add_argument("--contestant", action="append", choices=CONTESTANTS, default=[], help="default: all; repeatable")
    top.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="default: bench/results")
    top.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    return top


def positive(text: str) -> int:
    """A number of samples or rounds."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {text!r}")
    return int(text)


def layer_tables(task: Task) -> list[components.Table]:
    """The tables of the Python layer."""
    layer, resume = module_results("loaders.python_layer", task.to_json()), module_results("loaders.resume")
    return [
        report.layer_table(layer["milliseconds"]),
        report.shared_table(layer["shared"]),
        report.resume_table(resume["seconds"]),
    ]


def module_results(module: str, *arguments: str) -> dict[str, list[float]]:
    """What a module prints that measures in a process of its own."""
    command = [sys.executable, "-m", module, *arguments]
    ended = subprocess.run(command, env=os.environ | programs.KEYS, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = json.loads(ended.stdout)
    return found


if __name__ == "__main__":
    programs.run(main)
