"""A projection and a filter of TPC-H's `lineitem`: pushed down, by ranges, and as pyarrow and DuckDB read it."""

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
from . import Run, cell_of, circumstances, in_turns

# The newest DuckDB reads through pyarrow; the one that reads objects itself is an older one, in an environment of its own.
ENVIRONMENTS = {"duckdb-httpfs": ".venv-e2e-duckdb"}
# Ours in Rust, and what others do in Python. `plain` is the nearest to a GET: the whole object, filtered here; `again` is the
# same once more, and takes as long.
OURS = {"pushed": ("pushed", "pushed"), "ranges": ("pushed", "ranges"), "auto": ("auto", "smallest")}
PEERS = {"plain": ("plain", "download"), "again": ("again", "download")}
PEERS |= {"pyarrow": ("rival", "pyarrow"), "duckdb": ("rival", "duckdb")}
PEERS |= {"duckdb-httpfs": ("rival", "duckdb-httpfs"), "pushed-boto3": ("pushed", "pushed")}

ARMS = (*OURS, *PEERS, arms.AGAIN)


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each link."""
    key = run.data.tables()[scenario.data]
    for text in scenario.links:
        link = Link.parse(text)
        yield cell(scenario, run, link, key)


def cell(scenario: Scenario, run: Run, link: Link, key: str) -> Cell:
    """All ways in turns, of readers that are warm."""
    with ExitStack() as stack:
        readers = {name: stack.enter_context(Reader(name, run.tiers, key)) for name in scenario.arms}
        # What the first connection and the first rows cost does not count, and over a thin link would take most of the time.
        run.tiers.shape(OPEN)
        for reader in readers.values():
            reader.read()
        measured = run.tiers.shape(link.bits(None), scenario.latency_ms)
        found = {name: Arm(reader.kind, reader.settings) for name, reader in readers.items()}

        def turn(name: str) -> None:
            found[name].turns.append(run.tiers.turn(readers[name].read))

        in_turns(list(found), scenario.repeats, turn, run.progress)
    rows = {turn.rows for arm in found.values() for turn in arm.turns}
    if len(rows) != 1:
        raise ArmError(f"{key}: the ways found different numbers of rows: {rows}")
    name = f"lineitem {scenario.data}"
    notes = [*circumstances(scenario, run), f"{rows.pop():,} rows of `{PIPELINE}`", "every reader is a process that stays"]
    return cell_of(f"{name}, {link.text} link", name, found, notes, asked=link.bits(None), measured=measured)


def python(way: str) -> pathlib.Path:
    """The interpreter that has what a way of others needs."""
    return programs.ROOT / ENVIRONMENTS.get(way, ".venv-e2e") / "bin/python"


class Reader:
    """A process that has imported what it needs, and reads when it is told to."""

    def __init__(self, name: str, tiers: Tiers, key: str) -> None:
        stack, (kind, way) = tiers.stack, (OURS | PEERS)[arms.once(name)]
        self.kind, self.way = kind if arms.once(name) == name else "again", way
        if arms.once(name) in OURS:
            command = [programs.BINARIES / "table-reader", way, stack.gateway, BUCKET, key, PIPELINE]
            self.settings = f"`pushdown-client`, {way}"
        else:
            endpoint = stack.gateway if way == "pushed" else stack.store
            command = [python(way), "-m", "e2e.peers.table", way, endpoint, BUCKET, key]
            self.settings = f"{way} in Python"
        pinned = lambda: os.sched_setaffinity(0, tiers.here)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": os.environ | programs.KEYS}
        self.process = subprocess.Popen(list(map(str, command)), preexec_fn=pinned, **pipes)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def read(self) -> dict:
        """Once; the figures as those of an epoch of one sample."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise ArmError(f"{self.settings}: ended with {self.process.wait()}")
        figures = json.loads(line)
        ours = {"samples": 1, "errors": 0, "epoch_seconds": [figures["seconds"]], "cpu_seconds": figures["cpu"]}
        # Our own reader does not tell how many bytes of values it had.
        return ours | {"value_bytes": figures.get("bytes"), "rows": figures["rows"]}
