"""Labels beside the photos: in sidecar objects, in manifests, and from functions."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Store

BUCKET = "labelled"


@pytest.fixture(scope="module")
def labelled(world: Any) -> str:
    """Eight photos `n.jpg`, each with its number in `n.cls`, and manifests of them."""
    s3 = world.s3
    s3.create_bucket(Bucket=BUCKET)
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket="photos", Prefix="train/exif/jpeg")["Contents"]]
    for number, key in enumerate(keys):
        s3.put_object(Bucket=BUCKET, Key=f"set/{number}.jpg", Body=s3.get_object(Bucket="photos", Key=key)["Body"].read())
        s3.put_object(Bucket=BUCKET, Key=f"set/{number}.cls", Body=str(number))
    names = [f"set/{number}.jpg" for number in range(len(keys))][::-1]
    table = pa.table({"path": names, "label": [f"class {n % 2}" for n in range(len(names))]})
    body = io.BytesIO()
    pq.write_table(table, body)
    s3.put_object(Bucket=BUCKET, Key="train.parquet", Body=body.getvalue())
    lines = [f"{name},{n % 2}" for n, name in enumerate(names)]
    s3.put_object(Bucket=BUCKET, Key="train.csv", Body="\n".join(["path,label", *lines]))
    return f"s3://{BUCKET}/"


def labels_of(source: Any, endpoint: str, labels: Any) -> dict[str, Any]:
    store = Store(endpoint=endpoint)
    with pushdown.Reader(source, "decode | resize(8, 8)", store=store, batch_size=3, seed=1, labels=labels) as reader:
        found: dict[str, Any] = {}
        for batch in reader:
            values = batch.y if isinstance(batch.y, list) else np.asarray(batch.y).tolist()
            found |= dict(zip(batch.keys, values, strict=True))
        return found


def test_sidecars_are_labels_and_no_samples(endpoint: str, labelled: str) -> None:
    found = labels_of(f"{labelled}set/", endpoint, pushdown.Sidecar(".cls"))
    assert found == {f"set/{n}.jpg": n for n in range(8)}


def test_patterns_functions_and_dicts(endpoint: str, labelled: str) -> None:
    keys = [f"{labelled}set/{n}.jpg" for n in range(8)]
    assert labels_of(keys, endpoint, r"(\d)\.jpg") == {f"set/{n}.jpg": n for n in range(8)}
    assert labels_of(keys, endpoint, lambda key: int(key[4]) * 10) == {f"set/{n}.jpg": n * 10 for n in range(8)}
    by_key = {f"set/{n}.jpg": 7 - n for n in range(8)}
    assert labels_of(keys, endpoint, by_key) == by_key


@pytest.mark.parametrize(
    "name, labels", [("train.parquet", ["class 0", "class 1"]), ("train.csv", [0, 1])], ids=["parquet", "csv"]
)
def test_a_manifest_is_source_order_and_labels(
    endpoint: str, labelled: str, name: str, labels: list[Any]
) -> None:
    manifest = pushdown.Manifest(f"{labelled}{name}", key="path", label="label")
    with pushdown.Reader(manifest, "decode | resize(8, 8)", store=Store(endpoint=endpoint), batch_size=3) as reader:
        keys = [key for batch in reader for key in batch.keys]
    assert keys == [f"set/{n}.jpg" for n in range(8)][::-1], "without a seed in the order of the manifest"
    found = labels_of(manifest, endpoint, None)
    assert [found[key] for key in keys] == labels * 4


def test_a_missing_label_names_the_object(endpoint: str, labelled: str) -> None:
    with pytest.raises(pushdown.ConfigError, match=r"set/3\.jpg"):
        labels_of(f"{labelled}set/", endpoint, {f"set/{n}.jpg": n for n in range(8) if n != 3} | {f"set/{n}.cls": 0 for n in range(8)})
