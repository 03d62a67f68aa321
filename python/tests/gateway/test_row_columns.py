"""Columns of rows: labels of any type, and files whose columns differ."""

from __future__ import annotations

import datetime
import decimal
import io
import itertools
import pathlib
import uuid
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Plan, Sampling, Store

PHOTO = (pathlib.Path(__file__).resolve().parents[3] / "testkit/fixtures/photos/png_grey.png").read_bytes()
ROWS = 4
IMAGES = [{"bytes": PHOTO, "path": None}] * ROWS
NUMBERS = itertools.count()
DAY = datetime.date(2024, 2, 29)
TIME = datetime.datetime(2024, 2, 29, 12, 30, 15, 250000)


def put(world: Any, *tables: pa.Table, **options: Any) -> str:
    """Writes each table to an object of its own under a new prefix."""
    bucket = f"row-columns-{next(NUMBERS)}"
    world.s3.create_bucket(Bucket=bucket)
    for number, table in enumerate(tables):
        body = io.BytesIO()
        pq.write_table(table, body, **options)
        world.put(bucket, f"rows/{number}.parquet", body.getvalue())
    return f"s3://{bucket}/rows/"


def labels(url: str, endpoint: str, **options: Any) -> list[Any]:
    """The labels in the order of the rows. All batches have a tensor of int64, or all have a list."""
    found = []
    sampling = Sampling(tail="short")
    store = Store(endpoint=endpoint)
    with pushdown.Reader(pushdown.Parquet(url), "decode | resize(4, 4)", store=store, labels="label", sampling=sampling, **options) as rows:
        for batch in rows:
            assert np.asarray(batch.valid).all()
            assert isinstance(batch.y, list) or (batch.y is not None and batch.y.dtype == "i64")
            found += batch.y if isinstance(batch.y, list) else np.asarray(batch.y).tolist()
    return found


