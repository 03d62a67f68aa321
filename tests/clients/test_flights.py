"""A public data set of flights as CSV and as Parquet written by DuckDB: the rows match DuckDB and pyarrow."""

import json
import subprocess
import urllib.request

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from stores import ROOT
from test_tpch import is_same_value, rows

pytestmark = pytest.mark.one_store

# Missing values are `NA` in the file, so a column of numbers with missing values is a text column.
DELAY = {"csv": "cast(nullif(arr_delay, 'NA') as bigint)", "parquet": "arr_delay"}
QUERIES = [
    "select origin, count(*) as c, count({delay}) as arrived, avg({delay}) as mean from object group by origin order by origin",
    "select carrier, dest, max({delay}) as worst from object where month = 7 group by carrier, dest "
    "order by worst desc nulls last, carrier, dest limit 40",
    "select tailnum, sum(distance) as miles from object where tailnum like 'N1%' group by tailnum having count(*) > 100 "
    "order by miles desc, tailnum",
    "select month, min(time_hour) as first, max(time_hour) as last from object where distance between 1000 and 2000 group by month "
    "order by month",
    "select hour, count(distinct dest) as d, sum(case when {delay} > 60 then 1 else 0 end) as late from object group by hour "
    "order by hour",
    "select month, day, flight, {delay} as delay from object where origin = 'LGA' and {delay} < -60 "
    "order by delay, month, day, flight",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    subprocess.run([ROOT / "scripts/flights.sh"], check=True)
    files = {"csv": ROOT / ".cache/tables/flights.csv", "parquet": tmp_path_factory.mktemp("flights") / "flights.parquet"}
    copy = f"copy (from read_csv('{files['csv']}', nullstr = 'NA')) to '{files['parquet']}' (format parquet, row_group_size 40960)"
    duckdb.sql(copy)
    assert pq.ParquetFile(files["parquet"]).metadata.created_by.startswith("DuckDB")
    return files


@pytest.fixture(scope="module")
def ask(store, files):
    """Runs a pipeline over one of the files and returns the rows."""
    if store.name == "embedded":
        pytest.skip("one store is enough: these are files of tens of megabytes")
    client = store.client()
    client.create_bucket(Bucket="flights")
    for file in files.values():
        client.upload_file(str(file), "flights", file.name)

    def run(suffix: str, pipeline: str) -> pa.Table:
        url = client.generate_presigned_url("get_object", Params={"Bucket": "flights", "Key": files[suffix].name})
        request = urllib.request.Request(url, headers={"x-pushdown-pipeline": pipeline})
        with urllib.request.urlopen(request) as answer, pa.ipc.open_stream(answer) as stream:
            return stream.read_all()

    return run


# Each query on the CSV reads the whole file, which takes seconds, so only some run.
@pytest.mark.parametrize(
    ("suffix", "query"),
    [
        *(("parquet", query) for query in QUERIES),
        ("csv", QUERIES[0]),
        pytest.param("csv", QUERIES[3], marks=pytest.mark.full),
    ],
)
def test_rows_match_duckdb(files, ask, suffix, query):
    sql = query.format(delay=DELAY[suffix])
    found = ask(suffix, f"sql({json.dumps(sql)})")
    connection = duckdb.connect()
    connection.sql(f"create view object as from '{files[suffix]}'")
    expected = connection.sql(sql).to_arrow_table()
    assert found.column_names == expected.column_names
    assert found.num_rows == expected.num_rows > 0
    for found_row, expected_row in zip(rows(found), rows(expected), strict=True):
        assert all(is_same_value(found_row[name], value) for name, value in expected_row.items()), (found_row, expected_row)


def test_a_parquet_file_of_duckdb_matches_pyarrow(files, ask):
    expected = pq.read_table(files["parquet"])
    assert ask("parquet", "select()").equals(expected)
    columns = ["time_hour", "tailnum", "air_time"]
    long_flights = expected.filter(pc.greater(expected["air_time"], 600)).select(columns)
    assert long_flights.num_rows > 0
    assert ask("parquet", f"select(columns=[{', '.join(columns)}], where='air_time > 600')").equals(long_flights)


@pytest.mark.full
def test_a_csv_matches_pyarrow(files, ask):
    options = pa.csv.ConvertOptions(null_values=[""])
    expected = pa.csv.read_csv(files["csv"], convert_options=options)
    found = ask("csv", "select()")
    assert found.column_names == expected.column_names
    assert found.cast(expected.schema).equals(expected)
