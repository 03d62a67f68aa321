"""The rules of the end-to-end benchmark's comparisons, with their targets, and the arms that they name.

Ratios above 1 are good for the arm that they are about, so costs are divided the other way round than rates.
"""

from dataclasses import dataclass

from .ratios import Target

# Readers of tables that read ranges themselves. The first one is the baseline of its rule.
TABLE_READERS = ("pyarrow", "duckdb", "duckdb-httpfs")
# The highest bandwidth for comparing with a download: 100 Mbit/s, and 5 % since a shaped link passes slightly more or less.
MAX_DOWNLOAD_BITS_PER_SECOND = 105e6
# The highest link, as a multiple of the crossover, for comparing with the upper bound.
MAX_BOUND_LINK_RATIO = 0.3
# Data loaders of others as documented, unlike those that compete for plain reading, which are tuned; and the arms of ours that are
# compared with them. `pushed` leaves the trainer next to nothing to do.
DOCUMENTED_LOADERS, LOADERS = ("webdataset-pil", "datasets"), ("plain", "auto")
# Arms of jobs on one data set: one job without a cache, which is the baseline, and several jobs without and with one.
ONE_JOB, UNSHARED, SHARED = "one", "off", ("memory", "disk")
# Arms with hits only, and the aims of their CPU seconds of store and gateway per hit: the store authorizes each, or is not asked.
MAX_CPU_SECONDS_PER_HIT = {"revalidated": 0.00045, "remembered": 0.00015}
# The arm of a later epoch with all values in memory, and its rate on the wire to that of the link.
ALL_CACHED, MIN_LINK_RATIO = "memory", 0.9
# Arms of a gateway with one replica and with several.
ONE_REPLICA, ALL_REPLICAS = "one-replica", "all-replicas"
# Arms of whole data sets: written as shards, and the steps alone. The most CPU seconds of the client per sample.
MATERIALIZED, STEPS_ALONE = "pushdown", "warm"
MAX_CLIENT_CPU_SECONDS = 60e-6
# Arms of warmed values over a link, and a plain download of as many bytes.
WARMED, DOWNLOAD = "warmed", "download"
# Hits per sample to the announced cached ratio.
MIN_HITS_TO_ANNOUNCED = 0.97


def later(name: str) -> str:
    """The arm with a later epoch of jobs on one data set."""
    return f"{name}:later"


@dataclass(frozen=True)
class Rule:
    """What a ratio divides: a quantity that both sides have, empty for rates; and its target."""

    quantity: str = ""
    target: Target | None = None


# bench/README.md describes the rules. Without a target a ratio is for information.
RULES = {
    # `auto`: to the fastest plain reader, the same in the first epoch, to the best fixed split, bytes of plain reading, upper bound.
    "plain": Rule(target=Target(at_least=0.97)),
    "first": Rule("rate of the first epoch"),
    "best": Rule(target=Target(at_least=0.95)),
    "bytes": Rule("wire bytes", Target(at_least=1)),
    "bound": Rule(target=Target(at_least=0.85)),
    # Tables: to a reader of ranges, CPU of the cheapest of them, to a download.
    "ranges": Rule(target=Target(at_least=0.97)),
    "ranges-cpu": Rule("CPU s", Target(at_least=0.8)),
    "download": Rule(target=Target(at_least=5)),
    # The planner's simulator, with the costs of the same round.
    "simulator": Rule("epoch s", Target(at_least=0.85, at_most=1.15)),
    "trainer-cpu": Rule("samples per CPU s of the host", Target(at_least=1.5)),
    # Jobs on one data set, hits, and later epochs from a result cache.
    "store-bytes": Rule("bytes from the store"),
    "jobs-cpu": Rule("CPU s"),
    "later-cpu": Rule("CPU s of store and gateway"),
    "hit-cpu": Rule("CPU s per hit"),
    "link": Rule("bits/s on the wire"),
    "hits": Rule("hits per sample"),
    "trained": Rule("s to the trained head"),
    # Several replicas, to that many times one.
    "linear": Rule(target=Target(at_least=0.9)),
    # Whole data sets: CPU of others, without and with the store; the limit of our client's CPU; CPU of the steps alone; several replicas to
    # that many times one. Values from a warmed cache, to a download.
    "peer-cpu": Rule("CPU s of gateway and host"),
    "peer-total-cpu": Rule("CPU s"),
    "client-cpu": Rule("CPU s of the host"),
    "step-cpu": Rule("CPU s of the gateway", Target(at_least=0.95)),
    "linear-parts": Rule(target=Target(at_least=0.85)),
    "warm-link": Rule("bytes/s of values", Target(at_least=0.95)),
    # Without noise this would be 1.
    "repeat": Rule("seconds"),
}
# Rules with a target of the cell's own, since it differs between scenarios.
OWN_TARGETS = ("store-bytes", "later-cpu", "hit-cpu", "link", "hits", "peer-cpu", "client-cpu")
