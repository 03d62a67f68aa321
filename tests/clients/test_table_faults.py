"""Invalid queries and broken objects over HTTP: a 4xx that names the error and its position, and never a wrong row."""

import csv
import io
import json
import urllib.error
import urllib.request
import xml.etree.ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.one_store

MIN_I64, MAX_I64 = -(2**63), 2**63 - 1


@pytest.fixture
def ask(s3, bucket):
    """Stores an object and runs a pipeline over it; returns the rows, or status, code and message of a failure."""

    def run(name: str, body: bytes, pipeline: str) -> pa.Table | tuple[int, str, str]:
        s3.put_object(Bucket=bucket, Key=name, Body=body)
        url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": name})
        request = urllib.request.Request(url, headers={"x-pushdown-pipeline": pipeline})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer, pa.ipc.open_stream(answer) as stream:
                return stream.read_all()
        except urllib.error.HTTPError as error:
            element = xml.etree.ElementTree.fromstring(error.read())
            return error.code, element.findtext("Code"), element.findtext("Message")

    return run


def sql(text: str) -> str:
    return f"sql({json.dumps(text)})"


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


@pytest.fixture(scope="module")
def small() -> bytes:
    columns = {"n": pa.array([1, 2, 0, -1], pa.int64()), "i": pa.array([2**31 - 1] * 4, pa.int32())}
    return parquet(pa.table(columns | {"text": ["1", "2", "three", "4"]}))


@pytest.mark.parametrize(
    ("pipeline", "at"),
    [
        (sql("select n frm object"), "object"),
        (sql("selct 1"), "selct"),
        (sql("select n from object where text = 'a"), "'a"),
        (sql("select n, from object where"), '")'),
        ("select(where='n = 1 1')", "1')"),
        ("select(columns=[n) | sample(0.5, 1)", ") |"),
    ],
)
def test_syntax_errors_have_a_position_in_the_pipeline(ask, small, pipeline, at):
    status, code, message = ask("t.parquet", small, pipeline)
    assert (status, code) == (400, "InvalidPipeline")
    assert message.startswith(f"at {pipeline.index(at) + 1}: "), message


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ("select n, texd from object", "line 1, column 11 of the query"),
        # A header cannot contain a line feed, so it is escaped.
        ("select n,\\u{a}  texd\\u{a}from object", "line 2, column 3 of the query"),
    ],
)
def test_an_unknown_column_has_a_position_in_the_query(ask, small, query, position):
    status, code, message = ask("t.parquet", small, f'sql("{query}")')
    assert (status, code) == (422, "UnsuitableObject")
    assert "`texd`" in message and "`text`" in message and position in message, message


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
@pytest.mark.parametrize(
    ("pipeline", "reason"),
    [
        (sql("select cast(text as bigint) as v from object"), '"three"'),
        (sql("select n from object where cast(text as bigint) > 1"), '"three"'),
        (sql("select cast(text as bigint) as v, count(*) as c from object group by v"), '"three"'),
        (sql("select n from object order by cast(text as bigint)"), '"three"'),
        ("select(where='cast(text as bigint) = 1')", '"three"'),
        (sql("select 10 // n as v from object"), "Divide by zero"),
        (sql("select n % 0 as v from object"), "Divide by zero"),
        ("select(where='n // 0 = 1')", "Divide by zero"),
        (sql("select cast(text as date) as v from object"), "Date32"),
        (sql("select cast(n - 2 as smallint unsigned) as v from object"), "-1"),
        (sql("select cast(n as decimal(3, 3)) as v from object"), "too large"),
        (sql("select sqrt(n - 3) as v from object"), "negative"),
    ],
)
def test_failures_before_the_first_row_are_422(ask, small, name, pipeline, reason):
    body = small if name.endswith("parquet") else b"n,text\n1,1\n0,three\n2,4\n"
    status, code, message = ask(name, body, pipeline)
    assert (status, code) == (422, "UnsuitableObject")
    assert reason in message, message


@pytest.mark.parametrize(
    ("pipeline", "correct"),
    [
        (sql(f"select n + {MAX_I64} as v from object"), [MAX_I64 + 1, MAX_I64 + 2, MAX_I64, MAX_I64 - 1]),
        (sql(f"select n - {MAX_I64} - 2 as v from object"), [-1 - MAX_I64, -MAX_I64, -2 - MAX_I64, -3 - MAX_I64]),
        (sql(f"select n * {MAX_I64} as v from object"), [MAX_I64, 2 * MAX_I64, 0, -MAX_I64]),
        (sql("select i + i as v from object"), [2**32 - 2] * 4),
        (sql(f"select sum(n + {MAX_I64 - 2}) as v from object"), [4 * MAX_I64 - 6]),
        (sql(f"select -(n + {MIN_I64}) as v from object where n = 0"), [-MIN_I64]),
        (sql(f"select n as v from object where n + {MAX_I64} > 0"), [1, 2, 0, -1]),
    ],
)
def test_overflow_is_correct_or_refused(ask, small, pipeline, correct):
    """As in DuckDB: a number that wraps around would be a wrong row that nobody notices."""
    found = ask("t.parquet", small, pipeline)
    if isinstance(found, pa.Table):
        assert found["v"].to_pylist() == correct
    else:
        status, code, message = found
        assert (status, code) == (422, "UnsuitableObject")
        assert "verflow" in message, message


