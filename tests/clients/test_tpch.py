"""TPC-H at scale 0.1 through the gateway, on the real store: the rows that DuckDB finds in the same files."""

import json
import pathlib
import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest

from pipelines import with_pipeline

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from golden_tables_cases.queries import TPCH  # noqa: E402

TABLES = sorted({table for table, _ in TPCH})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch")
    generator = pathlib.Path(sys.executable).with_name("tpchgen-cli")
    command = [generator, "parquet", "-s", "0.1", "--tables", ",".join(TABLES), "--output-dir", folder]
    subprocess.run(command, check=True, capture_output=True)
    return {table: folder / f"{table}.parquet" for table in TABLES}


def test_rows_are_those_of_duckdb(store, files):
    if store.name == "embedded":
        pytest.skip("one store is enough: these are files of tens of megabytes")
    plain = store.client()
    plain.create_bucket(Bucket="tpch")
    for table, file in files.items():
        plain.upload_file(str(file), "tpch", file.name)
    for table, sql in TPCH:
        client = store.client()
        with_pipeline(client, f"sql({json.dumps(sql)})")
        answer = client.get_object(Bucket="tpch", Key=files[table].name)["Body"].read()
        found = pa.ipc.open_stream(answer).read_all()
        connection = duckdb.connect()
        connection.sql(f"create view object as select * from read_parquet('{files[table]}')")
        expected = connection.sql(sql).to_arrow_table()
        assert found.num_rows == expected.num_rows > 0, sql
        for mine, theirs in zip(rows(found), rows(expected), strict=True):
            assert mine == pytest.approx(theirs, rel=1e-9), sql


def rows(table: pa.Table) -> list[dict]:
    """Values that both libraries write alike: decimals as floats, and dates and times as texts."""

    def plain(column: pa.ChunkedArray) -> list:
        if pa.types.is_decimal(column.type) or pa.types.is_integer(column.type):
            return column.cast(pa.float64()).to_pylist()
        if pa.types.is_temporal(column.type):
            return column.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        return column.to_pylist()

    columns = {name: plain(table[name]) for name in table.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
