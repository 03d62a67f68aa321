"""The stats of a reader say what came from the gateway's result cache, and what from its own value cache."""

from __future__ import annotations

import contextlib
import pathlib
from typing import Any

import pushdown
from pushdown import Plan, Store
from stores import start_gateway

# So many steps that a hit is cheaper than computing also where tests run slowly, and values that are smaller than each object.
PIPELINE = "decode | resize(800, 800) | resize(8, 6)"


def test_stats_name_the_hits_of_both_caches(options: dict[str, Any], source: str, world: Any, tmp_path: pathlib.Path) -> None:
    with contextlib.ExitStack() as running:
        gateway, addresses = start_gateway(tmp_path / "gateway", upstream=world.upstream, cache_memory="64MiB")
        running.callback(gateway.stop)
        settings = {
            **options,
            "store": Store(endpoint=f"http://{addresses['listen']}"),
            "mode": "pushdown",
            "plan": Plan(split="full"),
        }

        def read(epochs: int, **more: Any) -> list[pushdown.Stats]:
            stats = []
            with pushdown.Reader(source, PIPELINE, **settings, **more) as reader:
                for _ in range(epochs):
                    samples = sum(len(batch) for batch in reader)
                    assert samples == reader.stats.samples > 0
                    stats.append(reader.stats)
            return stats

        first, second = read(2)
        assert (first.gateway_cache_hits, first.cache_hits) == (0, 0)
        count = first.samples
        assert (second.gateway_cache_hits, second.cache_hits) == (count, 0)
        assert f"from caches: 0 of the value cache, {count:,} of the gateway's result cache" in str(second)
        # Another job: its first epoch fills the value cache from the gateway's, and its second one needs no gateway.
        third, fourth = read(2, value_cache=tmp_path / "values")
        assert (third.gateway_cache_hits, third.cache_hits) == (count, 0)
        assert fourth.cache_hits == third.cache_writes > 0
        assert fourth.cache_hits + fourth.gateway_cache_hits == count
