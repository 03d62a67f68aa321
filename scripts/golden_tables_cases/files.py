"""Writes the tables of the queries: parts of TPC-H, and small tables of every relevant type."""

import datetime
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile
import zoneinfo

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq


def write(folder: pathlib.Path) -> None:
    """Writes all files."""
    folder.mkdir(parents=True, exist_ok=True)
    tpch(folder)
    types = every_type()
    pq.write_table(types, folder / "types.parquet", row_group_size=16, data_page_size=256, write_page_index=True)
    pq.write_table(types, folder / "no_statistics.parquet", row_group_size=16, write_statistics=False, compression="zstd")
    pq.write_table(types, folder / "version1.parquet", version="1.0", data_page_version="1.0", compression="gzip")
    stamps = types.select(["n", "us"])
    # Like Spark: without Arrow's schema.
    pq.write_table(stamps, folder / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    pq.write_table(types, folder / "no_schema.parquet", store_schema=False, compression="brotli")
    pq.write_table(nested(), folder / "nested.parquet", row_group_size=10)
    with pq.ParquetWriter(folder / "empty_groups.parquet", types.schema) as writer:
        for part in types.slice(0, 0), types.slice(0, 7), types.slice(0, 0), types.slice(7, 5):
            writer.write_table(part)
    pq.write_table(types.slice(0, 0), folder / "empty.parquet")
    flat = types.drop_columns(["binary", "fixed", "time64", "f16", "duration"])
    with pa.ipc.new_file(str(folder / "types.arrow"), flat.schema) as file:
        file.write_table(flat, max_chunksize=20)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(str(folder / "types.arrows"), flat.schema, options=options) as stream:
        stream.write_table(flat, max_chunksize=20)
    texts(folder)


def tpch(folder: pathlib.Path) -> None:
    """The first rows of some tables at scale 0.01."""
    generator = pathlib.Path(sys.executable).parent / "tpchgen-cli"
    with tempfile.TemporaryDirectory() as generated:
        subprocess.run([generator, "parquet", "-s", "0.01", "--output-dir", generated], check=True, capture_output=True)
        for name, rows in ("lineitem", 6000), ("orders", 1500), ("customer", 300), ("part", 300):
            table = pq.read_table(f"{generated}/{name}.parquet").slice(0, rows)
            strings = [
                field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in table.schema
            ]
            table = table.cast(pa.schema(strings))
            if name == "lineitem":
                table = table.sort_by([("l_shipdate", "ascending"), ("l_orderkey", "ascending"), ("l_linenumber", "ascending")])
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=1000, compression="zstd", write_page_index=True)
        orders = pq.read_table(folder / "orders.parquet").slice(0, 300)
        pa.csv.write_csv(orders, folder / "orders.csv")
        with pa.CompressedOutputStream(str(folder / "orders.csv.gz"), "gzip") as out:
            pa.csv.write_csv(orders, out)
        lines = "".join(json.dumps(row, default=str) + "\n" for row in orders.to_pylist())
        with pa.CompressedOutputStream(str(folder / "orders.jsonl.zst"), "zstd") as out:
            out.write(lines.encode())


