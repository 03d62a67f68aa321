"""A projection and a filter of TPC-H's `lineitem`: pushed down, by range requests, and by pyarrow and DuckDB."""

import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import programs
from stack import BUCKET

from .. import arms
from ..query import PIPELINE
from ..results import Arm, Cell
from ..scenario import OPEN, Link, Scenario
from ..tiers import ArmError, Tiers
from . import RunContext, build_cell, cell_notes, interleave

# The newest DuckDB reads through pyarrow. The DuckDB that reads objects itself is older and has its own environment.
ENVIRONMENTS = {"duckdb-httpfs": ".venv-e2e-duckdb"}
# Our reader in Rust, and readers in Python: the kind and the method of each arm. `plain` downloads the whole object and
# filters it.
READERS = {"pushed": ("pushed", "pushed"), "ranges": ("pushed", "ranges"), "auto": ("auto", "smallest")}
PEERS = {"plain": ("plain", "download"), "repeat": ("repeat", "download")}
PEERS |= {"pyarrow": ("alternative", "pyarrow"), "duckdb": ("alternative", "duckdb")}
PEERS |= {"duckdb-httpfs": ("alternative", "duckdb-httpfs"), "pushed-boto3": ("pushed", "pushed")}

ARMS = (*READERS, *PEERS, arms.REPEAT)


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each link."""
    key = context.data.tables()[scenario.data]
    for text in scenario.links:
        link = Link.parse(text)
        yield measure_cell(scenario, context, link, key)


def measure_cell(scenario: Scenario, context: RunContext, link: Link, key: str) -> Cell:
    """All arms, with warm readers."""
    with ExitStack() as stack:
        readers = {name: stack.enter_context(TableReader(name, context.tiers, key)) for name in scenario.arms}
        # Warm up over an open link: over a slow one the first read would take most of the time.
        context.tiers.shape(OPEN)
        for reader in readers.values():
            reader.read()
        measured = context.tiers.shape(link.bits(None), scenario.latency_ms)
        measured_arms = {name: Arm(reader.kind, reader.settings) for name, reader in readers.items()}

        def run_trial(name: str) -> None:
            measured_arms[name].trials.append(context.tiers.run_trial(readers[name].read))

        interleave(list(measured_arms), scenario.rounds, run_trial, context.progress)
    rows = {trial.rows for arm in measured_arms.values() for trial in arm.trials}
    if len(rows) != 1:
        raise ArmError(f"{key}: expected the same number of rows from all arms, found {rows}")
    name = f"lineitem {scenario.data}"
    notes = [*cell_notes(scenario, context), f"{rows.pop():,} rows of `{PIPELINE}`", "every reader is one warm process"]
    return build_cell(f"{name}, {link.text} link", name, measured_arms, notes, requested=link.bits(None), measured=measured)


def interpreter(method: str) -> pathlib.Path:
    """The Python with the packages of a method."""
    return programs.ROOT / ENVIRONMENTS.get(method, ".venv-e2e") / "bin/python"


class TableReader:
    """A warm process that reads the table once per request."""

    def __init__(self, name: str, tiers: Tiers, key: str) -> None:
        base = arms.base_name(name)
        stack, (kind, method) = tiers.stack, (READERS | PEERS)[base]
        self.kind, self.method = kind if base == name else "repeat", method
        if base in READERS:
            command = [programs.BINARIES / "table-reader", method, stack.gateway, BUCKET, key, PIPELINE]
            self.settings = f"`pushdown-client`, {method}"
        else:
            endpoint = stack.gateway if method == "pushed" else stack.store
            command = [interpreter(method), "-m", "e2e.peers.table", method, endpoint, BUCKET, key]
            self.settings = f"{method} in Python"
        pinned = lambda: os.sched_setaffinity(0, tiers.host_cores)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": os.environ | programs.KEYS}
        self.process = subprocess.Popen(list(map(str, command)), preexec_fn=pinned, **pipes)

    def __enter__(self) -> "TableReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def read(self) -> dict:
        """Reads once. Returns the figures as an epoch of one sample."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise ArmError(f"{self.settings}: exited with {self.process.wait()}")
        figures = json.loads(line)
        epoch = {"samples": 1, "errors": 0, "epoch_seconds": [figures["seconds"]], "cpu_seconds": figures["cpu"]}
        # Our own reader does not report the bytes of values.
        return epoch | {"value_bytes": figures.get("bytes"), "rows": figures["rows"]}
