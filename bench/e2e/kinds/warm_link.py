"""Warmed values over a link, and a plain download of as many bytes.

`pushdown warm` fills the disk cache of a new gateway once per link. A trial of `warmed` reads epochs of hits over the shaped link, and the
later ones count. A trial of `download` GETs objects of the mean size of these values from the store over the same link.
"""

from collections.abc import Iterator

from stack import BUCKET

from .. import arms
from ..results import Arm, Cell
from ..scenario import OPEN, Link, Scenario
from ..targets import DOWNLOAD, WARMED
from ..tiers import ArmError
from . import RunContext, build_cell, cell_notes, forward, interleave, read, result_cache

ARMS = (WARMED, DOWNLOAD)
# Pins take at most half of the cache.
CACHE_FLAGS = ["--memory-budget=2GiB", "--cache-disk=4GiB", "--cache-dir={folder}"]
KEEP = "1h"
CONNECTIONS = 8
# The part of an epoch's values that are hits, from which on a trial measures them.
MIN_HITS = 0.99


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each link. The gateway has the scenario's flags again after the last one."""
    for text in scenario.links:
        yield measure_cell(scenario, context, Link.parse(text))
    context.tiers.shape(OPEN)
    context.tiers.stack.restart_gateway(*scenario.gateway_flags)


def measure_cell(scenario: Scenario, context: RunContext, link: Link) -> Cell:
    """Both arms over one link."""
    tiers, requested = context.tiers, link.bits(None)
    tiers.shape(OPEN)
    result_cache.restart_gateway(scenario, context, CACHE_FLAGS)
    warmed = tiers.run(warm_command(scenario, context))
    # An epoch of hits over the open link, which also tells the size of the values.
    figures = tiers.run(result_cache.reader_command(scenario, context, epoch=0, epochs=1))
    value_bytes = round(figures["value_bytes"] / figures["samples"])
    prefix = context.data.blobs(value_bytes, forward.OBJECTS)
    of_epoch = scenario.samples
    download = forward.reader_command(tiers.stack.store, prefix, forward.OBJECTS, value_bytes, of_epoch, CONNECTIONS)
    epochs = result_cache.reader_command(scenario, context, epoch=1, epochs=scenario.epochs)
    measured = tiers.shape(requested, scenario.latency_ms)
    measured_arms = {
        WARMED: Arm("pushed", f"`pushdown read --split full` after `pushdown warm`; gateway: {' '.join(CACHE_FLAGS).format(folder='DIR')}"),
        DOWNLOAD: Arm("plain", f"`object-reader`: GETs from the store over {CONNECTIONS} connections"),
    }

    def run_trial(name: str) -> None:
        if name == DOWNLOAD:
            trial = tiers.run_trial(lambda: tiers.run(download))
        else:
            trial = result_cache.run_counted(context, lambda: tiers.run(epochs))
            check_hits(trial.cache_values or {}, trial.samples_read)
        measured_arms[name].trials.append(trial)

    interleave(list(measured_arms), scenario.rounds, run_trial, context.progress)
    notes = cell_notes(scenario, context)
    notes.append(f"{warmed['cached']} values of {value_bytes:,} bytes, `{scenario.pipeline}`; downloads are of as many objects of that size")
    notes += [host_note(name, arm) for name, arm in measured_arms.items()]
    name = f"{scenario.group}, {read.link_label(link, requested)}"
    cell = build_cell(name, "warm link", measured_arms, notes, requested=requested, measured=measured)
    cell.baseline = DOWNLOAD
    return cell


def warm_command(scenario: Scenario, context: RunContext) -> list:
    """Fills the cache. It fails if the cache has no room for a value."""
    photos = context.data.photos(scenario.data, scenario.samples)
    line = [arms.PUSHDOWN, "warm", f"s3://{BUCKET}/{photos}", "--pipeline", scenario.pipeline, "--keep", KEEP]
    return [*line, "--endpoint-url", context.tiers.stack.gateway, "--json"]


def check_hits(values: dict[str, float], samples: int) -> None:
    """Raises an ArmError unless nearly all values of a trial are hits."""
    hits = values.get("disk", 0.0) + values.get("memory", 0.0)
    if hits < MIN_HITS * samples:
        raise ArmError(f"expected {samples} values from the cache, found {hits:g}: {values}")


def host_note(name: str, arm: Arm) -> str:
    """The part of a core that an arm takes on the host: from about 0.95 on the host limits it, and not the link."""
    used = [trial.cpu_seconds["host"] / sum(trial.epoch_seconds) for trial in arm.trials]
    return f"`{name}`: {max(used):.2f} of the host's cores used in the busiest round; near their number the host is the limit, not the link"
