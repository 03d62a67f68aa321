"""What a reader has done so far."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

__all__ = ["Replica", "Stats"]

# Below this share of waiting, training itself takes the time.
_IDLE_RATIO = 0.02
_TRAINING = "the training"


@dataclass(frozen=True, slots=True)
class Replica:
    """One of the addresses of a gateway."""

    id: str
    """What it states, or its address."""
    address: str
    """Its URL, with the address that the host of the URL has."""
    state: str
    """"serving", "draining" or "gone"."""
    cores: float | None = None
    """For steps; `None` if it does not state them."""
    samples: int = 0
    """Samples that it has delivered."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of one iteration. `str()` is a summary for people, `verdict()` its conclusion."""

    samples: int = 0
    """Samples handed over with a value."""
    errors: int = 0
    """Samples that failed. `on_error` decides whether they were reported, dropped, or ended the iteration."""
    skipped: int = 0
    """Samples passed over at the start, to resume."""
    value_bytes: int = 0
    """Bytes of received values, each at the stage at which it arrived."""
    wire_bytes_down: int = 0
    """Bytes received from store and gateway, including HTTP heads, framing and TLS."""
    wire_bytes_up: int = 0
    """Bytes sent to them, counted in the same way."""
    gateway_bytes_down: int = 0
    """Bytes of them that were received from the gateway of `gateway=`."""
    gateway_bytes_up: int = 0
    """Bytes of them that were sent to it."""
    stored_bytes: int = 0
    """Stored size of the objects whose values arrived, where it is known."""
    cache_hits: int = 0
    """Values read from the value cache."""
    cache_writes: int = 0
    """Values written to the value cache."""
    cropped_samples: int = 0
    """Samples that arrived as cropped JPEGs: without the blocks that no step reads."""
    gateway_cache_hits: int = 0
    """Values that the gateway read from its result cache."""
    gateway_shared: int = 0
    """Values that the gateway computed once for several requests in flight."""
    gateway_prefix_hits: int = 0
    """Values that the gateway computed from a cached value of an earlier stage."""
    retries: int = 0
    """Requests that were repeated."""
    waiting_seconds: float = 0.0
    """Time for which the consumer waited for data."""
    elapsed_seconds: float = 0.0
    """Time from the first request for a batch until now, or until the iteration ended."""
    bottleneck: str | None = None
    """What limits the plan, such as "the link"; `None` without a plan."""
    endpoint: str = ""
    """URL of the store, or of a gateway in its place."""
    gateway: str | None = None
    """URL of the gateway of `gateway=`; `None` without one."""
    replicas: tuple[Replica, ...] = ()
    """The replicas of the gateway, once its address is looked up."""

    @classmethod
    def from_json(cls, text: str, elapsed_seconds: float = 0.0, plan: str | None = None) -> Stats:
        """The stats of a native reader, with the bottleneck that its plan names. Unknown counts are left out."""
        counts = json.loads(text)
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in counts.items() if name in names}
        known["replicas"] = tuple(Replica(**replica) for replica in counts.get("replicas", ()))
        return cls(**{**known, "elapsed_seconds": elapsed_seconds, "bottleneck": _bottleneck(plan)})

    @property
    def waiting_ratio(self) -> float:
        """Share of the time for which the consumer waited, from 0 to 1."""
        return min(1.0, self.waiting_seconds / self.elapsed_seconds) if self.elapsed_seconds > 0 else 0.0

    @property
    def saved_ratio(self) -> float:
        """Share of the stored bytes that did not cross the link, from 0 to 1; 0 if more bytes crossed it."""
        return max(0.0, 1.0 - self.wire_bytes_down / self.stored_bytes) if self.stored_bytes else 0.0

    @property
    def samples_per_second(self) -> float:
        """Samples handed over per second."""
        return self.samples / self.elapsed_seconds if self.elapsed_seconds > 0 else 0.0

    def verdict(self) -> str:
        """One line: how long training waited for data, and what limits it."""
        if self.elapsed_seconds <= 0:
            return "nothing was read yet"
        limit = self.bottleneck or "reading"
        if self.waiting_ratio < _IDLE_RATIO:
            limit = _TRAINING
        elif limit == _TRAINING:
            # The plan expects training to be slowest, and yet it waits.
            limit = "reading"
        return f"waited {self.waiting_ratio:.0%} of the time; {limit} is the bottleneck".replace("%", " %", 1)

    def _other_gateway_values(self) -> str:
        """Values for which the gateway computed less than all steps, if there are any."""
        counts = [
            (self.gateway_shared, "shared with other requests"),
            (self.gateway_prefix_hits, "continued from cached values"),
        ]
        return "".join(f", {count:,} {name}" for count, name in counts if count)

    def __str__(self) -> str:
        lines = [
            f"{self.samples:,} samples in {self.elapsed_seconds:.1f} s ({self.samples_per_second:,.0f} samples/s), "
            f"{self.errors:,} errors, {self.retries:,} retries",
            f"received {_size(self.wire_bytes_down)} for {_size(self.stored_bytes)} stored ({self.saved_ratio * 100:.0f} % saved)",
            f"from caches: {self.cache_hits:,} of the value cache, {self.gateway_cache_hits:,} of the gateway's result cache"
            + self._other_gateway_values(),
            self.verdict(),
        ]
        if self.cropped_samples:
            lines.insert(2, f"{self.cropped_samples:,} samples arrived as cropped JPEGs")
        if self.gateway is not None:
            lines.insert(
                2,
                f"of that, {_size(self.gateway_bytes_down)} from the gateway {self.gateway}, the rest from the store {self.endpoint}",
            )
        if len(self.replicas) > 1:
            states = ", ".join(f"{replica.id} {replica.samples:,} ({replica.state})" for replica in self.replicas)
            lines.insert(-1, f"samples of replicas: {states}")
        return "\n".join(lines)


def _bottleneck(plan: str | None) -> str | None:
    """The tier after "limited by" in the first line of a plan."""
    _, found, tier = (plan or "").partition("\n")[0].partition("limited by ")
    return tier.strip() if found else None


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
