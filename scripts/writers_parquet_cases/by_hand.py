"""Files in the form of Spark, Hive, Impala and parquet-mr, with their contents."""

import datetime
import decimal
import functools
import pathlib
import struct

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from writers_parquet_cases.thrift import (
    BYTES, DECIMAL, DOUBLE, FIXED, INT32, INT64, INT96, LISTS, MAP, MAP_KEY_VALUE, OPTIONAL, REPEATED, REQUIRED, UTF8,
    Column, element, file, hadoop,
)

SPARK = "parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)"
EPOCH = datetime.datetime(1970, 1, 1)
STAMPS = [datetime.datetime(1, 1, 1), datetime.datetime(1677, 9, 20, 1, 2, 3), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
          datetime.datetime(2023, 2, 24, 0, 0, 0, 1), datetime.datetime(2262, 4, 12), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)]


def int96(stamp: datetime.datetime, below: int = 0) -> tuple[int, int]:
    since = stamp - EPOCH
    return 2_440_588 + since.days, (since.seconds * 10**6 + since.microseconds) * 1000 + below


def stamps() -> tuple[bytes, pa.Table]:
    """INT96 in rows, lists, structs and maps; digits below a microsecond are truncated."""
    values = [int96(stamp, below) for below, stamp in zip([0, 999, 999, 1, 0, 500], STAMPS)]
    schema = [
        element("spark_schema", children=4),
        element("t", OPTIONAL, INT96),
        element("l", OPTIONAL, children=1, converted=LISTS), element("list", REPEATED, children=1), element("element", OPTIONAL, INT96),
        element("s", OPTIONAL, children=1), element("inner", REQUIRED, INT96),
        element("m", OPTIONAL, children=1, converted=MAP), element("key_value", REPEATED, children=2),
        element("key", REQUIRED, INT96), element("value", OPTIONAL, INT96),
    ]
    # The last row is empty.
    def levels(most): return [most] * 6 + [0]
    columns = [
        Column(["t"], INT96, values, levels(1), 1, dictionary=True),
        Column(["l", "list", "element"], INT96, values, levels(3), 3, repeated=1),
        Column(["s", "inner"], INT96, values, levels(1), 1),
        Column(["m", "key_value", "key"], INT96, values, levels(2), 2, repeated=1),
        Column(["m", "key_value", "value"], INT96, values, levels(3), 3, repeated=1),
    ]
    at = pa.timestamp("us")
    expected = pa.table({
        "t": pa.array([*STAMPS, None], at), "l": pa.array([*([one] for one in STAMPS), None], pa.list_(at)),
        "s": pa.array([*({"inner": one} for one in STAMPS), None], pa.struct([("inner", at)])),
        "m": pa.array([*([(one, one)] for one in STAMPS), None], pa.map_(at, at)),
    })
    return file(schema, columns, 7, SPARK), expected


