"""A file, its pipeline, and the expected result."""

import dataclasses
import datetime
import math

import pyarrow as pa


@dataclasses.dataclass
class Case:
    file: str
    # The rows, or a part of the error message.
    expected: pa.Table | str
    pipeline: str = "select"


def rows() -> pa.Table:
    """The rows of the text files: every type of text formats, and every character that needs quoting."""
    day, time = datetime.date, datetime.datetime
    return pa.table({
        "id": pa.array([1, -2, None, 9223372036854775807], pa.int64()),
        "x": pa.array([0.1, None, -1e300, 2.0], pa.float64()),
        "name": pa.array(["plain", "a, \"b\"; c\t|", None, " line\nbreak é "], pa.string()),
        "ok": pa.array([True, None, False, True], pa.bool_()),
        "day": pa.array([day(2024, 2, 29), day(1969, 12, 31), None, day(9999, 12, 31)], pa.date32()),
        "at": pa.array([time(2024, 2, 29, 1, 2, 3), None, time(1969, 12, 31, 23, 59, 59, 250000),
                        time(2024, 1, 1)], pa.timestamp("us")),
    })


def texts(table: pa.Table, **columns: list) -> pa.Table:
    """The table with replaced columns."""
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values))
    return table


def same(found: list[dict], expected: pa.Table) -> None:
    """Asserts that a library reads the written rows. Times may be texts in both."""
    def plain(value: object) -> object:
        if isinstance(value, (datetime.datetime, datetime.date)):
            return str(value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value)
        if isinstance(value, float) and math.isnan(value):
            return "nan"
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        return value
    ours, theirs = plain(found), plain(expected.to_pylist())
    assert ours == theirs, f"\n{ours}\n{theirs}"
