"""Concurrent scans of a table with a small memory budget: each must end with 200 or 503."""

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
from . import RunContext, build_cell, cell_notes, interleave

# The most seconds until the last scan ends.
MAX_SECONDS = 120
PIPELINE = f"select(columns=[{', '.join(COLUMNS)}])"


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each number of scans."""
    context.tiers.shape(OPEN, scenario.latency_ms)
    key = context.data.tables()["as generated"]
    for count in scenario.sizes:
        yield measure_cell(scenario, context, count, key)


def measure_cell(scenario: Scenario, context: RunContext, count: int, key: str) -> Cell:
    """`count` concurrent scans."""
    measured_arms = {"pushed": Arm("pushed", f"boto3, {count} threads")}
    answers: Counter = Counter()

    def scans() -> dict:
        figures, statuses = run_scans(context.tiers.stack.gateway, key, count)
        answers.update(statuses)
        return figures

    run_trial = lambda name: measured_arms[name].trials.append(context.tiers.run_trial(scans))
    interleave(["pushed"], scenario.rounds, run_trial, context.progress)
    statuses = ", ".join(f"{status}: {times}" for status, times in sorted(answers.items()))
    notes = [*cell_notes(scenario, context), f"answers by status: {statuses}", f"limit {MAX_SECONDS} s; `{PIPELINE}` of {key}"]
    return build_cell(f"{count} scans at once, {' '.join(scenario.gateway_flags)}", "scans", measured_arms, notes)


def run_scans(endpoint: str, key: str, count: int) -> tuple[dict, Counter]:
    """Runs all scans from threads of this process. Returns the figures, and the answers by status."""
    client = programs.s3(endpoint, retries={"total_max_attempts": 1}, max_pool_connections=count, read_timeout=MAX_SECONDS)
    add_pipeline = lambda request, **_: request.headers.add_header("x-pushdown-pipeline", PIPELINE)
    client.meta.events.register("before-sign.s3.GetObject", add_pipeline)

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
    if took > MAX_SECONDS or not set(statuses) <= {200, 503} or len(sizes) > 1:
        expected = f"expected 200 or 503 within {MAX_SECONDS} s and answers of one size"
        raise ArmError(f"{count} scans: {expected}, found {dict(statuses)} after {took:.0f} s and {sizes} bytes")
    figures = {"samples": count, "errors": statuses[503], "epoch_seconds": [took], "cpu_seconds": time.process_time() - cpu}
    return figures | {"value_bytes": sum(size for _, size in answers)}, statuses
