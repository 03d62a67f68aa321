"""Two addresses: a reader signs for the store, and a gateway beside it computes what was signed."""

from __future__ import annotations

import contextlib
import copy
import pathlib
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import pushdown
from pushdown import Store
from samples import PIPELINE, Sample, samples
from stores import start_aws_front, start_gateway

MODES = ("pushdown", "auto", "plain")


def test_the_values_are_those_of_one_address(source: str, options: dict[str, Any], both: dict[str, Any]) -> None:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected = samples(reader)
    for mode in MODES:
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


def test_several_urls_are_replicas(
    source: str, options: dict[str, Any], both: dict[str, Any], gateway: str, world: Any, tmp_path: pathlib.Path
) -> None:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected = samples(reader)
    with contextlib.ExitStack() as running:
        process, addresses = start_gateway(tmp_path / "other", allow_store=world.upstream)
        running.callback(process.stop)
        urls = [gateway, f"http://{addresses['listen']}"]
        with pushdown.Reader(source, PIPELINE, **{**both, "gateway": urls, "mode": "pushdown"}) as reader:
            assert samples(reader) == expected
            stats = reader.stats
    assert {replica.state for replica in stats.replicas} == {"serving"} and len(stats.replicas) == 2
    assert sum(replica.samples for replica in stats.replicas) == len(expected)


