"""An S3 Inventory is a list of objects for readers and whole data sets."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import ConfigError, ProtocolError, Store

BUCKET = "inventories"


def data_file(format: str, entries: list[dict[str, Any]]) -> tuple[str, bytes]:
    """Schema and content of a data file, as AWS writes it."""
    names = ["Bucket", "Key", "Size", "ETag"]
    rows = [("photos", entry["Key"], entry["Size"], entry["ETag"].strip('"')) for entry in entries]
    body = io.BytesIO()
    if format == "CSV":
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
        return ", ".join(names), gzip.compress(text.getvalue().encode())
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table({name: list(column) for name, column in zip(["bucket", "key", "size", "e_tag"], columns, strict=True)}), body)
    return "message s3.inventory { .. }", body.getvalue()


def put_inventory(world: Any, format: str, claimed: bytes | None = None) -> str:
    """Writes an inventory of the photos. `claimed`: the content that the manifest has the digest of, if it is another one."""
    s3 = world.s3
    if BUCKET not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket=BUCKET)
    schema, content = data_file(format, s3.list_objects_v2(Bucket="photos")["Contents"])
    world.put(BUCKET, "data", content)
    file = {"key": "data", "size": len(content), "MD5checksum": hashlib.md5(claimed or content).hexdigest()}
    manifest = {
        "sourceBucket": "photos",
        "destinationBucket": f"arn:aws:s3:::{BUCKET}",
        "fileFormat": format,
        "fileSchema": schema,
        "files": [file],
    }
    world.put(BUCKET, "manifest.json", json.dumps(manifest).encode())
    return f"s3://{BUCKET}/manifest.json"


@pytest.mark.parametrize("format", ["CSV", "Parquet"])
def test_the_list_is_that_of_a_listing(world: Any, source: str, options: dict[str, Any], format: str) -> None:
    store = options["store"]
    listed = pushdown.list(source, store=store)
    found = pushdown.list(source, inventory=put_inventory(world, format), store=store)
    assert found.digest == listed.digest and len(found) > 10
    # With versions, which a copy of the data set needs.
    pipeline = "decode | resize(8, 8) | encode(png)"
    plan = pushdown.materialize(found, pipeline, f"s3://{BUCKET}/out/", format="wds", dry_run=True, store=store)
    assert plan.samples == len(found)


def test_what_is_wrong_is_named(world: Any, source: str, options: dict[str, Any]) -> None:
    store: Store = options["store"]
    manifest = put_inventory(world, "CSV", claimed=b"another file")
    with pytest.raises(ProtocolError, match=f"cannot read the inventory {manifest}: s3://{BUCKET}/data: "):
        pushdown.list(source, inventory=manifest, store=store)
    with pytest.raises(ConfigError, match="expected none but for objects under a prefix"):
        pushdown.list("s3://photos/train-{0..9}.tar", inventory=manifest, store=store)
