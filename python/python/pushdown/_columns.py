"""Columns of a table as Python values: CSV and TSV by the csv module, Parquet and Arrow by pyarrow."""

from __future__ import annotations

import csv
import importlib
import io
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from .errors import ConfigError

Columns: TypeAlias = dict[str, list[Any]]
ReadColumns: TypeAlias = Callable[[bytes, Sequence[str], str, Collection[str]], Columns]
"""Takes the bytes of a table, the columns to read, its name in errors, and the columns that stay text."""

# Python refuses to convert more than 4,300 digits.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,4299}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def column_reader(name: str) -> ReadColumns:
    """The function for tables with the extension of this file name. Raises `ConfigError` for another extension."""
    extension = PurePosixPath(name).suffix.lower()
    if extension not in _READERS:
        raise ConfigError(
            f"unknown format of {name}: expected one of {', '.join(_READERS)}, found `{extension}`"
        )
    return _READERS[extension]


def _read_csv(
    data: bytes, names: Sequence[str], table: str, texts: Collection[str], *, delimiter: str = ","
) -> Columns:
    try:
        lines = csv.reader(
            io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter, strict=True
        )
        header = next(lines, [])
        _require(names, header, table)
        positions = [header.index(name) for name in names]
        rows = [[row[position] for position in positions] for row in _full_rows(lines, len(header), table)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"invalid CSV in {table}: {error}") from error
    columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    return {name: values if name in texts else _typed(values) for name, values in columns.items()}


def _full_rows(lines: Any, expected: int, table: str) -> Iterator[list[str]]:
    """The rows without empty lines, all of the length of the header."""
    for row in lines:
        if row and len(row) != expected:
            raise ConfigError(
                f"line {lines.line_num} of {table}: expected {expected} values, found {len(row)}"
            )
        if row:
            yield row


def _typed(values: list[str]) -> list[Any]:
    """The values as integers or floats, if all of them are written so and none loses digits of a whole number."""
    if all(map(_INTEGER.fullmatch, values)):
        return list(map(int, values))
    if not all(map(_NUMBER.fullmatch, values)):
        return values
    try:
        return list(map(_float_or_integer, values))
    except OverflowError:
        return values


def _float_or_integer(text: str) -> float | int:
    """A float, or the integer among floats that no float equals. Raises `OverflowError` for a number beyond the range of floats."""
    value = float(text)
    if _INTEGER.fullmatch(text) and (math.isinf(value) or int(text) != value):
        return int(text)
    if math.isinf(value):
        raise OverflowError(text)
    return value


def _read_parquet(data: bytes, names: Sequence[str], table: str, texts: Collection[str]) -> Columns:
    file = _open("pyarrow.parquet", "ParquetFile", data, table)
    _require(names, file.schema_arrow.names, table)
    return _values(file.read(columns=list(names)), names)


def _read_arrow(data: bytes, names: Sequence[str], table: str, texts: Collection[str]) -> Columns:
    file = _open("pyarrow.ipc", "open_file" if data.startswith(b"ARROW1") else "open_stream", data, table)
    _require(names, file.schema.names, table)
    return _values(file.read_all(), names)


def _open(module: str, function: str, data: bytes, table: str) -> Any:
    try:
        pyarrow = importlib.import_module("pyarrow")
        reader = getattr(importlib.import_module(module), function)
    except ImportError as error:
        raise ConfigError(
            f"cannot read {table} without pyarrow: `pip install 'pushdown-client[arrow]'`, or write it as CSV"
        ) from error
    try:
        return reader(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise ConfigError(f"cannot read {table}: {error}") from error


def _values(table: Any, names: Sequence[str]) -> Columns:
    return {name: table.column(name).to_pylist() for name in names}


def _require(names: Sequence[str], found: Sequence[str], table: str) -> None:
    for name in names:
        if name not in found:
            raise ConfigError(f"no column `{name}` in {table}: expected one of {', '.join(found)}")


_READERS: dict[str, ReadColumns] = {
    ".csv": _read_csv,
    ".tsv": partial(_read_csv, delimiter="\t"),
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