LABELS = {
    "categories": pa.array(["cat", "dog", None, "cat"]).dictionary_encode(),
    "categories of numbers": pa.array([7, 2**62, 7, 9]).dictionary_encode(),
    "float16": pa.array(np.array([0.5, -2.0, 1.5, 0.0], np.float16)),
    "float32": pa.array([0.5, None, 1.5, 3.0], pa.float32()),
    "uint64": pa.array([0, 2**64 - 1, 2**63, 7], pa.uint64()),
    "int64": pa.array([1234567890123456789, -(2**63), 2**63 - 1, 2**53 + 1]),
    "whole numbers and a null": pa.array([1234567890123456789, None, 3, 4]),
    "booleans and a null": pa.array([True, None, False, None]),
    "nulls": pa.nulls(ROWS),
    "large strings": pa.array(["a", None, "", "ü"], pa.large_string()),
    "bytes": pa.array([b"a", None, b"", b"\0"]),
    "dates": pa.array([DAY, None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "times of milliseconds": pa.array([TIME.time(), None, datetime.time(0), datetime.time(23, 59, 59)], pa.time32("ms")),
    "times": pa.array([TIME.time(), None, datetime.time(0), datetime.time(23, 59, 59, 999999)], pa.time64("us")),
    "timestamps": pa.array([TIME, None, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)], pa.timestamp("us")),
    "timestamps of nanoseconds": pa.array([TIME, None, TIME, TIME], pa.timestamp("ns")),
    "timestamps in UTC": pa.array([TIME, None, TIME, TIME], pa.timestamp("ms", "UTC")),
    "timestamps with a zone": pa.array([TIME, None, TIME, TIME], pa.timestamp("us", "Europe/Berlin")),
    "timestamps with an offset": pa.array([TIME, None, TIME, TIME], pa.timestamp("us", "-05:30")),
    "durations": pa.array([datetime.timedelta(days=-1, microseconds=3), None, datetime.timedelta(0), datetime.timedelta(9)]),
    "decimals": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-0.01"), decimal.Decimal("9999999.99")]),
    "long decimals": pa.array([decimal.Decimal("1e60"), None, decimal.Decimal(0), decimal.Decimal(-1)], pa.decimal256(70, 2)),
    "lists": pa.array([[1, None], None, [], [2, 3, 4]]),
    "lists of a fixed size": pa.array([[1.5, 2.5], None, [0.0, 1.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "large lists of structs": pa.array([[{"a": 1, "b": "x"}, None], None, [], [{"a": None, "b": "y"}]], pa.large_list(pa.struct({"a": pa.int8(), "b": pa.string()}))),
    "structs": pa.array([{"box": [1, 2], "at": TIME}, None, {"box": None, "at": None}, {"box": [], "at": TIME}]),
    "maps": pa.array([[("a", 1), ("b", None)], None, [], [("c", 3)]], pa.map_(pa.string(), pa.int32())),
    "bytes of a fixed size": pa.array([b"abc", None, b"def", b"ghi"], pa.binary(3)),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_the_values_of_pyarrow(world: Any, endpoint: str, name: str) -> None:
    column = LABELS[name]
    url = put(world, pa.table({"image": IMAGES, "label": column}), row_group_size=3)
    for mode in ("pushdown", "plain"):
        found = labels(url, endpoint, mode=mode, batch_size=3)
        assert found == column.to_pylist(), mode
        # With pandas, timestamps of nanoseconds are its own.
        assert all(isinstance(expected, type(value)) for value, expected in zip(found, column.to_pylist(), strict=True)), mode


def test_labels_that_pandas_wrote_as_a_category(world: Any, endpoint: str) -> None:
    frame = pandas.DataFrame({"label": pandas.Categorical(["cat", "dog", "cat", "bird"])})
    table = pa.Table.from_pandas(frame).append_column("image", pa.array(IMAGES))
    assert labels(put(world, table), endpoint) == ["cat", "dog", "cat", "bird"]


def test_uuids_are_uuids(world: Any, endpoint: str) -> None:
    ids = [uuid.UUID(int=number * 0x0123456789ABCDEF) for number in range(ROWS)]
    column = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([number.bytes for number in ids], pa.binary(16)))
    assert labels(put(world, pa.table({"image": IMAGES, "label": column})), endpoint) == ids


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([0, 1, 2000, 3], pa.timestamp("ns")), "has a value that Python's `datetime` does not hold: .* found 1 nanoseconds"),
        (pa.array([2**62] * ROWS, pa.timestamp("us")), "the column `label` of type Timestamp"),
    ],
)
def test_labels_without_a_python_value(world: Any, endpoint: str, column: pa.Array, message: str) -> None:
    url = put(world, pa.table({"image": IMAGES, "label": column}))
    with pytest.raises(pushdown.ConfigError, match=message) as error:
        labels(url, endpoint)
    assert "batch.table" not in str(error.value)


def rows(label: Any = None, image: pa.DataType | None = None, **columns: pa.Array) -> pa.Table:
    """Rows with the labels 0 to 3."""
    image = image or pa.struct({"bytes": pa.binary(), "path": pa.string()})
    values = pa.array(range(ROWS), label or pa.int64()) if label is None or isinstance(label, pa.DataType) else label
    return pa.table({"image": pa.array(IMAGES, image), "label": values, **columns})


NO_PATH = pa.struct({"bytes": pa.binary(), "path": pa.null()})
LARGE = pa.struct({"path": pa.large_string(), "bytes": pa.large_binary()})
REQUIRED = pa.schema([pa.field("image", pa.struct({"bytes": pa.binary(), "path": pa.string()}), nullable=False), pa.field("label", pa.int64(), nullable=False)])
DIFFERENT = {
    "a further column": rows(more=pa.array(["x"] * ROWS)),
    "another order": rows().select(["label", "image"]),
    "columns that are required": rows().cast(REQUIRED),
    "int32": rows(pa.int32()),
    "uint8": rows(pa.uint8()),
    "paths of nulls": rows(image=NO_PATH),
    "large strings, and fields in another order": rows(image=LARGE),
    "metadata": rows().replace_schema_metadata({"pandas": "{}"}),
    "field ids": rows().cast(pa.schema([field.with_metadata({"PARQUET:field_id": str(number + 1)}) for number, field in enumerate(rows().schema)])),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("is_first", [False, True])
def test_files_may_differ_in_what_is_not_read(world: Any, endpoint: str, name: str, is_first: bool) -> None:
    tables = [DIFFERENT[name], rows()] if is_first else [rows(), DIFFERENT[name]]
    url = put(world, *tables)
    for options in (
        {"mode": "plain"},
        {"mode": "pushdown", "plan": Plan(split="full")},
        {"mode": "pushdown", "plan": Plan(split=1)},
        {"mode": "auto"},
    ):
        found = labels(url, endpoint, batch_size=3, seed=5, **options)
        assert sorted(found) == sorted([*range(ROWS)] * 2), options
    in_order = labels(url, endpoint, batch_size=3)
    assert in_order == [*range(ROWS)] * 2


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (pa.nulls(ROWS), [0, 1, 2, 3, None, None, None, None]),
        (pa.array([0.5, 1.5, 2.5, 3.5]), [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, 2.5, 3.5]),
        (pa.array([2**63 - 1, 5, 6, 7], pa.uint64()), [0, 1, 2, 3, 2**63 - 1, 5, 6, 7]),
    ],
)
def test_labels_have_a_type_for_all_files(world: Any, endpoint: str, label: pa.Array, expected: list[Any]) -> None:
    for mode in ("plain", "pushdown"):
        assert labels(put(world, rows(), rows(label)), endpoint, mode=mode) == expected


