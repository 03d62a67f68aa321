"""The same rows by pyarrow, DuckDB, Polars and fastparquet, with every option that changes the file."""

import pathlib
import uuid

import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from writers_parquet_cases import tables

NO_SCHEMA = {"store_schema": False}
INT96 = {"use_deprecated_int96_timestamps": True}
SMALL = {"row_group_size": 13, "data_page_size": 64, "write_batch_size": 5}
# Table, options.
PYARROW = {
    "v10_p1_none": ("flat", {"version": "1.0", "data_page_version": "1.0", "compression": "none"}),
    "v10_p2_snappy": ("flat", {"version": "1.0", "data_page_version": "2.0", "compression": "snappy", **NO_SCHEMA}),
    "v24_p1_gzip": ("flat", {"version": "2.4", "data_page_version": "1.0", "compression": "gzip", "use_dictionary": False}),
    "v24_p2_brotli": ("flat", {"version": "2.4", "data_page_version": "2.0", "compression": "brotli", **NO_SCHEMA}),
    "v26_p1_zstd": ("more", {"version": "2.6", "data_page_version": "1.0", "compression": "zstd"}),
    "v26_p2_lz4": ("more", {"version": "2.6", "data_page_version": "2.0", "compression": "lz4", "use_dictionary": False}),
    "v26_p1_lz4_no_schema": ("flat", {"compression": "lz4", **NO_SCHEMA, **SMALL}),
    "int96": ("flat", {**INT96}),
    "int96_no_schema": ("flat", {**INT96, **NO_SCHEMA, "data_page_version": "2.0", "compression": "none"}),
    "int96_small": ("flat", {**INT96, **NO_SCHEMA, **SMALL, "use_dictionary": False}),
    "int96_nested": ("nested", {**INT96, **NO_SCHEMA}),
    "int96_nested_schema": ("nested", {**INT96, **SMALL}),
    "delta": ("flat", {"use_dictionary": False, "compression": "none", "column_encoding": {
        "n": "DELTA_BINARY_PACKED", "i32": "DELTA_BINARY_PACKED", "us": "DELTA_BINARY_PACKED",
        "text": "DELTA_BYTE_ARRAY", "bytes": "DELTA_LENGTH_BYTE_ARRAY", "wide": "DELTA_BYTE_ARRAY",
        "f64": "BYTE_STREAM_SPLIT", "f32": "BYTE_STREAM_SPLIT", "dec": "BYTE_STREAM_SPLIT"}}),
    "split": ("flat", {"use_dictionary": False, "compression": "zstd", "data_page_version": "2.0", "column_encoding": {
        "n": "BYTE_STREAM_SPLIT", "i32": "BYTE_STREAM_SPLIT", "text": "DELTA_LENGTH_BYTE_ARRAY", "wide": "BYTE_STREAM_SPLIT"}}),
    "index": ("flat", {"write_page_index": True, "write_page_checksum": True, **SMALL}),
    "no_statistics": ("flat", {"write_statistics": False, **SMALL}),
    "integer_decimals": ("flat", {"store_decimal_as_integer": True, **SMALL}),
    "nested_p1": ("nested", {"data_page_version": "1.0", **SMALL}),
    "nested_p2_no_schema": ("nested", {"data_page_version": "2.0", **NO_SCHEMA, **SMALL}),
    "old_lists": ("nested", {"use_compliant_nested_type": False, **NO_SCHEMA}),
}
DUCKDB = {
    "v1_none": ("flat", "codec uncompressed"),
    "v1_snappy": ("nested", "codec snappy"),
    "v2_gzip": ("flat", "codec gzip, parquet_version v2"),
    "v2_zstd": ("nested", "codec zstd, parquet_version v2"),
    "v1_brotli": ("flat", "codec brotli"),
    "v2_lz4_raw": ("flat", "codec lz4_raw, parquet_version v2, row_group_size 2048"),
    "bloom": ("flat", "dictionary_size_limit 1000, bloom_filter_false_positive_ratio 0.01"),
}
POLARS = {
    "none": ("more", {"compression": "uncompressed"}),
    "lz4": ("more", {"compression": "lz4", "row_group_size": 13}),
    "gzip": ("flat", {"compression": "gzip", "data_page_size": 64}),
    "brotli": ("flat", {"compression": "brotli", "statistics": "full"}),
    "snappy": ("nested", {"compression": "snappy", "statistics": False}),
    "zstd": ("nested", {"compression": "zstd", "row_group_size": 13}),
}
FASTPARQUET = {
    "none": {"compression": None},
    "snappy": {"compression": "SNAPPY", "stats": True},
    "gzip": {"compression": "GZIP", "row_group_offsets": [0, 7, 20]},
    "zstd": {"compression": "ZSTD", "times": "int96"},
    "lz4": {"compression": "LZ4_RAW", "stats": False},
}


def base(name: str) -> pa.Table:
    return {"flat": tables.flat, "more": tables.more, "nested": tables.nested}[name]()


