"""Tables out of Parquet: rows by a plain HTTP client and pyarrow, and no row for an account without rights."""

import urllib.request

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from pipelines import with_pipeline
from stores import LIMITED_ACCESS, LIMITED_SECRET
from test_objects import code_of

FEW = "select(columns=[item, word], where='label = 1')"


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
    """The URL is signed for the object alone; the pipeline is a header that nobody signed."""
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key})
    request = urllib.request.Request(url, headers={"x-pushdown-pipeline": FEW})
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["x-pushdown-kind"] == "table"
        with pa.ipc.open_stream(answer) as stream:
            found = stream.read_all()
    expected = table.filter(pc.equal(table["label"], 1)).select(["item", "word"])
    assert found.column_names == expected.column_names
    assert found["item"].to_pylist() == expected["item"].to_pylist()
    assert found["word"].to_pylist() == expected["word"].to_pylist()


def test_boto3_signs_the_pipeline(store, bucket, key, table):
    client = store.client()
    with_pipeline(client, "sql('select label, sum(item) as s from object group by label order by label')")
    answer = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    found = pa.ipc.open_stream(answer).read_all()
    expected = table.group_by("label").aggregate([("item", "sum")]).sort_by("label")
    assert found.to_pydict() == {"label": expected["label"].to_pylist(), "s": expected["item_sum"].to_pylist()}


def test_an_account_without_rights_gets_neither_rows_nor_footer(store, bucket, key):
    if store.name == "embedded":
        pytest.skip("the embedded store has one account")
    owner = store.client()
    with_pipeline(owner, FEW)
    etag = owner.get_object(Bucket=bucket, Key=key)["ETag"]
    for pipeline in [FEW, "select(columns=[wrod])"]:
        limited = store.client(aws_access_key_id=LIMITED_ACCESS, aws_secret_access_key=LIMITED_SECRET)
        with_pipeline(limited, pipeline)
        for conditions in [{}, {"IfNoneMatch": etag}]:
            with pytest.raises(ClientError) as error:
                limited.get_object(Bucket=bucket, Key=key, **conditions)
            assert code_of(error)[0] == 403
            assert "word" not in str(error.value), "not even the names of its columns"