def test_categories_of_several_files(world: Any, endpoint: str) -> None:
    """300 categories in files that have a few each, and one with plain strings."""
    words = [[f"word {part} {row}" for row in range(100)] for part in range(3)]
    images = pa.array(IMAGES * 25, rows().schema.field("image").type)
    tables = [
        pa.table({"image": images, "label": pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array(part))})
        for part in words
    ]
    strings = rows(pa.array(["a", "b", "c", "d"]))
    url, expected = put(world, *tables), list(itertools.chain(*words))
    assert labels(url, endpoint, batch_size=400) == expected
    assert labels(put(world, *tables, strings), endpoint, batch_size=400) == [*expected, "a", "b", "c", "d"]
    with pushdown.TableReader(url, "select(columns=[label])", store=Store(endpoint=endpoint), batch_size=400) as reader:
        assert [value for batch in reader for value in pa.table(batch.table)["label"].to_pylist()] == expected


def test_a_column_with_other_types_names_both_files(world: Any, endpoint: str) -> None:
    url = put(world, rows(), rows(pa.array(["a", "b", "c", "d"])))
    for mode in ("plain", "pushdown"):
        message = "columns of `rows/1.parquet` differ from those of `rows/0.parquet`: expected column `label` of type Int64, found Utf8"
        with pytest.raises(pushdown.Error, match=message):
            labels(url, endpoint, mode=mode)


def test_tables_are_read_as_pyarrow_reads_them(world: Any, endpoint: str, tmp_path: pathlib.Path) -> None:
    """All columns are read here: their names agree in any order, and their types are merged."""
    first = pa.table({"id": pa.array([1, 2], pa.int32()), "at": pa.array([TIME, TIME], pa.timestamp("ms")), "tag": pa.array([["a"], []])})
    second = pa.table({"tag": pa.array([["b", None], None], pa.large_list(pa.large_string())), "at": pa.array([None, TIME], pa.timestamp("us")), "id": [2**40, 4]})
    url = put(world, first, second)
    expected = pa.concat_tables([first, second.select(["id", "at", "tag"])], promote_options="permissive")
    sampling = Sampling(tail="short")
    with pushdown.TableReader(url, "select", store=Store(endpoint=endpoint), batch_size=3, sampling=sampling) as reader:
        tables = [pa.table(batch.table) for batch in reader]
    assert pa.concat_tables(tables).to_pylist() == expected.to_pylist()
    assert tables[0].schema.names == ["id", "at", "tag"]
    third = put(world, first, second, second.append_column("more", pa.array([1, 2])))
    with pytest.raises(pushdown.Error, match=r"`rows/2.parquet` differ from those of `rows/0.parquet`: found an extra column `more`"):
        list(pushdown.TableReader(third, "select", store=Store(endpoint=endpoint)))
    sampling = Sampling(tail="short")
    store = Store(endpoint=endpoint)
    with pushdown.TableReader(third, "select(columns=[id], where='id < 10')", store=store, sampling=sampling) as reader:
        assert [value for batch in reader for value in np.asarray(batch["id"]).tolist()] == [1, 2, 4, 4]
