"""Two addresses: a reader signs for the store, and a gateway beside it computes what was signed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pushdown
from pushdown import Store
from samples import PIPELINE, samples
from stores import start_gateway


@pytest.fixture(scope="module")
def gateway(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway without an upstream, which may fetch from the store of the photos."""
    with contextlib.ExitStack() as running:
        folder = tmp_path_factory.mktemp("beside") / "gateway"
        process, addresses = start_gateway(folder, allow_store=world.upstream)
        running.callback(process.stop)
        yield f"http://{addresses['listen']}"


@pytest.fixture
def both(world: Any, gateway: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of the tests, with both addresses."""
    return {**options, "store": Store(endpoint=world.upstream), "gateway": gateway}


def test_the_values_are_those_of_one_address(source: str, options: dict[str, Any], both: dict[str, Any]) -> None:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected = samples(reader)
    for mode in ("pushdown", "auto", "plain"):
        with pushdown.Reader(source, PIPELINE, **{**both, "mode": mode}) as reader:
            assert samples(reader) == expected, mode
    store_alone = {**both, "gateway": None}
    with pushdown.Reader(source, PIPELINE, **store_alone) as reader:
        assert samples(reader) == expected


def test_stats_name_both_addresses_and_count_their_bytes(
    source: str, world: Any, gateway: str, both: dict[str, Any]
) -> None:
    for mode in ("pushdown", "plain"):
        with pushdown.Reader(source, PIPELINE, **{**both, "mode": mode}) as reader:
            samples(reader)
            stats = reader.stats
        assert (stats.endpoint, stats.gateway) == (world.upstream, gateway)
        assert (stats.gateway_bytes_down > 0) == (mode == "pushdown")
        assert stats.wire_bytes_down >= stats.gateway_bytes_down
        assert f"from the gateway {gateway}, the rest from the store {world.upstream}" in str(stats)


def test_a_gateway_of_the_environment_is_used(
    source: str, both: dict[str, Any], gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUSHDOWN_GATEWAY_URL", gateway)
    with pushdown.Reader(source, PIPELINE, **{**both, "gateway": None, "mode": "pushdown"}) as reader:
        samples(reader)
        assert reader.stats.gateway == gateway


def test_single_values_lists_and_sidecars(world: Any, both: dict[str, Any]) -> None:
    connection = {"store": both["store"], "gateway": both["gateway"]}
    photos = pushdown.list("s3://photos/train/", **connection)
    keys = photos.keys()
    url, pipeline = f"s3://photos/{keys[0]}", "decode | resize(16, 16)"
    expected = pushdown.get(url, pipeline, store=Store(endpoint=world.upstream))
    assert np.array_equal(np.asarray(pushdown.get(url, pipeline, **connection)), np.asarray(expected))
    world.s3.create_bucket(Bucket="sidecars")
    for number in range(4):
        body = world.s3.get_object(Bucket="photos", Key=keys[number])["Body"].read()
        world.s3.put_object(Bucket="sidecars", Key=f"{number}.jpg", Body=body)
        world.s3.put_object(Bucket="sidecars", Key=f"{number}.cls", Body=str(number))
    labels = pushdown.Sidecar(".cls")
    with pushdown.Reader("s3://sidecars/", pipeline, batch_size=2, labels=labels, mode="pushdown", **connection) as reader:
        found = {key: label for batch in reader for key, label in zip(batch.keys, np.asarray(batch.y), strict=True)}
    assert found == {f"{number}.jpg": number for number in range(4)}


def test_an_address_that_is_no_gateway_is_refused(source: str, world: Any, both: dict[str, Any]) -> None:
    nowhere = {**both, "gateway": world.admin}
    reader = pushdown.Reader(source, PIPELINE, **{**nowhere, "mode": "pushdown"})
    with pytest.raises(pushdown.NotAGatewayError, match="list no features"), reader:
        samples(reader)
    with pushdown.Reader(source, PIPELINE, **{**nowhere, "mode": "auto"}) as reader:
        assert samples(reader)
        assert reader.mode == "plain"
