"""Conditions that compare columns of times, decimals and UUIDs with literals, and the rows that DuckDB finds."""

import datetime
import decimal
import pathlib
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

FAR = [datetime.datetime(1, 1, 1), datetime.datetime(1677, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999000),
       datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 12, 30, 0, 1000), datetime.datetime(2024, 2, 29, 12, 30),
       datetime.datetime(2262, 4, 12), datetime.datetime(9999, 12, 31), datetime.datetime(9999, 12, 31, 23, 59, 59, 999000), None]
NEAR = [0, -1, 1, 1_000, 1_709_209_800_000_000_000, 1_709_209_800_000_000_001, 1_709_209_800_123_456_789, -(2**62), 2**62, None]
CLOCK = [datetime.time(0), datetime.time(0, 0, 1), datetime.time(12), datetime.time(12, 0, 0, 1000), datetime.time(12, 30),
         datetime.time(23, 59), datetime.time(23, 59, 59), datetime.time(23, 59, 59, 999000), datetime.time(6), None]
NUMBERS = ["0", "1", "-1", "1.25", "-1.25", "99999.99", "-99999.99", "0.01", "1.26", None]


def table() -> pa.Table:
    def decimals(precision: int, scale: int) -> pa.Array:
        return pa.array([None if one is None else decimal.Decimal(one) for one in NUMBERS], pa.decimal128(precision, scale))
    day = [None if one is None else one.date() for one in FAR]
    nanoseconds = [None if one is None else one.hour * 3_600 * 10**9 + one.minute * 60 * 10**9 + one.second * 10**9
                   + one.microsecond * 1000 + (1 if one.hour == 6 else 0) for one in CLOCK]
    ids = [uuid.UUID(int=place << 124 | place).bytes if place < 9 else None for place in range(10)]
    with decimal.localcontext(prec=60):
        wide = [decimal.Decimal(10) ** 27 * (place - 4) + decimal.Decimal(place) / 10**10 if place < 9 else None for place in range(10)]
    return pa.table({
        "n": pa.array(range(10), pa.int64()),
        "s": pa.array(FAR, pa.timestamp("s")),
        "ms": pa.array(FAR, pa.timestamp("ms")),
        "us": pa.array(FAR, pa.timestamp("us")),
        "ns": pa.array(NEAR, pa.timestamp("ns")),
        "ms_utc": pa.array(FAR, pa.timestamp("ms", "UTC")),
        "us_utc": pa.array(FAR, pa.timestamp("us", "UTC")),
        "berlin": pa.array(FAR, pa.timestamp("us", "Europe/Berlin")),
        "day": pa.array(day, pa.date32()),
        "clock_ms": pa.array(CLOCK, pa.time32("ms")),
        "clock_us": pa.array(CLOCK, pa.time64("us")),
        "clock_ns": pa.array(nanoseconds, pa.time64("ns")),
        "d9": decimals(9, 2),
        "d18": decimals(18, 4),
        "d38": decimals(38, 10),
        "wide": pa.array(wide, pa.decimal128(38, 10)),
        "big": pa.array([2**62 + 1, -(2**62) - 1, 2**53 + 1, 2**53, 0, 1, -1, 2**63 - 1, -(2**63), None], pa.int64()),
        "id": pa.ExtensionArray.from_storage(pa.uuid(), pa.array(ids, pa.binary(16))),
    })


OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"]
INSTANTS = ["timestamp '9999-12-31'", "'9999-12-31'", "date '9999-12-31'", "'0001-01-01'", "'1969-12-31 23:59:59.999'", "'2024-02-29 12:30'",
            "timestamp '2024-02-29 12:30:00.0005'", "'2024-02-29 12:30:00.0005'", "'2024-02-29T12:30:00.001Z'", "'2024-02-29 13:30:00+01:00'",
            "timestamptz '2024-02-29 13:30:00+01:00'", "'10000-01-01'", "'-0044-03-15'", "'294247-01-10'", "date '1970-01-01'",
            "'9999-12-31 23:59:59.999999'", "'infinity'", "'-infinity'", "'epoch'", "timestamp '2024-02-28 12:30' + interval '1 day'",
            "'2024/2/29 12:30'", "null"]
NEAR_INSTANTS = ["timestamp '2024-02-29 12:30'", "'2024-02-29 12:30'", "'2024-02-29 12:30:00.123456789'", "'2024-02-29 12:30:00.000000001'",
                 "timestamp '2024-02-29 12:30:00.123456789'", "date '2024-02-29'", "'1970-01-01 00:00:00.000001'", "'1969-12-31 23:59:59.999999999'",
                 "'1800-01-01'", "'2262-01-01'"]
