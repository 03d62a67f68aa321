"""Arrow IPC files and streams of pyarrow, pandas and Polars, with their options and every type."""

import datetime
import decimal
import pathlib

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather

from .case import Case


def columns() -> dict[str, pa.Array]:
    """A column of each type, named after the type."""
    day, time = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)
    number = decimal.Decimal("-12.34")
    made = {
        "null": pa.nulls(3),
        "bool": pa.array([True, None, False]),
        "f16": pa.array([1.5, None, -2.0], pa.float16()),
        "f32": pa.array([0.1, None, float("inf")], pa.float32()),
        "f64": pa.array([0.1, None, float("nan")]),
        "utf8": pa.array(["a", None, "é" * 20]),
        "large_utf8": pa.array(["a", None, "é" * 20], pa.large_string()),
        "utf8_view": pa.array(["a", None, "é" * 20], pa.string_view()),
        "binary": pa.array([b"a", None, b"\x00\xff" * 20]),
        "large_binary": pa.array([b"a", None, b"\x00\xff" * 20], pa.large_binary()),
        "binary_view": pa.array([b"a", None, b"\x00\xff" * 20], pa.binary_view()),
        "fixed_binary": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "date32": pa.array([day, None, day], pa.date32()),
        "date64": pa.array([day, None, day], pa.date64()),
        "time32": pa.array([time.time(), None, datetime.time(0)], pa.time32("ms")),
        "time64": pa.array([time.time(), None, datetime.time(0)], pa.time64("ns")),
        "interval": pa.array([pa.MonthDayNano([1, -2, 3_000_000_001]), None, pa.MonthDayNano([0, 0, 0])]),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
        "large_list": pa.array([["a", None], None, []], pa.large_list(pa.string())),
        "fixed_list": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int16(), 2)),
        "list_view": pa.array([[1, None], None, []], pa.list_view(pa.int32())),
        "large_list_view": pa.array([[1, None], None, []], pa.large_list_view(pa.int32())),
        "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]),
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "nested": pa.array([[{"x": [1.5]}], None, [{"x": None}]]),
        "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
        "large_dictionary": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), pa.array(["b", "a"], pa.large_string())),
        "ordered_dictionary": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int64()), pa.array([7, 9]), ordered=True),
        "run_end": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None])),
        "tz": pa.array([time, None, time], pa.timestamp("us", "Europe/Berlin")),
    }
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        made[kind] = pa.array([1, None, 100], getattr(pa, kind)())
    for unit in ("s", "ms", "us", "ns"):
        made[f"timestamp_{unit}"] = pa.array([1, None, -1], pa.timestamp(unit))
        made[f"duration_{unit}"] = pa.array([1, None, -1], pa.duration(unit))
    for bits in (32, 64, 128, 256):
        made[f"decimal{bits}"] = pa.array([number, None, -number], getattr(pa, f"decimal{bits}")(9, 2))
    return made