def decimals() -> tuple[bytes, pa.Table]:
    """Decimals as integers, as bytes of fixed length and as bytes of variable length, like `spark.sql.parquet.writeLegacyFormat`."""
    numbers = [0, 1, -1, 12345, -99999]
    big = [number * 10**20 for number in numbers]
    schema = [
        element("spark_schema", children=5),
        element("i32", REQUIRED, INT32, converted=DECIMAL, precision=9, scale=2),
        element("i64", REQUIRED, INT64, converted=DECIMAL, precision=18, scale=4),
        element("legacy", REQUIRED, FIXED, converted=DECIMAL, precision=10, scale=2, length=5),
        element("fixed", REQUIRED, FIXED, converted=DECIMAL, precision=38, scale=10, length=16),
        element("bytes", REQUIRED, BYTES, converted=DECIMAL, precision=30, scale=3),
    ]
    def shortest(number): return number.to_bytes(max((number.bit_length() + 8) // 8, 1), "big", signed=True)
    columns = [
        Column(["i32"], INT32, numbers), Column(["i64"], INT64, numbers),
        Column(["legacy"], FIXED, [number.to_bytes(5, "big", signed=True) for number in numbers]),
        Column(["fixed"], FIXED, [number.to_bytes(16, "big", signed=True) for number in big]),
        Column(["bytes"], BYTES, [shortest(number) for number in big]),
    ]
    def of(values, precision, scale):
        with decimal.localcontext(prec=60):
            return pa.array([decimal.Decimal(number).scaleb(-scale) for number in values], pa.decimal128(precision, scale))
    expected = pa.table({"i32": of(numbers, 9, 2), "i64": of(numbers, 18, 4), "legacy": of(numbers, 10, 2),
                         "fixed": of(big, 38, 10), "bytes": of(big, 30, 3)})
    return file(schema, columns, 5, SPARK), expected


def lists() -> tuple[bytes, pa.Table]:
    """Lists of two and three levels under every name, a plain repeated column, and Hive's maps."""
    schema = [
        element("hive_schema", children=6),
        element("two", OPTIONAL, children=1, converted=LISTS), element("array", REPEATED, INT32),
        element("three", OPTIONAL, children=1, converted=LISTS), element("bag", REPEATED, children=1), element("array_element", OPTIONAL, INT32),
        element("tuple", OPTIONAL, children=1, converted=LISTS), element("tuple_tuple", REPEATED, children=1), element("x", REQUIRED, INT32),
        element("pair", OPTIONAL, children=1, converted=LISTS), element("array", REPEATED, children=2),
        element("a", REQUIRED, INT32), element("b", REQUIRED, INT32),
        element("plain", REPEATED, INT32),
        element("map", OPTIONAL, children=1, converted=MAP), element("map", REPEATED, children=2, converted=MAP_KEY_VALUE),
        element("key", REQUIRED, BYTES, converted=UTF8), element("value", OPTIONAL, INT32),
    ]
    # Rows of [1, 2], [], null and [3]; in a column that is not optional the third is empty.
    def column(path, most, empty, null, kind=INT32, values=(1, 2, 3)):
        return Column(path, kind, list(values), [most, most, empty, null, most], most, [0, 1, 0, 0, 0], 1)
    columns = [
        column(["two", "array"], 2, 1, 0), column(["three", "bag", "array_element"], 3, 1, 0),
        column(["tuple", "tuple_tuple", "x"], 2, 1, 0), column(["pair", "array", "a"], 2, 1, 0),
        column(["pair", "array", "b"], 2, 1, 0), column(["plain"], 1, 0, 0),
        column(["map", "map", "key"], 2, 1, 0, BYTES, [b"a", b"b", b"c"]), column(["map", "map", "value"], 3, 1, 0),
    ]
    whole = [[1, 2], [], None, [3]]
    def each(of): return [None if row is None else [of(one) for one in row] for row in whole]
    number, x, pair = pa.int32(), pa.struct([("x", pa.int32())]), pa.struct([("a", pa.int32()), ("b", pa.int32())])
    expected = pa.table({
        "two": pa.array(whole, pa.list_(number)), "three": pa.array(whole, pa.list_(number)),
        "tuple": pa.array(each(lambda one: {"x": one}), pa.list_(x)),
        "pair": pa.array(each(lambda one: {"a": one, "b": one}), pa.list_(pair)),
        "plain": pa.array([[1, 2], [], [], [3]], pa.list_(number)),
        "map": pa.array(each(lambda one: ("abc"[one - 1], one)), pa.map_(pa.string(), number)),
    })
    return file(schema, columns, 4, "parquet-mr"), expected


def names() -> tuple[bytes, pa.Table]:
    """Names with dots, quotes, spaces and non-ASCII characters, and an empty name."""
    odd = ["a.b", "größe", "quote\"d", "tick`ed", "sp ace", "tab\t", "select", "UPPER", "upper", "", "🙂"]
    schema = [element("schema", children=len(odd)), *(element(name, REQUIRED, INT32) for name in odd)]
    columns = [Column([name], INT32, [place, -place]) for place, name in enumerate(odd)]
    expected = pa.table([pa.array([place, -place], pa.int32()) for place in range(len(odd))], names=odd)
    return file(schema, columns, 2, "parquet-mr"), expected


def lz4(block: int, chunk: int, version: int = 1, dictionary: bool = False) -> tuple[bytes, pa.Table]:
    """Hadoop's form of the codec LZ4."""
    numbers = [row * row % 251 for row in range(600)]
    words = [f"word {number // 9}".encode() for number in numbers]
    compress = functools.partial(hadoop, block=block, chunk=chunk)
    given = [row % 7 != 3 for row in range(600)]
    schema = [element("spark_schema", children=3), element("i", REQUIRED, INT32), element("f", OPTIONAL, DOUBLE),
              element("word", REQUIRED, BYTES, converted=UTF8)]
    fractions = [number / 4 for number, is_valid in zip(numbers, given) if is_valid]
    columns = [
        Column(["i"], INT32, numbers, version=version, compress=compress, dictionary=dictionary),
        Column(["f"], DOUBLE, fractions, [int(is_valid) for is_valid in given], 1, version=version, compress=compress),
        Column(["word"], BYTES, words, version=version, compress=compress, dictionary=dictionary),
    ]
    expected = pa.table({
        "i": pa.array(numbers, pa.int32()),
        "f": pa.array([number / 4 if is_valid else None for number, is_valid in zip(numbers, given)], pa.float64()),
        "word": pa.array([word.decode() for word in words]),
    })
    return file(schema, columns, 600, SPARK), expected


FILES = {
    "spark_int96": stamps,
    "spark_decimals": decimals,
    "hive_lists": lists,
    "odd_names": names,
    "lz4_one": lambda: lz4(1 << 20, 1 << 20),
    # Two cases: the compressed last block is at most as long as the one before, or longer.
    "lz4_blocks": lambda: lz4(512, 512),
    "lz4_two_blocks": lambda: lz4(1600, 1600),
    "lz4_chunks": lambda: lz4(1 << 20, 300),
    "lz4_blocks_of_chunks": lambda: lz4(700, 200, dictionary=True),
    "lz4_small": lambda: lz4(40, 40),
    "lz4_v2": lambda: lz4(512, 256, version=2, dictionary=True),
}


def write(folder: pathlib.Path) -> list[tuple[str, pa.Table]]:
    """Writes all files. Returns their contents, confirmed by DuckDB or pyarrow."""
    made = []
    for name, make in FILES.items():
        path = folder / f"hand_{name}.parquet"
        content, expected = make()
        path.write_bytes(content)
        confirm(path, expected)
        made.append((path.name, expected))
    return made


def confirm(path: pathlib.Path, expected: pa.Table) -> None:
    """Fails if neither pyarrow nor DuckDB reads these values."""
    rows = expected.to_pylist()
    read, faults = [], []
    for reader in (lambda: pq.ParquetFile(path).read().to_pylist() if "int96" not in path.name
                   else pq.read_table(path, coerce_int96_timestamp_unit="us").to_pylist(),
                   lambda: duckdb.sql(f"select * from '{path}'").to_arrow_table().to_pylist()):
        try:
            read.append(reader())
        except Exception as error:  # noqa: BLE001, readers raise many types
            faults.append(str(error).splitlines()[0])
    agree = sum(one == rows for one in read)
    print(f"{path.name}: {agree} of 2 readers agree, {len(faults)} fail {faults}")
    # Neither reads a block of several chunks, which Hadoop's own stream writes.
    if not agree and "chunks" not in path.name and "v2" not in path.name:
        raise SystemExit(f"{path.name}: expected one reader to return the contents, found {read}")
