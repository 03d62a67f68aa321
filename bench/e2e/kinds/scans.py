"""Many scans of a table at once within a small budget of memory: each ends, in 200 or 503."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions
import programs
from stack import BUCKET

from ..query import COLUMNS
from ..results import Arm, Cell
from ..scenario import OPEN, Scenario
from ..tiers import ArmError
from . import Run, cell_of, circumstances, in_turns

# All scans have ended within so many seconds.
WITHIN = 120
PIPELINE = f"select(columns=[{', '.join(COLUMNS)}])"


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each number of scans."""
    run.tiers.shape(OPEN, scenario.latency_ms)
    key = run.data.tables()["as made"]
    for count in scenario.sizes:
        yield cell(scenario, run, count, key)


def cell(scenario: Scenario, run: Run, count: int, key: str) -> Cell:
    """So many scans at once."""
    found = {"pushed": Arm("pushed", f"boto3, {count} threads")}
    answers: Counter = Counter()

    def scans() -> dict:
        figures, statuses = storm(run.tiers.stack.gateway, key, count)
        answers.update(statuses)
        return figures

    in_turns(["pushed"], scenario.repeats, lambda name: found[name].turns.append(run.tiers.turn(scans)), run.progress)
    statuses = ", ".join(f"{status}: {times}" for status, times in sorted(answers.items()))
    notes = [*circumstances(scenario, run), f"answers by status: {statuses}", f"all within {WITHIN} s; `{PIPELINE}` of {key}"]
    return cell_of(f"{count} scans at once, {' '.join(scenario.gateway_flags)}", "scans", found, notes)


def storm(endpoint: str, key: str, count: int) -> tuple[dict, Counter]:
    """All of them, from threads of this process."""
    client = programs.s3(endpoint, retries={"total_max_attempts": 1}, max_pool_connections=count, read_timeout=WITHIN)
    ask = lambda request, **_: request.headers.add_header("x-pushdown-pipeline", PIPELINE)
    client.meta.events.register("before-sign.s3.GetObject", ask)

    def scan(_: int) -> tuple[int, int]:
        try:
            body = client.get_object(Bucket=BUCKET, Key=key)["Body"]
            return 200, sum(map(len, body.iter_chunks(1 << 20)))
        except botocore.exceptions.ClientError as error:
            return error.response["ResponseMetadata"]["HTTPStatusCode"], 0

    started, cpu = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(scan, range(count)))
    took = time.monotonic() - started
    statuses = Counter(status for status, _ in answers)
    sizes = {size for status, size in answers if status == 200}
    if took > WITHIN or not set(statuses) <= {200, 503} or len(sizes) > 1:
        raise ArmError(f"{count} scans: {dict(statuses)} after {took:.0f} s of {WITHIN}, answers of {sizes} bytes")
    figures = {"samples": count, "errors": statuses[503], "epoch_seconds": [took], "cpu_seconds": time.process_time() - cpu}
    return figures | {"value_bytes": sum(size for _, size in answers)}, statuses
