"""Readers of a gateway with a result cache, and the gateway's counters."""

import json
import shutil
import urllib.request
from collections.abc import Callable

from stack import BUCKET

from .. import arms
from ..results import ORIGINS, Trial
from ..scenario import Scenario
from ..tiers import ArmError, read_metric
from . import RunContext

STORE_BYTES = "pushdown_store_received_bytes_total"
VALUES = 'pushdown_cache_values_total{{origin="{}"}}'
REVALIDATIONS = 'pushdown_cache_revalidations_total{status="3xx"}'


def restart_gateway(scenario: Scenario, context: RunContext, flags: list[str]) -> None:
    """Starts a gateway with these flags and an empty cache; `{folder}` stands for the folder of values on a disk."""
    folder = context.folder / "result-cache"
    shutil.rmtree(folder, ignore_errors=True)
    context.tiers.stack.restart_gateway(*scenario.gateway_flags, *(flag.format(folder=folder) for flag in flags))


def reader_command(scenario: Scenario, context: RunContext, epoch: int, epochs: int, job: int = 0) -> list:
    """A reader of these epochs, which it announces. Each job has an order of its own."""
    prefix = context.data.photos(scenario.data, scenario.samples)
    command = [arms.PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", scenario.pipeline, "--split", "full"]
    command += ["--endpoint-url", context.tiers.stack.gateway, "--batch-size", scenario.batch_size]
    command += ["--seed", job + 1, "--epoch", epoch, "--epochs", epochs, "--step-ms", scenario.trainer_step_ms]
    if scenario.models:
        command += ["--models", context.tiers.stack.model_folder(list(scenario.models))]
    return [*command, "--json"]


def run_counted(context: RunContext, run: Callable[[], dict]) -> Trial:
    """A trial with the gateway's counters."""
    before = read_counters(context)
    trial = context.tiers.run_trial(run)
    sent, values = read_counters(context)
    trial.store_bytes = sent - before[0]
    trial.cache_values = {origin: total - before[1][origin] for origin, total in values.items()}
    return trial


def read_counters(context: RunContext) -> tuple[float, dict[str, float]]:
    """What the gateway has received from the store so far in bytes, and its values by where they came from."""
    sent = read_metric(context.tiers.stack.admin, STORE_BYTES)
    if sent is None:
        raise ArmError(f"{context.tiers.stack.admin}/metrics: expected {STORE_BYTES}, found none")
    read = lambda origin: read_metric(context.tiers.stack.admin, VALUES.format(origin)) or 0.0
    return sent, {origin: read(origin) for origin in ORIGINS}


def read_revalidations(context: RunContext) -> float:
    """Cached values that the store has confirmed with 304 so far."""
    return read_metric(context.tiers.stack.admin, REVALIDATIONS) or 0.0


def read_cached_ratio(context: RunContext) -> float:
    """The cached ratio of the data set with the largest share, which is the only one after a restart; 0 without any."""
    try:
        with urllib.request.urlopen(f"{context.tiers.stack.admin}/status.json", timeout=10) as answer:
            sets = json.load(answer)["cache"]["sets"]
        return float(sets[0]["cached_ratio"]) if sets else 0.0
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ArmError(f"{context.tiers.stack.admin}/status.json: expected the data sets of a result cache, found {error}") from error