def test_quoted_csv_texts_are_read_exactly(ask):
    texts = ["plain", 'say "yes"', "a, b", "two\nlines", "two\r\nlines", '"', ' "padded" ', "größe; 東京"]
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["n", 'the "text", quoted'])
    writer.writerows(enumerate(texts))
    found = ask("t.csv", out.getvalue().encode(), "select()")
    assert found.to_pydict() == {"n": list(range(len(texts))), 'the "text", quoted': texts}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'n,text\n1,"x\n2,y\n', "line 2: unclosed quote"),
        (b"n,text\n1,x\0y\n", "line 2: expected text in UTF-8, found a zero byte"),
        (b'n,text\n1,x\n2,"a\0b"\n', "line 3: expected text in UTF-8, found a zero byte"),
        ("n,text\n1,x\n".encode("utf-16"), "found a zero byte"),
        ("n,text\n1,größe\n".encode("latin1"), "line 2: expected text in UTF-8, found invalid bytes"),
        (b"n,text\n1,x,y\n", "line 2"),
        pytest.param(
            b"", "empty", marks=pytest.mark.store_lacks("garage", "answers the end of an empty object with an invalid Content-Range")
        ),
    ],
)
def test_broken_csv_is_reported_with_its_line(ask, body, reason):
    status, code, message = ask("t.csv", body, "select()")
    assert (status, code) == (422, "UndecodableObject")
    assert reason in message, message


@pytest.mark.parametrize("body", [b"n\0,text\n1,x\n", b'n,"te\0xt"\n1,x\n', bytes(1000)], ids=["name", "quoted", "nothing-else"])
def test_a_zero_byte_in_the_csv_header_is_reported(ask, body):
    found = ask("t.csv", body, "select()")
    assert not isinstance(found, pa.Table), found.schema
    assert found[:2] == (422, "UndecodableObject")
    assert "line 1: expected text in UTF-8, found a zero byte" in found[2], found


@pytest.mark.parametrize("broken_line", [b"2,a\0b\n", b'2,"ab\n'], ids=["zero", "quote"])
def test_broken_csv_after_the_first_rows_does_not_truncate_the_table(ask, broken_line):
    with pytest.raises(Exception, match="(?i)incomplete|ended|broken|reset"):  # noqa: B017, PT011
        ask("t.csv", b"n,text\n" + b"1,x\n" * 400_000 + broken_line, "select()")


@pytest.fixture(scope="module")
def wide(store) -> pa.Table:
    if store.name == "embedded":
        pytest.skip("one store is enough: planning takes seconds")
    return pa.table({f"c{index:05}": pa.array([index, index + 1, None], pa.int32()) for index in range(10_000)})


def test_ten_thousand_columns(ask, wide):
    """Selects all columns, three columns, three with a condition, and an unknown column."""
    body = parquet(wide)
    assert ask("wide.parquet", body, "select()").equals(wide)
    few = ["c09999", "c00000", "c05000"]
    assert ask("wide.parquet", body, f"select(columns=[{', '.join(few)}])").equals(wide.select(few))
    chosen = ask("wide.parquet", body, f"select(columns=[{', '.join(few)}], where='c00007 = 8')")
    assert chosen.equals(wide.select(few).slice(1, 1))
    totals = ask("wide.parquet", body, sql("select sum(c00001) as s, max(c09999) as m from object"))
    assert totals.to_pydict() == {"s": [3], "m": [10_000]}
    status, code, message = ask("wide.parquet", body, "select(columns=[c10000])")
    assert (status, code) == (422, "UnsuitableObject")
    assert "c10000" in message and len(message) < 500


@pytest.mark.full
def test_a_query_of_ten_thousand_columns_is_answered(ask, wide):
    """Either the rows or a refusal as too large. The timeout of the request is there for plans that take minutes."""
    found = ask("wide.parquet", parquet(wide), sql("select * from object"))
    if isinstance(found, pa.Table):
        assert (found.column_names, found.num_rows) == (wide.column_names, wide.num_rows)
    else:
        assert found[0] in (400, 413), found
