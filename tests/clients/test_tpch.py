"""TPC-H at two scales through the gateway, on SeaweedFS: the rows match DuckDB on the same files, and few bytes are transferred."""

import datetime
import json
import math
import pathlib
import subprocess
import sys
import urllib.request

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import with_pipeline

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from golden_tables_cases.queries import TPCH  # noqa: E402

pytestmark = pytest.mark.one_store

TABLES = sorted({table for table, _ in TPCH})
COLUMNS = ["l_orderkey", "l_extendedprice", "l_shipdate"]
FROM, TO = datetime.date(1994, 1, 1), datetime.date(1995, 1, 1)
# The first read covers this many bytes at the end of an object, since the length of the footer is unknown.
FOOTER_READ_BYTES = 64 << 10


@pytest.fixture(scope="module", params=["0.01", pytest.param("0.1", marks=pytest.mark.full)])
def scale(request):
    return request.param


@pytest.fixture(scope="module")
def files(scale, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch")
    generator = pathlib.Path(sys.executable).with_name("tpchgen-cli")
    command = [generator, "parquet", "-s", scale, "--tables", ",".join(TABLES), "--output-dir", folder]
    subprocess.run(command, check=True, capture_output=True)
    return {table: folder / f"{table}.parquet" for table in TABLES}


@pytest.fixture(scope="module")
def bucket(scale):
    return f"tpch-{scale.replace('.', '-')}"


@pytest.fixture(scope="module")
def sorted_by_date(store, files, bucket):
    """The file of `lineitem`, sorted by date. The bucket has this file and all others."""
    if store.name == "embedded":
        pytest.skip("one store is enough: these are files of tens of megabytes")
    ordered = files["lineitem"].with_name("sorted.parquet")
    sql = f"copy (select * from '{files['lineitem']}' order by l_shipdate) to '{ordered}' (format parquet, row_group_size 40960)"
    duckdb.sql(sql)
    plain = store.client()
    plain.create_bucket(Bucket=bucket)
    for file in [*files.values(), ordered]:
        plain.upload_file(str(file), bucket, file.name)
    return ordered


def test_a_filter_on_a_sorted_table_reads_and_sends_few_bytes(store, bucket, sorted_by_date):
    where = f"l_shipdate >= date '{FROM}' and l_shipdate < date '{TO}'"
    pipeline = f"select(columns=[{', '.join(COLUMNS)}], where={json.dumps(where)})"
    url = store.client().generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "sorted.parquet"})

    def ask(accept: str) -> tuple[bytes, int]:
        headers = {"x-pushdown-pipeline": pipeline, "Accept": accept}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.read(), int(answer.headers["x-pushdown-source-bytes"].partition("/")[0])

    stream = "application/vnd.apache.arrow.stream"
    body, read = ask(stream)
    found = pa.ipc.open_stream(body).read_all()
    assert found.equals(pq.read_table(sorted_by_date, columns=COLUMNS, filters=[("l_shipdate", ">=", FROM), ("l_shipdate", "<", TO)]))
    metadata = pq.ParquetFile(sorted_by_date).metadata
    needed = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
        dates = chunks["l_shipdate"].statistics
        if dates.max >= FROM and dates.min < TO:
            needed += sum(chunks[name].total_compressed_size for name in COLUMNS)
    assert read <= max(1.15 * needed, needed + FOOTER_READ_BYTES), "a small table is read almost completely by the first read"
    assert len(body) <= 1.1 * found.nbytes
    assert len(ask(f"{stream}; compression=lz4")[0]) < len(body)


def test_rows_match_duckdb(store, files, bucket, sorted_by_date):
    for table, sql in TPCH:
        client = store.client()
        with_pipeline(client, f"sql({json.dumps(sql)})")
        answer = client.get_object(Bucket=bucket, Key=files[table].name)["Body"].read()
        found = pa.ipc.open_stream(answer).read_all()
        connection = duckdb.connect()
        connection.sql(f"create view object as select * from read_parquet('{files[table]}')")
        expected = connection.sql(sql).to_arrow_table()
        assert found.num_rows == expected.num_rows > 0, sql
        for found_row, expected_row in zip(rows(found), rows(expected), strict=True):
            assert found_row.keys() == expected_row.keys(), sql
            different = {
                name: (found_row[name], value)
                for name, value in expected_row.items()
                if not is_same_value(found_row[name], value)
            }
            assert not different, sql


def is_same_value(found_value, expected_value) -> bool:
    """Compares values. An average of decimals is a decimal with six digits in pushdown and a float in DuckDB."""
    numbers = isinstance(found_value, float) and isinstance(expected_value, float)
    return found_value == expected_value or numbers and math.isclose(found_value, expected_value, rel_tol=1e-9, abs_tol=1e-6)


def rows(table: pa.Table) -> list[dict]:
    """Rows with comparable values: decimals as floats, dates and times as texts."""

    def plain(column: pa.ChunkedArray) -> list:
        if pa.types.is_decimal(column.type) or pa.types.is_integer(column.type):
            return column.cast(pa.float64()).to_pylist()
        if pa.types.is_temporal(column.type):
            return column.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        return column.to_pylist()

    columns = {name: plain(table[name]) for name in table.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
