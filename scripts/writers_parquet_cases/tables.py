"""The rows for every writer, as far as it has their types."""

import datetime
import decimal

import pyarrow as pa

ROWS = 24


def column(kind: pa.DataType, of, null: int = 0) -> pa.Array:
    return pa.array([None if null and row % null == null - 1 else of(row) for row in range(ROWS)], kind)


def stamp(row: int) -> datetime.datetime:
    """Times far from now and near, in whole and fractional seconds."""
    starts = [datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000),
              datetime.datetime(2024, 2, 28, 23, 59, 59, 123000), datetime.datetime(9999, 12, 30, 12)]
    return starts[row % 4] + datetime.timedelta(hours=row)


def near(row: int) -> datetime.datetime:
    return datetime.datetime(2024, 2, 28, 23, 59, 59, 123456) + datetime.timedelta(hours=7 * row)


def flat() -> pa.Table:
    """Every flat type."""
    text = ["", "alpha", "größe", "x" * 40, "日本"]
    return pa.table({
        "n": column(pa.int64(), lambda row: row),
        "flag": column(pa.bool_(), lambda row: row % 3 == 0, 5),
        "i8": column(pa.int8(), lambda row: row - 12, 7),
        "u16": column(pa.uint16(), lambda row: 65535 - row),
        "i32": column(pa.int32(), lambda row: (row - 12) * 100_000_000, 4),
        "u64": column(pa.uint64(), lambda row: 2**64 - 1 - row, 6),
        "f32": column(pa.float32(), lambda row: (row - 12) / 8, 5),
        "f64": column(pa.float64(), lambda row: [0.1 * row, float("nan"), float("-inf"), -0.0][row % 4], 9),
        "text": column(pa.string(), lambda row: text[row % 5], 8),
        "bytes": column(pa.binary(), lambda row: bytes([row, 0, 255]) * (row % 3), 7),
        "day": column(pa.date32(), lambda row: datetime.date(1969, 12, 20) + datetime.timedelta(days=row), 6),
        "ms": column(pa.timestamp("ms"), stamp, 7),
        "us": column(pa.timestamp("us"), stamp, 5),
        "utc": column(pa.timestamp("us", "UTC"), lambda row: near(row).replace(tzinfo=datetime.timezone.utc), 5),
        "clock": column(pa.time64("us"), lambda row: datetime.time(row, 59, 1, row), 6),
        "dec": column(pa.decimal128(9, 2), lambda row: decimal.Decimal(row - 12) / 4, 5),
        "wide": column(pa.decimal128(38, 10), lambda row: decimal.Decimal(10) ** 20 * (row - 12) + row, 6),
    })


def more() -> pa.Table:
    """Types of Arrow that not every writer has."""
    words = pa.array([None if row == 3 else row % 3 for row in range(ROWS)], pa.int32())
    return flat().append_column("ns", column(pa.timestamp("ns"), near, 5)) \
        .append_column("half", column(pa.float16(), lambda row: row / 4, 5)) \
        .append_column("fixed", column(pa.binary(3), lambda row: bytes([row] * 3), 5)) \
        .append_column("seconds", column(pa.time32("ms"), lambda row: datetime.time(row, 1, 2, 3000), 5)) \
        .append_column("large", column(pa.large_string(), lambda row: "l" * row, 5)) \
        .append_column("large_bytes", column(pa.large_binary(), lambda row: b"l" * row, 5)) \
        .append_column("view", column(pa.string_view(), lambda row: "v" * row, 5)) \
        .append_column("bytes_view", column(pa.binary_view(), lambda row: b"v" * row, 5)) \
        .append_column("word", pa.DictionaryArray.from_arrays(words, pa.array(["a", "b", "c"]))) \
        .append_column("span", column(pa.duration("us"), lambda row: datetime.timedelta(hours=row - 3), 5)) \
        .append_column("huge", column(pa.decimal256(50, 3), lambda row: decimal.Decimal(10) ** 40 + row, 5))


def nested() -> pa.Table:
    """Lists, structs and maps, including empty and null ones."""
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({
        "n": column(pa.int64(), lambda row: row),
        "list": column(pa.list_(pa.int32()), lambda row: [None if one == 2 else one for one in range(row % 5)], 4),
        "lists": column(pa.list_(pa.list_(pa.string())), lambda row: [["a"] * one for one in range(row % 4)], 5),
        "image": column(image, lambda row: {"bytes": bytes([row]), "path": None if row % 2 else f"{row}.png"}, 5),
        "map": column(pa.map_(pa.string(), pa.int64()), lambda row: [(str(one), one) for one in range(row % 3)], 6),
        "deep": column(pa.list_(pa.struct([("at", pa.timestamp("us")), ("of", pa.list_(pa.float64()))])),
                       lambda row: [{"at": near(row), "of": [0.5] * one} for one in range(row % 3)], 7),
    })