DAYS = ["'9999-12-31'", "date '9999-12-31'", "timestamp '9999-12-31'", "timestamp '2024-02-29 12:30'", "'2024-02-29 12:30'", "'1677-01-01'",
        "timestamp '1969-12-31 23:59:59.999999'", "'12000-01-01'", "timestamp '12000-01-01'", "timestamptz '2024-02-29 00:00:00+01'"]
CLOCKS = ["'12:00:00'", "time '12:00:00'", "'12:00:00.001'", "'12:00:00.0005'", "time '12:00:00.000001'", "'23:59:59.999999'", "'24:00:00'",
          "'12:00'", "'6:00:00.000000001'", "'12:00:00+02'"]
DIGITS = ["1.25", "1.251", "1.2500000000001", "-1.25", "-1.2500001", "0", "0.005", "99999.99", "100000", "99999.995", "-100000", "1e-1", "1", "12345678901",
          "1e30", "'1.25'", "0.0000000001"]
WIDE = ["0.0000000004", "0.00000000041", "1000000000000000000000000000.0000000005", "1000000000000000000000000000.0000000006", "1000000000000000000000000000",
        "-4000000000000000000000000000", "9999999999999999999999999999.9999999999"]
BIG = ["4611686018427387905", "4611686018427387904.5", "9007199254740993.0", "9007199254740992.5", "0.5", "-0.5", "1.0", "9223372036854775807", "9223372036854775808"]
IDS = ["'10000000-0000-0000-0000-000000000001'", "'20000000000000000000000000000002'", "'{30000000-0000-0000-0000-000000000003}'",
       "uuid '4000000000000000-0000-0000-0000-0004'", "'7FFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF'"]


def conditions() -> list[str]:
    """Every operator with every literal, from both sides; and lists."""
    made = []
    for columns, literals in [
        (["s", "ms", "us", "ms_utc", "us_utc", "berlin"], INSTANTS), (["ns"], NEAR_INSTANTS), (["day"], DAYS),
        (["clock_ms", "clock_us", "clock_ns"], CLOCKS), (["d9", "d18", "d38"], DIGITS), (["wide"], WIDE), (["big"], BIG), (["id"], IDS),
    ]:
        for column in columns:
            for place, literal in enumerate(literals):
                # All literals in one list, and alternating with others.
                several = OPERATORS if column in ("us", "ns", "day", "d9", "id") else [OPERATORS[(place + turn) % 8] for turn in (0, 3)]
                made.extend(f"{column} {operator} {literal}" for operator in several)
                operator = OPERATORS[place % 6]
                made.append(f"{literal} {operator} {column}")
                # DuckDB reads a text next to a typed literal as that type.
                turned = literals[place + 1 :] + literals[: place + 1]
                other = next(one for one in turned if one.startswith("'") == literal.startswith("'"))
                made.append(f"{column} between {literal} and {other}")
                made.append(f"not ({column} not between {other} and {literal})")
                made.append(f"{column} in ({literal}, {other})")
                made.append(f"{column} not in ({other}, {literal})")
    pairs = [("ms", "us"), ("s", "day"), ("us", "us_utc"), ("day", "us"), ("clock_ms", "clock_us"), ("clock_us", "clock_ns"), ("us", "berlin"), ("d9", "d38")]
    made.extend(f"{one} {operator} {other}" for one, other in pairs for operator in OPERATORS)
    return made


def write(folder: pathlib.Path) -> list[dict]:
    """Writes the file with one row per row group. Returns DuckDB's answers."""
    path = folder / "comparisons.parquet"
    pq.write_table(table(), path, row_group_size=1, compression="none", use_dictionary=False, write_page_index=True)
    connection = duckdb.connect()
    connection.sql("set TimeZone = 'UTC'")
    connection.sql(f"create table object as select * from '{path}'")
    found, refused = [], 0
    for condition in conditions():
        try:
            rows = connection.sql(f"select n from object where {condition} order by n").fetchall()
        except duckdb.Error as error:
            print(f"DuckDB refuses {condition}: {str(error).splitlines()[0]}")
            refused += 1
            continue
        found.append({"condition": condition, "rows": [row for row, in rows]})
    print(f"{len(found)} comparisons, {refused} that DuckDB refuses")
    return found
