"""A gateway in front of SeaweedFS gives the same samples as one over its embedded store."""

from __future__ import annotations

import contextlib
import pathlib
from typing import Any

import pushdown
from samples import PIPELINE, samples
from stores import Store, start_gateway, start_seaweedfs


def test_seaweedfs_gives_the_same_samples(options: dict[str, Any], source: str, world: Any, tmp_path: pathlib.Path) -> None:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected, digest = samples(reader), reader.objects.digest
    with contextlib.ExitStack() as running:
        weed, address = start_seaweedfs(tmp_path / "weed")
        running.callback(weed.stop)
        s3 = Store("seaweedfs", f"http://{address}", "", pathlib.Path()).client()
        s3.create_bucket(Bucket="photos")
        for entry in world.s3.list_objects_v2(Bucket="photos")["Contents"]:
            body = world.s3.get_object(Bucket="photos", Key=entry["Key"])["Body"].read()
            s3.put_object(Bucket="photos", Key=entry["Key"], Body=body)
        gateway, addresses = start_gateway(tmp_path / "gateway", upstream=f"http://{address}")
        running.callback(gateway.stop)
        for mode in ("pushdown", "plain", "auto"):
            settings = {**options, "endpoint": f"http://{addresses['listen']}", "mode": mode}
            with pushdown.Reader(source, PIPELINE, **settings) as reader:
                assert samples(reader) == expected
                assert reader.objects.digest == digest, "the order of a data set does not depend on the store"
