"""A table's projection and filter against DuckDB and pyarrow: tables.py [ROUNDS], what `make bench-tables` runs.

lineitem of TPC-H at scale 1, as it is made and sorted by date, in SeaweedFS. Store and gateway have one core, whoever reads the
other; between them a link of 100 Mbit/s, and an open one. In each round every way reads in its turn, each in a process that has
imported what it needs. CPU seconds are those of the reader and of the gateway, without the store's, which serves all alike; bytes
are those that the link carried. Then fifty scans at once.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions

import links
import programs
from cells import interval
from programs import BINARIES, KEYS, ROOT, run
from stack import BUCKET, HERE, Stack
from table_query import COLUMNS, PIPELINE

PYTHON = ROOT / ".venv-golden-tables/bin/python"
CACHE = ROOT / ".cache/tables"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
# Ours in Rust, and those in Python: the first of them asks the gateway, the others the store.
OURS = {"pushed": "pushed", "by ranges": "ranges", "smallest": "smallest"}
IN_PYTHON = "pushed, in Python"
PEERS = {IN_PYTHON: "pushed", "pyarrow": "pyarrow", "duckdb": "duckdb", "download": "download"}
# Scans at once, within so many seconds.
SCANS, WITHIN, BUDGET = 50, 120, "512MiB"
LINKS = {"open": None, "100 Mbit/s": 100e6}


def lineitem() -> dict[str, pathlib.Path]:
    """The table as the generator makes it, and sorted."""
    made, ordered = CACHE / "lineitem.parquet", CACHE / "sorted.parquet"
    if not ordered.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        generate = PYTHON.with_name("tpchgen-cli")
        subprocess.run([generate, "parquet", "-s", "1", "--tables", "lineitem", "--output-dir", CACHE], check=True)
        sql = f"copy (select * from '{made}' order by l_shipdate) to '{ordered}.new' (format parquet)"
        subprocess.run([PYTHON, "-c", f"import duckdb; duckdb.sql({sql!r})"], check=True)
        pathlib.Path(f"{ordered}.new").rename(ordered)
    return {"lineitem.parquet": made, "sorted.parquet": ordered}


class Reader:
    """A process that has imported what it needs, and reads when it is told to."""

    def __init__(self, way: str, stack: Stack, key: str) -> None:
        if way in OURS:
            command = [BINARIES / "table-reader", OURS[way], stack.gateway, BUCKET, key, PIPELINE]
        else:
            endpoint = stack.gateway if way == IN_PYTHON else stack.store
            command = [PYTHON, ROOT / "scripts/table_peers.py", PEERS[way], endpoint, key, str(10**6)]
        pinned = lambda: os.sched_setaffinity(0, HERE)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(list(map(str, command)), preexec_fn=pinned, **pipes)

    def read(self) -> dict:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def measure(stack: Stack, key: str, rounds: int) -> dict[str, list[dict]]:
    """Every way in its turn, so many times; the first round warms up."""
    readers = {way: Reader(way, stack, key) for way in [*OURS, *PEERS]}
    found: dict[str, list[dict]] = {way: [] for way in readers}
    try:
        for turn in range(rounds + 1):
            for way, figures in found.items():
                before, there = stack.side.received(), stack.cpu_seconds("gateway")
                figure = readers[way].read()
                figure["cpu"] += stack.cpu_seconds("gateway") - there
                figure["link"] = stack.side.received() - before
                if turn:
                    figures.append(figure)
    finally:
        for reader in readers.values():
            reader.stop()
    if len({figure["rows"] for figures in found.values() for figure in figures}) != 1:
        sys.exit(f"the ways found different rows: {found}")
    return found


def report(name: str, found: dict[str, list[dict]]) -> None:
    print(f"\n{name}: {found['pushed'][0]['rows']} rows")
    print("| way | CPU | clock | link | rate of CPU: pushed to it | in Python | by ranges | clock: by ranges to it |")
    print("|---|---|---|---|---|---|---|---|")
    ratio = lambda way, mine, of: "{:.2f} ({:.2f} to {:.2f})".format(
        *interval([theirs[of] / ours[of] for theirs, ours in zip(found[way], found[mine])])
    )
    for way, figures in found.items():
        of = lambda what: statistics.median(figure[what] for figure in figures)
        ratios = [ratio(way, mine, "cpu") for mine in ("pushed", IN_PYTHON, "by ranges")]
        ratios.append(ratio(way, "by ranges", "seconds"))
        cells = [way, f"{of('cpu'):.2f} s", f"{of('seconds'):.2f} s", f"{of('link') / 1e6:.1f} MB", *ratios]
        print(f"| {' | '.join(cells)} |", flush=True)


def storm(stack: Stack) -> None:
    """Many scans of three columns at once, all rows of them."""
    client = programs.s3(stack.gateway, retries={"total_max_attempts": 1}, max_pool_connections=SCANS, read_timeout=WITHIN)
    pipeline = f"select(columns=[{', '.join(COLUMNS)}])"
    ask = lambda request, **_: request.headers.add_header("x-pushdown-pipeline", pipeline)
    client.meta.events.register("before-sign.s3.GetObject", ask)

    def scan(_: int) -> tuple[int, int]:
        try:
            body = client.get_object(Bucket=BUCKET, Key="lineitem.parquet")["Body"]
            return 200, sum(map(len, body.iter_chunks(1 << 20)))
        except botocore.exceptions.ClientError as error:
            return error.response["ResponseMetadata"]["HTTPStatusCode"], 0

    started = time.monotonic()
    with ThreadPoolExecutor(SCANS) as pool:
        answers = list(pool.map(scan, range(SCANS)))
    took, peak = time.monotonic() - started, stack.peak_bytes("gateway")
    counts = Counter(status for status, _ in answers)
    sizes = {size for status, size in answers if status == 200}
    print(f"\n{SCANS} scans at once, {BUDGET} for the gateway: {dict(counts)}, the last after {took:.0f} s of {WITHIN};")
    print(f"each of {', '.join(f'{size / 1e6:.0f} MB' for size in sizes)}; the gateway held {peak >> 20} MiB at most")
    if took > WITHIN or not set(counts) <= {200, 503} or len(sizes) != 1:
        sys.exit("tables: that is not what has to hold")


def main() -> None:
    files = lineitem()
    with links.side() as side, tempfile.TemporaryDirectory() as folder:
        stack = Stack(pathlib.Path(folder), side, [], f"--memory-budget={BUDGET}")
        try:
            stack.upload(files)
            for link, rate in LINKS.items():
                if rate and not side.can_be_shaped:
                    print(f"tables: the link stays open: {side.reason}")
                    continue
                side.shape(rate) if rate else side.open()
                for key in files:
                    found = measure(stack, key, ROUNDS if rate is None else max(ROUNDS // 2, 1))
                    report(f"{key}, {link}", found)
            side.open()
            storm(stack)
        finally:
            stack.stop()


if __name__ == "__main__":
    os.environ |= KEYS
    run(main)
