"""A gateway in front of another store gives the same samples as one over its embedded store, each exactly once."""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import Any

import pytest

import pushdown
from samples import PIPELINE, samples
from stores import REAL_STORES, Store, start_gateway, start_real_store, start_seaweedfs

NAMED = os.environ.get("PUSHDOWN_TEST_BACKENDS", "seaweedfs").split(",")


@pytest.mark.parametrize("name", ["seaweedfs", *REAL_STORES])
def test_another_store_gives_the_same_samples(
    name: str,
    options: dict[str, Any],
    source: str,
    world: Any,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name not in NAMED:
        pytest.skip(f"PUSHDOWN_TEST_BACKENDS does not name {name}")
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected, digest = samples(reader), reader.objects.digest
    with contextlib.ExitStack() as running:
        if name in REAL_STORES:
            process, address, fields = start_real_store(name, tmp_path / name)
        else:
            process, address = start_seaweedfs(tmp_path / name)
            fields = {}
        running.callback(process.stop)
        store = Store(name, f"http://{address}", "", pathlib.Path(), **fields)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.keys.access)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.keys.secret)
        s3 = store.client()
        s3.create_bucket(Bucket="photos")
        for entry in world.s3.list_objects_v2(Bucket="photos")["Contents"]:
            body = world.s3.get_object(Bucket="photos", Key=entry["Key"])["Body"].read()
            s3.put_object(Bucket="photos", Key=entry["Key"], Body=body)
        gateway, addresses = start_gateway(tmp_path / "gateway", upstream=f"http://{address}")
        running.callback(gateway.stop)
        for mode in ("pushdown", "plain", "auto"):
            settings = {**options, "store": pushdown.Store(endpoint=f"http://{addresses['listen']}"), "mode": mode}
            with pushdown.Reader(source, PIPELINE, **settings) as reader:
                assert samples(reader) == expected
                assert reader.objects.digest == digest, "the order of a data set does not depend on the store"