def plain(array: pa.Array) -> pa.Array:
    """The values in types that every reader has."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pa.compute.run_end_decode(array))
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.string())
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return array.cast(pa.binary())
    if isinstance(kind, (pa.ListViewType, pa.LargeListViewType, pa.LargeListType)):
        return pa.array(array.to_pylist(), pa.list_(plain(pa.nulls(0, kind.value_type)).type))
    if isinstance(kind, (pa.Decimal32Type, pa.Decimal64Type)):
        return pa.array(array.to_pylist(), pa.decimal128(kind.precision, kind.scale))
    return array


def right(table: pa.Table) -> pa.Table:
    return pa.table([plain(column.combine_chunks()) for column in table.columns], names=table.column_names)


def write(folder: pathlib.Path) -> list[Case]:
    return [*by_pyarrow(folder), *of_types(folder), *by_polars(folder), *refused(folder)]


def by_pyarrow(folder: pathlib.Path) -> list[Case]:
    made = columns()
    table = pa.table({name: made[name] for name in ("int64", "f64", "utf8", "bool", "list", "dictionary")})
    other = table.set_column(5, "dictionary", pa.array(["c", "a", None]).dictionary_encode())
    longer = table.set_column(5, "dictionary", pa.DictionaryArray.from_arrays(pa.array([2, None, 0], pa.int32()), ["a", "b", "c"]))
    cases = []

    def add(name: str, parts: list[pa.Table], kind: str, **options) -> None:
        file = f"pyarrow_{name}.{'arrow' if kind == 'file' else 'arrows'}"
        writer = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with writer(str(folder / file), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
            for part in parts:
                out.write_table(part)
        reader = pa.ipc.open_file if kind == "file" else pa.ipc.open_stream
        # The messages of old streams have no marker, so the format has to be named.
        is_named = kind == "stream" and options.get("use_legacy_format")
        pipeline = "select(format=arrow)" if is_named else "select"
        cases.append(Case(file, right(reader(str(folder / file)).read_all()), pipeline))

    same = [table, table]
    v4 = pa.ipc.MetadataVersion.V4
    for kind in ("file", "stream"):
        add("plain", same, kind)
        add("lz4", same, kind, compression="lz4")
        add("zstd", same, kind, compression="zstd")
        add("zstd_19", same, kind, compression=pa.Codec("zstd", compression_level=19))
        add("v4", same, kind, metadata_version=v4)
        add("64bit", same, kind, allow_64bit=True)
        add("deltas", [table, longer], kind, emit_dictionary_deltas=True)
        add("legacy", same, kind, use_legacy_format=True)
        add("legacy_v4", same, kind, use_legacy_format=True, metadata_version=v4)
        add("no_rows", [table.slice(0, 0)], kind)
        add("no_batches", [], kind)
        add("sliced", [table.slice(1), table.slice(0, 1)], kind)
    add("replaced", [table, other], "stream")
    with pa.ipc.new_file(str(folder / "pyarrow_unified.arrow"), table.schema,
                         options=pa.ipc.IpcWriteOptions(unify_dictionaries=True)) as out:
        out.write_table(pa.concat_tables([table, other]))
    cases.append(Case("pyarrow_unified.arrow", right(pa.ipc.open_file(str(folder / "pyarrow_unified.arrow")).read_all())))
    noted = table.replace_schema_metadata({"note": "x" * 100})
    add("metadata", [noted], "file")
    for compression in ("uncompressed", "lz4", "zstd"):
        file = f"feather_{compression}.feather"
        pa.feather.write_feather(table, folder / file, compression=compression)
        cases.append(Case(file, right(pa.feather.read_table(folder / file))))
    frame = pd.DataFrame({"n": [1, 2], "name": ["a", None], "at": pd.to_datetime(["2024-01-01", None])})
    frame.to_feather(folder / "pandas.feather")
    cases.append(Case("pandas.feather", right(pa.feather.read_table(folder / "pandas.feather"))))
    category = pd.DataFrame({"n": [1, 2, 3], "kind": pd.Categorical(["b", None, "a"], categories=["a", "b", "c"], ordered=True)})
    category.to_feather(folder / "pandas_category.feather")
    cases.append(Case("pandas_category.feather", right(pa.feather.read_table(folder / "pandas_category.feather"))))
    return cases


def of_types(folder: pathlib.Path) -> list[Case]:
    """A file for each type, so that a failure names the type."""
    cases = []
    for name, column in columns().items():
        for kind, options in (("file", {}), ("stream", {"compression": "zstd"})):
            table = pa.table({"n": [1, 2, 3], name: column})
            file = f"type_{name}.{'arrow' if kind == 'file' else 'arrows'}"
            writer = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
            with writer(str(folder / file), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
                out.write_table(table)
            cases.append(Case(file, right(table)))
    return cases


def by_polars(folder: pathlib.Path) -> list[Case]:
    day = datetime.date(2024, 2, 29)
    frame = pl.DataFrame({
        "n": [1, None, 3],
        "u": pl.Series([1, None, 3], dtype=pl.UInt8),
        "x": [0.1, None, float("nan")],
        "name": ["a", None, "é" * 20],
        "bytes": [b"a", None, b"\x00\xff" * 20],
        "ok": [True, None, False],
        "day": [day, None, day],
        "at": [datetime.datetime(2024, 1, 1), None, datetime.datetime(1969, 12, 31, 23, 59, 59, 5)],
        "span": [datetime.timedelta(seconds=1), None, datetime.timedelta(days=-1)],
        "time": [datetime.time(1, 2, 3), None, datetime.time(0)],
        "list": [[1, None], None, []],
        "array": pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int32, 2)),
        "struct": [{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}],
        "category": pl.Series(["a", None, "b"], dtype=pl.Categorical),
        "enum": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"])),
        "decimal": pl.Series([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], dtype=pl.Decimal(10, 2)),
        "null": pl.Series([None, None, None], dtype=pl.Null),
    })
    few = frame
    # Enough rows for compressed buffers.
    frame = pl.concat([frame] * 20)
    expected = right(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    cases = []
    for level, compat in (("oldest", pl.CompatLevel.oldest()), ("newest", pl.CompatLevel.newest())):
        for compression in ("uncompressed", "lz4", "zstd"):
            file = f"polars_{level}_{compression}.arrow"
            frame.write_ipc(folder / file, compat_level=compat, compression=compression)
            assert pl.read_ipc(folder / file).equals(frame)
            cases.append(Case(file, expected))
            file = f"polars_{level}_{compression}.arrows"
            frame.write_ipc_stream(folder / file, compat_level=compat, compression=compression)
            assert pl.read_ipc_stream(folder / file).equals(frame)
            cases.append(Case(file, expected))
    few.write_ipc(folder / "polars_batches.arrow", record_batch_size=1)
    cases.append(Case("polars_batches.arrow", right(few.to_arrow(compat_level=pl.CompatLevel.oldest()))))
    return cases


def refused(folder: pathlib.Path) -> list[Case]:
    cases = []
    numbers, words = pa.array([1, 2]), pa.array(["a", "b"])
    kinds, places = pa.array([0, 1], pa.int8()), pa.array([0, 1], pa.int32())
    for name, union in (
        ("sparse", pa.UnionArray.from_sparse(kinds, [numbers, words])),
        ("dense", pa.UnionArray.from_dense(kinds, places, [numbers, words])),
    ):
        table = pa.table({"n": [1, 2], "either": union})
        with pa.ipc.new_file(str(folder / f"union_{name}.arrow"), table.schema) as out:
            out.write_table(table)
        cases.append(Case(f"union_{name}.arrow", "union"))
    (folder / "feather_1.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    cases.append(Case("feather_1.feather", "Feather"))
    return cases
