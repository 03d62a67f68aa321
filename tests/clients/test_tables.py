"""Parquet tables: rows for a plain HTTP client and pyarrow, and no row for an account without rights."""

import urllib.request

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from pipelines import with_pipeline
from test_batches import post, presigned, read_batches
from test_objects import status_and_code

FILTER = "select(columns=[item, word], where='label = 1')"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rows = range(20_000)
    return pa.table(
        {
            "item": pa.array(rows, pa.int64()),
            "label": pa.array([row % 10 for row in rows], pa.int32()),
            "word": pa.array([None if row % 7 == 0 else f"word {row % 100}" for row in rows]).dictionary_encode(),
            "price": pa.array([row / 3 for row in rows], pa.float64()),
        }
    )


@pytest.fixture
def key(s3, bucket, table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=5000)
    s3.upload_file(str(tmp_path / "t.parquet"), bucket, "t.parquet")
    return "t.parquet"


def test_a_presigned_url_and_pyarrow(s3, bucket, key, table):
    """The signature of the URL covers the object; the pipeline is an unsigned header."""
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key})
    request = urllib.request.Request(url, headers={"x-pushdown-pipeline": FILTER})
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["x-pushdown-kind"] == "table"
        with pa.ipc.open_stream(answer) as stream:
            found = stream.read_all()
    expected = table.filter(pc.equal(table["label"], 1)).select(["item", "word"])
    assert found.column_names == expected.column_names
    assert found["item"].to_pylist() == expected["item"].to_pylist()
    assert found["word"].to_pylist() == expected["word"].to_pylist()


def test_record_batches_end_at_8192_rows_and_at_row_groups(s3, bucket, tmp_path):
    many = pa.table({"n": pa.array(range(45_000), pa.int64())})
    pq.write_table(many, tmp_path / "n.parquet", row_group_size=20_000)
    pyarrow.csv.write_csv(many.slice(0, 20_000), tmp_path / "n.csv")
    group = [8192, 8192, 3616]
    for name, expected in ("n.parquet", [*group, *group, 5000]), ("n.csv", group):
        s3.upload_file(str(tmp_path / name), bucket, name)
        url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": name})
        with urllib.request.urlopen(urllib.request.Request(url, headers={"x-pushdown-pipeline": "select()"})) as answer:
            assert [len(batch) for batch in pa.ipc.open_stream(answer)] == expected, name


def test_boto3_signs_the_pipeline(store, bucket, key, table):
    client = store.client()
    with_pipeline(client, "sql('select label, sum(item) as s from object group by label order by label')")
    answer = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    found = pa.ipc.open_stream(answer).read_all()
    expected = table.group_by("label").aggregate([("item", "sum")]).sort_by("label")
    assert found.to_pydict() == {"label": expected["label"].to_pylist(), "s": expected["item_sum"].to_pylist()}


@pytest.fixture
def limited(store):
    """Creates a client of an account that must not read the table."""
    if store.name == "embedded":
        pytest.skip("the embedded store has one account")
    return store.limited_client


@pytest.mark.parametrize("operation", ["get_object", "head_object"])
def test_an_account_without_rights_gets_neither_rows_nor_footer(store, limited, bucket, key, operation):
    """The owner sends the same request first: a cached result must not be served to another account."""
    owner = store.client()
    with_pipeline(owner, FILTER)
    etag = getattr(owner, operation)(Bucket=bucket, Key=key)["ETag"]
    for pipeline in [FILTER, "select(columns=[wrod])"]:
        other = limited()
        with_pipeline(other, pipeline)
        for conditions in [{}, {"IfNoneMatch": etag}]:
            with pytest.raises(ClientError) as error:
                getattr(other, operation)(Bucket=bucket, Key=key, **conditions)
            assert status_and_code(error)[0] == 403
            assert "word" not in str(error.value), "the names of the columns must not leak"


@pytest.mark.parametrize("pipeline", [FILTER, "select(columns=[wrod])"])
def test_a_table_of_a_batch_fails_for_an_account_without_rights(store, s3, limited, bucket, key, pipeline):
    def ask(client, pipeline: str) -> pa.RecordBatch:
        presign, samples = presigned(client, bucket, [key])
        (batch,) = read_batches(post(store, {"pipeline": pipeline, "presign": presign, "samples": samples}))
        return batch

    assert ask(s3, FILTER)["error"].to_pylist() == [None]
    refused = ask(limited(), pipeline)
    assert refused["value"].null_count == 1
    assert "AccessDenied" in refused["error"][0].as_py()
    assert "word" not in refused["error"][0].as_py()


@pytest.mark.parametrize("pipeline", [FILTER, "select(columns=[wrod])"])
def test_a_table_of_many_objects_is_refused_for_an_account_without_rights(store, s3, limited, bucket, key, table, pipeline):
    def ask(client, pipeline: str, keys: list[str]):
        presign, samples = presigned(client, bucket, keys)
        rule = {"key": True, "schema": "union"}
        return post(store, {"pipeline": pipeline, "presign": presign, "samples": samples, "table": rule})

    rows = pa.Table.from_batches(read_batches(ask(s3, FILTER, [key])))
    assert rows.column_names == ["key", "item", "word"]
    assert rows.num_rows == pc.sum(pc.equal(table["label"], 1)).as_py()
    for keys in [key], [key, key]:
        refused = ask(limited(), pipeline, keys)
        body = refused.read()
        assert (refused.status, b"<Code>AccessDenied</Code>" in body) == (403, True), body
        assert b"word" not in body
