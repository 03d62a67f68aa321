"""Stretches of a data set together have the samples of its reader: what tasks of a cluster read."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Sampling
from pushdown._rank import Place, Rank
from pushdown.iterator import ReaderIterator
from shards import FOLDER, files_of, put_shards

PIPELINE = "decode | random_resized_crop(32) | flip_h | to_float"
Row = tuple[str, str | None, int, bytes, int]


def opened(source: Any, pipeline: str | None, **options: Any) -> pushdown.Reader:
    return pushdown.Reader(source, pipeline, **options, shuffle=False, sampling=Sampling(tail="short"))


def rows_of(batches: Any, first_index: int = 0) -> list[Row]:
    return [
        (key, member, index + first_index, np.asarray(value).tobytes(), label)
        for batch in batches
        for key, member, index, value, label in zip(
            batch.keys, batch.members, memoryview(batch.index), batch.values, memoryview(batch.y), strict=True
        )
    ]


def check(reader: pushdown.Reader, count: int, counted: bool = True) -> int:
    """Compares the stretches with the reader. Returns their number."""
    kind, found = reader._kind, []
    reader.set_epoch(0)
    stretches = kind.divide(count)
    for stretch in stretches:
        part, start = kind.of_stretch(stretch)
        rows = rows_of(ReaderIterator(part.iterate(start, Place(Rank()), None, 0), lambda: None), stretch.first_index)
        assert not counted or len(rows) == stretch.samples
        found += rows
    whole = rows_of(reader)
    if not counted:
        # The index of a row is that of its shard.
        found, whole = ([(*row[:2], 0, *row[3:]) for row in rows] for rows in (found, whole))
    assert found == whole and whole
    return len(stretches)


@pytest.mark.parametrize("count", [1, 3, 1000])
def test_objects(source: str, options: dict[str, Any], count: int) -> None:
    reader = opened(source, PIPELINE, **options)
    assert check(reader, count) == min(count, len(reader.objects))
    sizes = [reader.objects.size(index) or 0 for index in range(len(reader.objects))]
    assert sum(stretch.stored_bytes for stretch in reader._kind.divide(count)) == sum(sizes)


@pytest.mark.parametrize("has_index", [True, False])
def test_shards(world: Any, options: dict[str, Any], has_index: bool) -> None:
    bucket = f"stretches-{has_index}".lower()
    world.s3.create_bucket(Bucket=bucket)
    pattern = put_shards(world.s3, bucket, "sets/train-", files_of(world.s3, FOLDER), "ustar", 5)
    given = {**options, "labels": pushdown.Column("cls")}
    if has_index:
        given["index"] = pushdown.index(pattern, store=options["store"])
    assert check(opened(pattern, PIPELINE, **given), 4, counted=has_index) == 4


@pytest.fixture(scope="module")
def tables(world: Any) -> str:
    """Three objects of seven rows in row groups of three, of which the last one has a single row."""
    world.s3.create_bucket(Bucket="stretches-rows")
    entries = world.s3.list_objects_v2(Bucket="photos", Prefix="train/")["Contents"]
    for part in range(3):
        bodies = [world.s3.get_object(Bucket="photos", Key=entries[part + row]["Key"])["Body"].read() for row in range(7)]
        table = pa.table({"image": [{"bytes": body, "path": None} for body in bodies], "label": range(part, part + 7)})
        body = io.BytesIO()
        pq.write_table(table, body, row_group_size=3)
        world.put("stretches-rows", f"data/train-{part}.parquet", body.getvalue())
    return "s3://stretches-rows/data/train-*.parquet"


@pytest.mark.parametrize(("where", "groups"), [(None, 9), ("label > 4", 6)])
def test_rows(options: dict[str, Any], tables: str, where: str | None, groups: int) -> None:
    reader = opened(pushdown.Parquet(tables, where=where), PIPELINE, **{**options, "labels": "label"})
    for count in (1, 2, 4, 1000):
        assert check(reader, count) == min(count, groups)
    # Row groups are not divided, and tasks see only the objects of their rows.
    assert [len(stretch.objects) for stretch in reader._kind.divide(1000)] == [1] * groups


def test_a_stretch_of_bad_samples_has_no_batches(world: Any, options: dict[str, Any]) -> None:
    world.s3.create_bucket(Bucket="stretches-bad")
    for number in range(3):
        world.put("stretches-bad", f"a/{number}.jpg", b"no photo")
    kind = opened("s3://stretches-bad/", PIPELINE, **options, on_error="skip")._kind
    part, start = kind.of_stretch(kind.divide(1)[0])
    assert list(ReaderIterator(part.iterate(start, Place(Rank()), None, 0), lambda: None)) == []