def test_a_gateway_of_the_environment_is_used(
    source: str, both: dict[str, Any], gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUSHDOWN_GATEWAY_URL", gateway)
    with pushdown.Reader(source, PIPELINE, **{**both, "gateway": None, "mode": "pushdown"}) as reader:
        samples(reader)
        assert reader.stats.gateway == gateway


def test_an_empty_address_is_no_gateway_whatever_the_environment_has(
    source: str, both: dict[str, Any], gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUSHDOWN_GATEWAY_URL", gateway)
    with pushdown.Reader(source, PIPELINE, **{**both, "gateway": ""}) as reader:
        samples(reader)
        assert (reader.mode, reader.stats.gateway) == ("plain", None)
    monkeypatch.setenv("PUSHDOWN_GATEWAY_URL", "")
    with pushdown.Reader(source, PIPELINE, **{**both, "gateway": None}) as reader:
        samples(reader)
        assert (reader.mode, reader.stats.gateway) == ("plain", None)


def test_the_address_of_the_store_is_no_second_one(
    source: str, options: dict[str, Any], endpoint: str
) -> None:
    """However it is written: a gateway in place of its store forwards what it does not compute."""
    with pushdown.Reader(source, PIPELINE, **{**options, "gateway": f"{endpoint}/", "mode": "pushdown"}) as reader:
        assert samples(reader)
        assert reader.stats.gateway is None


def read_all(reader: pushdown.Reader) -> tuple[list[Sample], str | None]:
    """The samples, and the gateway that the reader had."""
    with reader:
        return samples(reader), reader.stats.gateway


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_reader_keeps_both_addresses_in_another_process(
    source: str, both: dict[str, Any], gateway: str, method: str
) -> None:
    reader = pushdown.Reader(source, PIPELINE, **both, mode="pushdown")
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as processes:
        assert processes.submit(read_all, reader).result(timeout=60) == read_all(reader)


def value_of(url: str, pipeline: str, connection: dict[str, Any]) -> bytes:
    return memoryview(pushdown.get(url, pipeline, **connection)).tobytes()


def test_a_store_keeps_its_gateway_in_another_process(
    source: str, world: Any, both: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of the environment."""
    url, pipeline = f"s3://photos/{pushdown.list(source, store=both['store']).key(0)}", "decode | resize(16, 16)"
    expected = value_of(url, pipeline, {"store": both["store"]})
    connections = [{"store": both["store"], "gateway": both["gateway"]}, {"store": both["store"]}]
    monkeypatch.setenv("PUSHDOWN_GATEWAY_URL", both["gateway"])
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        for connection in connections:
            assert processes.submit(value_of, url, pipeline, connection).result(timeout=60) == expected


def test_copies_of_a_reader_keep_both_addresses(source: str, both: dict[str, Any], gateway: str) -> None:
    reader = pushdown.Reader(source, PIPELINE, **both, mode="pushdown")
    expected = read_all(reader)
    for copied in (pickle.loads(pickle.dumps(reader)), copy.copy(reader), copy.deepcopy(reader)):
        copied.set_epoch(0)
        assert read_all(copied) == expected
    assert expected[1] == gateway


def test_calls_use_both_addresses(source: str, world: Any, both: dict[str, Any]) -> None:
    connection: dict[str, Any] = {"store": both["store"], "gateway": both["gateway"]}
    alone: dict[str, Any] = {"store": both["store"]}
    keys = pushdown.list(source, **connection).keys()
    urls = [f"s3://photos/{key}" for key in keys]
    pipeline = "decode | resize(16, 16)"
    assert pushdown.get(urls[0], **connection) == pushdown.get(urls[0], **alone)
    assert pushdown.get_many(urls, **connection) == pushdown.get_many(urls, **alone)
    values = [pushdown.get_many(urls, pipeline, **each) for each in (connection, alone)]
    for value, expected in zip(*values, strict=True):
        assert np.array_equal(np.asarray(value), np.asarray(expected))
    random = {"seed": 7, "epoch": 3}
    values = [pushdown.get(urls[0], PIPELINE, **random, **settings) for settings in (connection, alone)]
    assert np.array_equal(*(np.asarray(value) for value in values))
    explained = pushdown.explain(source, pipeline, samples=4, **connection)
    assert f"gateway {both['gateway']}" in str(explained) and world.upstream in str(explained)
    # Costs at the gateway: it has measured its steps.
    assert any(stage["gateway_seconds"] > 0 for stage in explained.members["stages"])


def test_a_wrong_gateway_is_an_error_of_a_single_value(source: str, world: Any, both: dict[str, Any]) -> None:
    url = f"s3://photos/{pushdown.list(source, store=both['store']).key(0)}"
    with pytest.raises(pushdown.NotAGatewayError, match="list the feature `stores`"):
        pushdown.get(url, "decode", split=1, store=both["store"], gateway=world.admin)


def test_the_plan_is_made_for_the_gateway(source: str, both: dict[str, Any]) -> None:
    with pushdown.Reader(source, "decode | resize(8, 8)", **both) as reader:
        samples(reader)
        assert reader.mode == "auto"
        # The gateway has said how many it has.
        assert "cores at the gateway" in str(reader.plan)
    with pushdown.Reader(source, "decode | resize(8, 8)", **{**both, "gateway": ""}) as reader:
        samples(reader)
        assert (reader.mode, reader.plan) == ("plain", None)


def test_the_style_of_the_profile_is_that_of_the_store(
    source: str,
    world: Any,
    options: dict[str, Any],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store that serves virtual hosts alone, to sessions alone."""
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected = samples(reader)
    with contextlib.ExitStack() as running:
        front, urls = start_aws_front(tmp_path / "front", world.upstream.removeprefix("http://"))
        running.callback(front.stop)
        allowed = {"allow_store": urls["url"].replace("://", "://*."), "allow_store_network": "127.0.0.0/8"}
        process, addresses = start_gateway(tmp_path / "gateway", **allowed)
        running.callback(process.stop)
        config = tmp_path / "config"
        config.write_text(
            f"[default]\nregion = us-east-1\nendpoint_url = {urls['url']}\ns3 =\n  addressing_style = virtual\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", urls["credentials_url"])
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        settings = {**options, "store": Store(), "gateway": f"http://{addresses['listen']}"}
        for mode in MODES:
            with pushdown.Reader(source, PIPELINE, **{**settings, "mode": mode}) as reader:
                assert samples(reader) == expected
                assert reader.mode == mode
        # Without a gateway beside it the endpoint may be one, and a gateway has no virtual hosts.
        with pytest.raises(pushdown.RefusedError, match="PermanentRedirect"):
            pushdown.list(source, store=Store())


def test_single_values_lists_and_sidecars(world: Any, both: dict[str, Any]) -> None:
    connection: dict[str, Any] = {"store": both["store"], "gateway": both["gateway"]}
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
        # A proxy may answer like this before its gateway has started.
        assert reader.mode == "auto"