def write(folder: pathlib.Path) -> list[tuple[str, pa.Table]]:
    """Writes all files. Returns their contents as read by their own writers."""
    made = []
    for name, (rows, options) in PYARROW.items():
        path = folder / f"pyarrow_{name}.parquet"
        pq.write_table(base(rows), path, **options)
        read = pq.read_table(path, coerce_int96_timestamp_unit="us")
        if name == "int96":
            # pyarrow loses the zone of the Arrow schema when it reads microseconds.
            zone = read.schema.get_field_index("utc")
            read = read.set_column(zone, "utc", read["utc"].cast(pa.timestamp("us", "UTC")))
        made.append((path.name, read))
    for name, (rows, options) in DUCKDB.items():
        path = folder / f"duckdb_{name}.parquet"
        connection = duckdb.connect()
        connection.sql("set TimeZone = 'UTC'")
        connection.register("given", base(rows))
        connection.sql(f"copy (select * from given) to '{path}' (format parquet, {options})")
        made.append((path.name, connection.sql(f"select * from '{path}'").to_arrow_table()))
    made.append(duckdb_types(folder))
    for name, (rows, options) in POLARS.items():
        path = folder / f"polars_{name}.parquet"
        given = base(rows)
        lacking = [field.name for field in given.schema if field.name in ("half", "huge", "map")]
        pl.from_arrow(given.drop_columns(lacking)).write_parquet(path, **options)
        made.append((path.name, pl.read_parquet(path).to_arrow()))
    made.append(polars_types(folder))
    for name, options in FASTPARQUET.items():
        path = folder / f"fastparquet_{name}.parquet"
        # It writes microseconds into INT96 as if they were nanoseconds.
        given = frame().drop(columns=["utc"]) if "times" in options else frame()
        fastparquet.write(str(path), given, write_index=False, **options)
        made.append((path.name, pa.Table.from_pandas(fastparquet.ParquetFile(str(path)).to_pandas(), preserve_index=False)))
    for options, name in ({"engine": "pyarrow"}, "pandas_pyarrow"), ({"engine": "fastparquet", "compression": "gzip"}, "pandas_fastparquet"):
        path = folder / f"{name}.parquet"
        frame().to_parquet(path, index=False, **options)
        made.append((path.name, pa.Table.from_pandas(pd.read_parquet(path, engine=options["engine"]), preserve_index=False)))
    return made


def duckdb_types(folder: pathlib.Path) -> tuple[str, pa.Table]:
    """Types that only DuckDB has: intervals with months, UUIDs, seconds, nanoseconds."""
    path = folder / "duckdb_types.parquet"
    connection = duckdb.connect()
    connection.sql("set TimeZone = 'UTC'")
    connection.sql(f"""copy (
        select i as n,
            case when i % 5 <> 4 then interval (i) month + interval (i * 2) day + interval (i * 1500) millisecond end as span,
            cast('550e8400-e29b-41d4-a716-44665544' || lpad(i::varchar, 4, '0') as uuid) as id,
            [interval (i) month] as spans, {{'id': cast('00000000-0000-0000-0000-00000000' || lpad(i::varchar, 4, '0') as uuid)}} as s,
            epoch_ms(i * 1000)::timestamp_s as s_, epoch_ms(i)::timestamp_ms as ms, make_timestamp_ns(i) as ns,
            time '12:00:00' + interval (i) microsecond as clock, i::utinyint as u8, (i - 5)::decimal(4, 1) as small
        from range(12) t(i)) to '{path}' (format parquet)""")
    read = connection.sql(f"select * from '{path}'").to_arrow_table()
    def sixteen(texts: pa.Array) -> pa.Array:
        return pa.array([uuid.UUID(text).bytes for text in texts.to_pylist()], pa.binary(16))
    inner = pa.StructArray.from_arrays([sixteen(read["s"].combine_chunks().field("id"))], ["id"])
    read = read.set_column(read.schema.get_field_index("id"), "id", sixteen(read["id"]))
    return path.name, read.set_column(read.schema.get_field_index("s"), "s", inner)


def polars_types(folder: pathlib.Path) -> tuple[str, pa.Table]:
    """Types that only Polars has: categories, durations, arrays of fixed length."""
    path = folder / "polars_types.parquet"
    rows = range(12)
    pl.DataFrame({
        "category": pl.Series([None if row == 3 else "abc"[row % 3] for row in rows], dtype=pl.Categorical),
        "enum": pl.Series(["abc"[row % 3] for row in rows], dtype=pl.Enum(["a", "b", "c"])),
        "duration": pl.Series([row * 1000 for row in rows], dtype=pl.Duration("ms")),
        "time": pl.Series([row * 10**9 for row in rows], dtype=pl.Time),
        "array": pl.Series([[row, None] for row in rows], dtype=pl.Array(pl.Int16, 2)),
        "ns": pl.Series([row for row in rows], dtype=pl.Datetime("ns")),
        "ms": pl.Series([row for row in rows], dtype=pl.Datetime("ms", "Europe/Berlin")),
        "image": pl.Series([{"bytes": bytes([row]), "path": str(row)} for row in rows]),
        "null": pl.Series([None for _ in rows], dtype=pl.Null),
    }).write_parquet(path)
    return path.name, pl.read_parquet(path).to_arrow()


def frame() -> pd.DataFrame:
    """The rows as a pandas frame."""
    rows = range(tables.ROWS)
    return pd.DataFrame({
        "n": list(rows),
        "flag": [row % 3 == 0 for row in rows],
        "f64": [None if row % 5 == 4 else row / 8 for row in rows],
        "text": pd.Series([None if row % 8 == 7 else f"größe {row}" for row in rows], dtype=object),
        "stamp": pd.Series([tables.near(row) for row in rows]).astype("datetime64[ns]"),
        "utc": pd.Series([tables.near(row) for row in rows]).astype("datetime64[us]").dt.tz_localize("UTC"),
        "word": pd.Categorical([["a", "b", None][row % 3] for row in rows]),
        "maybe": pd.Series([None if row % 4 == 3 else row for row in rows], dtype="Int32"),
    })