def every_type() -> pa.Table:
    """Fifty rows with nulls."""
    count = 50
    utc = datetime.datetime(2024, 2, 28, 23, 59, 59, 123456)
    rows = range(count)

    def column(kind: pa.DataType, value, null: int) -> pa.Array:
        return pa.array([None if row % null == null - 1 else value(row) for row in rows], kind)

    def stamp(unit: str, zone: str | None = None) -> pa.Array:
        whole = utc.replace(microsecond=0) if unit == "s" else utc.replace(microsecond=123000) if unit == "ms" else utc
        start = whole.replace(tzinfo=zoneinfo.ZoneInfo("UTC")) if zone else whole
        return column(pa.timestamp(unit, zone), lambda row: start + datetime.timedelta(hours=7 * row), 9)

    words = ["alpha", "beta", "gamma", "", "delta, with \"quotes\"", "zeta\nline", "größe"]
    return pa.table(
        {
            "n": pa.array(rows, pa.int64()),
            "i8": column(pa.int8(), lambda row: row - 25, 7),
            "i16": column(pa.int16(), lambda row: row * 300 - 7000, 8),
            "i32": column(pa.int32(), lambda row: row * 70000, 5),
            "u8": column(pa.uint8(), lambda row: row * 5, 6),
            "u16": column(pa.uint16(), lambda row: row * 1300, 6),
            "u32": column(pa.uint32(), lambda row: row * 80_000_000, 6),
            "u64": column(pa.uint64(), lambda row: row * 2**57, 6),
            "f16": pa.array([row / 8 for row in rows], pa.float32()).cast(pa.float16()),
            "f32": column(pa.float32(), lambda row: row / 3, 11),
            "f64": column(pa.float64(), lambda row: (row - 20) / 7, 4),
            "flag": column(pa.bool_(), lambda row: row % 3 == 0, 5),
            "text": column(pa.string(), lambda row: words[row % 7], 10),
            "large": column(pa.large_string(), lambda row: words[row % 7] * 2, 10),
            "word": column(pa.string(), lambda row: words[row % 3], 10).dictionary_encode(),
            "binary": column(pa.binary(), lambda row: bytes([row, 0, 255]), 10),
            "fixed": column(pa.binary(4), lambda row: bytes([row, 1, 2, 3]), 10),
            "dec": column(pa.decimal128(12, 3), lambda row: decimal.Decimal(row * 1001 - 9000).scaleb(-3), 6),
            "wide": column(pa.decimal128(38, 10), lambda row: decimal.Decimal(row * 10**20 + 1).scaleb(-10), 6),
            "day": column(pa.date32(), lambda row: utc.date() + datetime.timedelta(days=row), 8),
            "s": stamp("s"),
            "ms": stamp("ms"),
            "us": stamp("us"),
            "ns": stamp("ns"),
            "utc": stamp("us", "UTC"),
            "berlin": stamp("ms", "Europe/Berlin"),
            "time64": column(pa.time64("us"), lambda row: datetime.time(row % 24, 30, row), 8),
            "duration": column(pa.duration("s"), lambda row: datetime.timedelta(seconds=row * 100), 8),
        }
    )


def nested() -> pa.Table:
    """Lists, structs and maps, empty and null at every level."""
    rows = range(30)
    point = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("name", pa.string())])

    def maybe(row: int, every: int, value):
        return None if row % every == every - 1 else value

    return pa.table(
        {
            "n": pa.array(rows, pa.int64()),
            "list": pa.array([maybe(row, 5, [maybe(i, 3, i * row) for i in range(row % 4)]) for row in rows], pa.list_(pa.int32())),
            "point": pa.array(
                [maybe(row, 7, {"x": row / 4, "y": maybe(row, 4, -row / 2), "name": f"p{row % 5}"}) for row in rows], point
            ),
            "points": pa.array(
                [maybe(row, 6, [{"x": 1.0 * i, "y": None, "name": f"q{i}"} for i in range(row % 3)]) for row in rows],
                pa.list_(point),
            ),
            "deep": pa.array([[[row, row + 1], [], None] if row % 2 else None for row in rows], pa.list_(pa.list_(pa.int64()))),
            "map": pa.array([maybe(row, 8, [("a", row), ("b", None)]) for row in rows], pa.map_(pa.string(), pa.int32())),
            "image": pa.array(
                [maybe(row, 9, {"bytes": bytes([row] * 3), "path": f"{row}.png"}) for row in rows],
                pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
            ),
        }
    )


def texts(folder: pathlib.Path) -> None:
    """CSV and JSON by hand, in forms that libraries do not write."""
    (folder / "quotes.csv").write_bytes(
        b'id,"na""me",note,price,day,when\r\n'
        b'1,plain,"a, b",1.5,2024-01-02,2024-01-02 03:04:05\r\n'
        b'2,"with ""quotes""","two\nlines",,2024-02-29,2024-02-29T23:59:59\r\n'
        b'3,,,-2e3,,\r\n'
        b'4,gr\xc3\xb6\xc3\x9fe,last,4,1999-12-31,1999-12-31 00:00:00'
    )
    (folder / "bare.csv").write_text("".join(f"{row};{row * row};{'even' if row % 2 == 0 else 'odd'}\n" for row in range(40)))
    (folder / "tabs.tsv").write_text("a\tb\n1\tx, y\n2\tz\n")
    rows = [
        {"id": 1, "name": "one", "tags": ["a", "b"], "point": {"x": 1.5, "y": None}, "ok": True},
        {"id": 2, "name": None, "tags": [], "point": None, "ok": False},
        {"id": 3, "tags": None, "point": {"x": 2, "y": -1}, "late": "x"},
        {"id": 4, "name": "größe \"q\" \\ \n", "tags": ["c", None], "point": {"x": 0.1, "y": 2}, "ok": None},
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
