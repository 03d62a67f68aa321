"""The results as tables of component benchmarks (`e2e.components`): ratios round by round, with targets."""

from __future__ import annotations

import importlib.metadata
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from e2e import machine
from e2e.components import FORMAT, Comparison, ComponentResults, Row, Table, Target
from e2e.ratios import paired

from .contestants import CONTESTANTS, OURS, REQUIRED, compared_with

PACKAGES = ("boto3", "litdata", "numpy", "obstore", "pillow", "ray", "s3torchconnector", "torch", "torchvision", "uvloop", "webdataset")
MAX_MILLISECONDS = 1.0
MAX_RESUME_SECONDS = 0.3


def loaders_table(rates: Mapping[str, Sequence[float]], photos: str) -> Table:
    """Samples per CPU second of all contestants: ours have to reach their targets against each of the others."""
    rows = [Row(name, list(rounds)) for name, rounds in rates.items()]
    comparisons = [
        Comparison(ours, ours, name, f"of {name}", Target(at_least=REQUIRED[CONTESTANTS[name][1]]))
        for name in rates
        if (ours := compared_with(name)) in rates and ours is not None
    ]
    return Table(f"Loaders, {photos}", "samples per CPU second", rows, comparisons)


def layer_table(milliseconds: Sequence[float]) -> Table:
    """CPU time of the Python layer, against the most that it may take."""
    what = "CPU milliseconds of the consumer's thread per batch of 256"
    return bounded_table("Python layer", what, "`next(loader)`", milliseconds, MAX_MILLISECONDS)


def resume_table(seconds: Sequence[float]) -> Table:
    """CPU time of a resume, against the most that it may take."""
    name = "load the saved list, make a reader, `load_state_dict`"
    return bounded_table("Resume at 1,000,000 objects", "CPU seconds", name, seconds, MAX_RESUME_SECONDS)


def bounded_table(title: str, unit: str, name: str, rounds: Sequence[float], at_most: float) -> Table:
    """One row of measurements, and one that repeats the most that they may be."""
    bound = "the most it may take"
    rows = [Row(name, list(rounds)), Row(bound, [at_most] * len(rounds))]
    return Table(title, unit, rows, [Comparison(name, name, bound, f"of {bound}", Target(at_most=1.0))])


def shared_table(ratios: Sequence[float]) -> Table:
    """Batches whose tensor is the buffer that Rust stacked into."""
    name, all_batches = "tensor at the address of Rust's buffer", "all batches"
    rows = [Row(name, list(ratios)), Row(all_batches, [1.0] * len(ratios))]
    return Table("Copies", "share of batches", rows, [Comparison(name, name, all_batches, "of all", Target(at_least=1.0))])


def missed_targets(tables: Sequence[Table]) -> list[str]:
    """The comparisons that miss their target."""
    missed = []
    for table in tables:
        rounds = {row.name: row.rounds for row in table.rows}
        for each in table.comparisons:
            ratio = paired(rounds[each.numerator], rounds[each.denominator])
            if each.target is not None and not each.target.is_met(ratio):
                missed.append(f"{table.title}: {each.row} {each.what}, target {each.target}")
    return missed


def results(tables: list[Table], settings: Mapping[str, str]) -> ComponentResults:
    """The results with this machine and the settings of the contestants."""
    described = {
        "cpu": machine.cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": os.uname().release,
        "load_average_at_the_end": list(os.getloadavg()),
        "commit": machine.commit()[0],
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "settings": dict(settings),
    }
    return ComponentResults(int(time.time()), described, settings.get(OURS, ""), tables)


def write(found: ComponentResults, folder: Path) -> Path:
    """Writes the results as JSON, and returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"python-{found.unix_seconds}.json"
    document: dict[str, Any] = {"format": FORMAT} | asdict(found)
    file.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return file
