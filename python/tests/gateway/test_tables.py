"""Tables: rows for Arrow's consumers, and readers of rows."""

from __future__ import annotations

import io
import json
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Sampling, Store

ROWS = 3000


@pytest.fixture(scope="module")
def table(world: Any) -> str:
    s3 = world.s3
    s3.create_bucket(Bucket="tables")
    numbers = np.arange(ROWS)
    data = pa.table({"id": numbers, "price": numbers / 7, "name": [f"item {n}" for n in numbers]})
    for part in range(2):
        body = io.BytesIO()
        pq.write_table(data.slice(part * ROWS // 2, ROWS // 2), body, row_group_size=200)
        s3.put_object(Bucket="tables", Key=f"sales/part-{part}.parquet", Body=body.getvalue())
    return "s3://tables/sales/"


def test_read_table_feeds_every_arrow_consumer(endpoint: str, table: str) -> None:
    pipeline = "select(columns=[id, price], where='id < 100')"
    rows = pushdown.read_table(f"{table}part-0.parquet", pipeline, store=Store(endpoint=endpoint))
    assert (rows.num_rows, rows.column_names) == (100, ["id", "price"])
    arrow = pa.table(rows)
    assert arrow.column("id").to_pylist() == list(range(100))
    assert polars.DataFrame(rows)["price"].to_list() == arrow.column("price").to_pylist()
    assert duckdb.sql("select sum(id) from rows").fetchall() == [(4950,)]
    assert pandas.DataFrame.from_arrow(rows)["id"].tolist() == list(range(100))
    assert pa.schema(rows) == arrow.schema


def ids(batches: Any) -> list[int]:
    return [int(value) for batch in batches for value in np.asarray(batch["id"])]


def test_rows_are_samples(endpoint: str, table: str) -> None:
    settings = {"store": Store(endpoint=endpoint), "batch_size": 128, "seed": 3}
    with pushdown.TableReader(table, "select(columns=[id, name], where='id >= 1000')", **settings) as reader:
        batches = list(reader)
        assert len(batches) == len(reader)
    found = ids(batches)
    assert sorted(found) == list(range(1000, ROWS)) and found != sorted(found)
    first = batches[0]
    assert first["name"] == [f"item {n}" for n in np.asarray(first["id"])]
    assert pa.table(first.table).column("id").to_pylist() == np.asarray(first["id"]).tolist()


def test_rows_resume_in_another_world(endpoint: str, table: str) -> None:
    read: list[int] = []
    state: dict[str, Any] | None = None
    for world, stop in ((2, 3), (3, 2), (3, 1), (1, 10**6)):
        states = []
        for rank in range(world):
            sampling = Sampling(rank=rank, world=world, tail="short")
            store = Store(endpoint=endpoint)
            settings = {"store": store, "batch_size": 64, "seed": 3, "sampling": sampling}
            with pushdown.TableReader(table, "select(columns=[id])", **settings) as reader:
                if state is not None:
                    reader.load_state_dict(json.loads(json.dumps(state)))
                for number, batch in enumerate(reader, 1):
                    read += ids([batch])
                    if number == stop:
                        break
                states.append(reader.state_dict())
        assert all(other == states[0] for other in states)
        state = states[0]
    assert sorted(read) == list(range(ROWS))


def test_numbers_with_nulls_are_a_list(world: Any, endpoint: str) -> None:
    body = io.BytesIO()
    small = pa.array([1, None, 3], pa.int16())
    pq.write_table(pa.table({"a": pa.array([1.5, None, 2.5]), "b": small, "c": pa.array([1, 2, 3], pa.uint64())}), body)
    world.s3.create_bucket(Bucket="nulls")
    world.s3.put_object(Bucket="nulls", Key="t.parquet", Body=body.getvalue())
    with pushdown.TableReader("s3://nulls/", "select", store=Store(endpoint=endpoint), batch_size=3) as reader:
        (batch,) = reader
    assert batch.to_dict() == {"a": [1.5, None, 2.5], "b": [1, None, 3], "c": [1, 2, 3]}


def test_a_rank_with_fewer_rows_has_the_state_of_all_ranks(endpoint: str, world: Any) -> None:
    body = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(129))}), body)
    world.s3.create_bucket(Bucket="odd")
    world.s3.put_object(Bucket="odd", Key="t.parquet", Body=body.getvalue())
    states = []
    for rank in range(2):
        sampling = Sampling(rank=rank, world=2, tail="short")
        settings = {"store": Store(endpoint=endpoint), "batch_size": 64, "sampling": sampling}
        with pushdown.TableReader("s3://odd/", "select", **settings) as reader:
            next(iter(reader))
            states.append(reader.state_dict())
    assert states[0] == states[1] and states[0]["rows_read"] == [[2, 64]]
    sampling = Sampling(tail="short")
    with pushdown.TableReader("s3://odd/", "select", store=Store(endpoint=endpoint), sampling=sampling) as reader:
        reader.load_state_dict(states[0])
        assert len(ids(reader)) == 1
        for wrong in ([1], [["2", 5]], [[2, -5]], [[True, 1]], [[0, 1]]):
            with pytest.raises(pushdown.StateError):
                reader.load_state_dict({**states[0], "rows_read": wrong, "epoch": 7})
        assert reader.epoch == 1, "a state that is refused changes nothing"


def test_explain_measures_and_check_computes(endpoint: str, source: str) -> None:
    explained = pushdown.explain(source, "decode | resize(32, 32) | to_float", store=Store(endpoint=endpoint), samples=4)
    assert "measured on 4 samples" in str(explained)
    assert explained.members["stages"]
    checked = pushdown.check("decode | resize(32, 32) | to_float", size=(500, 375), nbytes=100_000)
    assert [stage["bytes"] for stage in checked.stages] == [100_000, 562_500, 3072, 12_288]
    assert checked.smallest == 2


def test_get_reads_values_and_objects(endpoint: str, source: str) -> None:
    objects = pushdown.list(source, store=Store(endpoint=endpoint))
    urls = [f"s3://photos/{objects.key(n)}" for n in range(5)]
    values = pushdown.get_many(urls, "decode | resize(16, 16)", store=Store(endpoint=endpoint))
    assert [value.shape for value in values] == [(16, 16, 3)] * 5
    stored = pushdown.get(urls[0], store=Store(endpoint=endpoint))
    assert isinstance(stored, bytes) and len(stored) == objects.size(0)


def test_a_saved_list_needs_no_listing(endpoint: str, source: str, tmp_path: Any) -> None:
    objects = pushdown.list(source, store=Store(endpoint=endpoint))
    objects.save(str(tmp_path / "list.arrow"))
    again = pushdown.Objects.load(str(tmp_path / "list.arrow"))
    assert (len(again), again.digest, again.keys()) == (len(objects), objects.digest, objects.keys())
    assert pa.table(again).column_names == ["key", "bytes", "etag"]
    with pushdown.Reader(again, "decode | resize(16, 16)", store=Store(endpoint=endpoint), batch_size=8) as reader:
        assert sum(len(batch.keys) for batch in reader) == len(objects)
