"""`pushdown get` of a table: other libraries read the files that it writes."""

import datetime
import decimal
import os
import pty
import subprocess

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from stores import gateway_binary

pytestmark = pytest.mark.one_store

PIPELINE = "select(columns=[item, word, price, day, moment, tags], where='label = 1')"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rows = range(20_000)
    noon = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
    return pa.table(
        {
            "item": pa.array(rows, pa.int64()),
            "label": pa.array([row % 10 for row in rows], pa.int32()),
            "word": pa.array([None if row % 7 == 0 else f"word {row % 100}" for row in rows]).dictionary_encode(),
            "price": pa.array([decimal.Decimal(row) / 100 for row in rows], pa.decimal128(12, 2)),
            "day": pa.array([datetime.date(2024, 1, 1) + datetime.timedelta(row % 366) for row in rows]),
            "moment": pa.array([noon + datetime.timedelta(minutes=row) for row in rows], pa.timestamp("us", "Europe/Berlin")),
            "tags": pa.array([[f"t{row % 3}"] * (row % 4) for row in rows], pa.list_(pa.string())),
        }
    )


@pytest.fixture
def stored(s3, bucket, table, tmp_path):
    """The name of a stored table, and the rows that pyarrow reads from it."""
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=5000)
    s3.upload_file(str(tmp_path / "t.parquet"), bucket, "t.parquet")
    found = pq.read_table(tmp_path / "t.parquet")
    columns = ["item", "word", "price", "day", "moment", "tags"]
    return f"s3://{bucket}/t.parquet", found.filter(pc.equal(found["label"], 1)).select(columns)


def command(store, *arguments: object) -> list[str]:
    """The command line of the client built together with the gateway."""
    program = gateway_binary().with_name("pushdown")
    return [str(program), "get", "--endpoint-url", store.endpoint, *map(str, arguments)]


@pytest.mark.parametrize("split", [[], ["--split", "full"], ["--split", "0"]], ids=lambda split: "-".join(split) or "default")
def test_a_parquet_file_is_read_back_with_the_same_rows_and_types(store, stored, tmp_path, split):
    name, expected = stored
    out = tmp_path / "out.parquet"
    subprocess.run(command(store, name, "--pipeline", PIPELINE, *split, "-o", out), check=True, timeout=120)
    found = pq.read_table(out)
    assert found.schema.equals(expected.schema), found.schema
    assert found.num_rows == expected.num_rows > 0
    # Arrow treats columns with equal words and different dictionaries as different.
    assert found.to_pylist() == expected.to_pylist()


def test_a_terminal_gets_csv(store, stored):
    """Without -o and --format a terminal gets CSV, and a pipe gets Arrow."""
    name, expected = stored
    few = "select(columns=[item, word], where='label = 1', limit=3)"
    expected = expected.slice(0, 3)
    terminal, inside = pty.openpty()
    with subprocess.Popen(command(store, name, "--pipeline", few), stdin=inside, stdout=inside) as running:
        os.close(inside)
        shown = b"".join(iter(lambda: read(terminal), b""))
        assert running.wait(60) == 0, shown
    os.close(terminal)
    values = zip(expected["item"].to_pylist(), expected["word"].to_pylist(), strict=True)
    assert shown.decode().splitlines() == ["item,word", *(f"{item},{word or ''}" for item, word in values)]
    piped = subprocess.run(command(store, name, "--pipeline", few), check=True, capture_output=True, timeout=120).stdout
    assert pa.ipc.open_stream(piped).read_all().to_pydict() == expected.select(["item", "word"]).to_pydict()


def read(terminal: int) -> bytes:
    """Reads the next bytes, or nothing at the end, which Linux reports as an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
