"""Two addresses: all that a reader reads is the same as with one."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import pathlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Sampling, Store
from samples import PIPELINE, Sample, samples, samples_of
from shards import files_of, put_compressed, put_shards

BUCKET = "beside"
MODES = ("pushdown", "auto", "plain")
ROWS = 600


@pytest.fixture(scope="module")
def connections(world: Any, endpoint: str, gateway: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """One address, of a gateway in place of the store; and two."""
    return {"store": Store(endpoint=endpoint)}, {"store": Store(endpoint=world.upstream), "gateway": gateway}


@pytest.fixture(scope="module")
def shards(world: Any) -> str:
    world.s3.create_bucket(Bucket=BUCKET)
    return put_shards(world.s3, BUCKET, "sets/train-", files_of(world.s3, "folder/"), "pax", 3)


@pytest.fixture(scope="module")
def images(world: Any, shards: str) -> str:
    """Photos with labels in a column of two Parquet objects."""
    photos = world.s3.list_objects_v2(Bucket="photos", Prefix="train/other/")["Contents"][:12]
    bodies = [world.s3.get_object(Bucket="photos", Key=photo["Key"])["Body"].read() for photo in photos]
    for part in range(2):
        rows = range(part * 6, part * 6 + 6)
        body = io.BytesIO()
        table = pa.table({"image": [bodies[row] for row in rows], "label": list(rows)})
        pq.write_table(table, body, row_group_size=3)
        world.put(BUCKET, f"images/train-{part}.parquet", body.getvalue())
    return f"s3://{BUCKET}/images/*.parquet"


@pytest.fixture(scope="module")
def table(world: Any, shards: str) -> str:
    numbers = np.arange(ROWS)
    noise = np.random.default_rng(7).random(ROWS)
    for part in range(2):
        body = io.BytesIO()
        rows = slice(part * ROWS // 2, (part + 1) * ROWS // 2)
        pq.write_table(pa.table({"id": numbers[rows], "noise": noise[rows]}), body, row_group_size=100)
        world.put(BUCKET, f"table/part-{part}.parquet", body.getvalue())
    return f"s3://{BUCKET}/table/"


def test_members_of_indexed_shards(shards: str, connections: tuple[dict[str, Any], dict[str, Any]]) -> None:
    one, both = connections
    index = pushdown.index(shards, **both)
    assert pa.table(index) == pa.table(pushdown.index(shards, **one))
    options: dict[str, Any] = {
        "index": index,
        "batch_size": 4,
        "labels": pushdown.Column("cls"),
        "columns": {"json": "json"},
        "seed": 7,
        "sampling": Sampling(tail="short"),
    }

    def read(**settings: Any) -> tuple[list[Sample], list[Any], pushdown.Stats]:
        with pushdown.Reader(shards, PIPELINE, **options, **settings) as reader:
            batches = list(reader)
            return samples(batches), [batch.columns["json"] for batch in batches], reader.stats

    expected = read(**one)[:2]
    for mode in MODES:
        found, columns, stats = read(**both, mode=mode)
        assert (found, columns) == expected, mode
        assert stats.gateway == both["gateway"]
    member = index.members.member(0)
    url = f"s3://{BUCKET}/{index.members.key(0)}"
    assert pushdown.get(url, member=member, **both) == pushdown.get(url, member=member, **one)
    photo = next(name for name in index.members.paths() if name.endswith(".jpg"))
    photo_url = f"s3://{BUCKET}/{index.members.key(index.members.paths().index(photo))}"
    pixels = [np.asarray(pushdown.get(photo_url, "decode", member=photo, index=index, **each)) for each in connections]
    assert np.array_equal(*pixels)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_shards_without_an_index(
    world: Any, shards: str, connections: tuple[dict[str, Any], dict[str, Any]], suffix: str
) -> None:
    pattern = put_compressed(world.s3, BUCKET, shards, suffix) if suffix else shards
    options: dict[str, Any] = {"batch_size": 4, "labels": pushdown.Column("cls"), "seed": 7}
    if not suffix:
        options["sampling"] = Sampling(order="shards", buffer=6)
    found = []
    for connection in connections:
        with pushdown.Reader(pattern, PIPELINE, **options, **connection) as reader:
            found.append(samples(reader))
            assert reader.stats.gateway_bytes_down == 0, "all steps run on this host"
    assert found[0] == found[1] != []


def test_images_in_a_column(images: str, connections: tuple[dict[str, Any], dict[str, Any]]) -> None:
    one, both = connections
    options: dict[str, Any] = {"batch_size": 4, "labels": "label", "seed": 7}

    def read(**settings: Any) -> list[Sample]:
        with pushdown.Reader(images, PIPELINE, **options, **settings) as reader:
            return samples(reader)

    expected = read(**one)
    assert len(expected) == 12
    for mode in MODES:
        assert read(**both, mode=mode) == expected, mode


def test_rows_of_tables(table: str, connections: tuple[dict[str, Any], dict[str, Any]]) -> None:
    one, both = connections
    pipeline = "select(columns=[id, noise], where='noise < 0.2')"
    options: dict[str, Any] = {"batch_size": 16, "seed": 3, "sampling": Sampling(tail="short")}

    def read(**settings: Any) -> list[Any]:
        with pushdown.TableReader(table, pipeline, **options, **settings) as reader:
            return [pa.table(batch.table).to_pydict() for batch in reader]

    expected = read(**one)
    assert sum(len(batch["id"]) for batch in expected) > 50
    for mode in MODES:
        assert read(**both, mode=mode) == expected, mode
    tables = [pa.table(pushdown.read_table(f"{table}part-1.parquet", pipeline, **each)) for each in connections]
    assert tables[0] == tables[1] and tables[0].num_rows > 0


def test_values_of_a_cache(
    source: str, both: dict[str, Any], options: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """A folder that a reader with one address has filled is the one of a reader with two."""
    pipeline = "decode | resize(16, 16)"
    caches = [{**options, "value_cache": tmp_path / "one"}, {**both, "value_cache": tmp_path / "one"}]
    for settings, is_cached in [*zip(caches, (False, True), strict=True), ({**both, "value_cache": tmp_path / "two"}, False)]:
        with pushdown.Reader(source, pipeline, **settings) as reader:
            found = samples(reader)
            assert (reader.stats.cache_hits > 0) == is_cached
        if not is_cached and settings is caches[0]:
            expected = found
        assert found == expected


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_state_goes_on_in_another_world_with_another_address(
    source: str, both: dict[str, Any], options: dict[str, Any], ranks: int
) -> None:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        whole = samples(reader)
    for first, second in itertools.permutations((options, both)):
        with pushdown.Reader(source, PIPELINE, **first) as reader:
            seen = samples(itertools.islice(reader, 2))
            state = json.loads(json.dumps(reader.state_dict()))
        rest: list[Sample] = []
        for rank in range(ranks):
            sampling = Sampling(rank=rank, world=ranks, tail="short")
            with pushdown.Reader(source, PIPELINE, **second, sampling=sampling, mode="pushdown") as reader:
                reader.load_state_dict(state)
                rest += [sample for batch in reader for sample in samples_of(batch)]
        assert seen + sorted(rest) == whole


def test_a_manifest_and_a_list_of_the_store(
    source: str, both: dict[str, Any], options: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """A saved list, and files in the bucket: labels of a manifest, and keys without a listing."""
    objects = pushdown.list(source, store=both["store"], gateway=both["gateway"])
    keys = objects.keys()
    objects.save(tmp_path / "list")
    loaded = pushdown.Objects.load(tmp_path / "list")
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected = samples(reader)
    for saved in (loaded, [f"s3://photos/{key}" for key in keys]):
        with pushdown.Reader(saved, PIPELINE, **both, mode="pushdown") as reader:
            assert samples(reader) == expected
            assert reader.stats.gateway_bytes_down > 0


def test_options_of_the_store_apply_to_both(source: str, both: dict[str, Any]) -> None:
    """Region and credentials are those of the store, timeouts and retries those of every request."""
    retry = pushdown.Retry(attempts=2, base_seconds=0.01, cap_seconds=0.02)
    store = dataclasses.replace(both["store"], retry=retry, timeouts=pushdown.Timeouts(connect_seconds=1.0))
    nobody = {**both, "store": store, "gateway": "http://127.0.0.1:9"}
    with pytest.raises(pushdown.Error, match=r"http://127\.0\.0\.1:9"), pushdown.Reader(
        source, PIPELINE, **nobody, mode="pushdown"
    ) as reader:
        samples(reader)
