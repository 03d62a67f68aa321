"""Further columns of samples in shards: from the `columns` argument of a reader to the values of its batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from . import _native
from ._content import KINDS, MAX_INTEGER, MIN_INTEGER, invalid_content, parse_content
from ._native import Objects, Tensor
from .errors import ConfigError
from .labels import Column, integers
from .pipeline import PipelineLike

__all__ = ["NO_COLUMNS", "ColumnReader", "ColumnValues", "Columns", "split_columns"]

Columns: TypeAlias = Sequence[str] | Mapping[str, PipelineLike]
"""Extensions of further columns, or what is made of each column: "bytes", "text", "json", "int", or a pipeline for one of them."""


def split_columns(
    pipeline: PipelineLike | None, column: str | None, columns: Columns | None
) -> tuple[PipelineLike, str | None, dict[str, str]]:
    """The pipeline, the extension of its members if it is given, and the kinds of the further columns.

    Raises `ConfigError` unless there is one pipeline.
    """
    kinds: dict[str, str] = {}
    pipelines: dict[str, PipelineLike] = {}
    if isinstance(columns, Mapping):
        for name, use in columns.items():
            if isinstance(use, str) and use in KINDS:
                kinds[name] = use
            else:
                pipelines[name] = use
    elif columns is not None:
        kinds = dict.fromkeys([columns] if isinstance(columns, str) else columns, "bytes")
    if pipeline is not None and not pipelines:
        return pipeline, column, kinds
    if pipeline is not None or len(pipelines) != 1:
        found = [*(["the argument"] if pipeline is not None else []), *(f"`{name}`" for name in pipelines)]
        raise ConfigError(
            "invalid pipeline: expected one, as an argument or for one column in `columns`, "
            f"found {' and '.join(found) or 'none'}; other columns are {', '.join(KINDS)}"
        )
    name, pipeline = pipelines.popitem()
    if column not in (None, name):
        raise ConfigError(f"invalid column: expected `{name}`, which has the pipeline, found `{column}`")
    return pipeline, name, kinds


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The further columns of a batch and its labels, `None` where a row has none."""

    values: Mapping[str, list[Any]]
    integers: Collection[str]
    """The columns that are tensors."""
    labels: list[Any] | None = None
    labels_are_integers: bool = False
    errors: Sequence[tuple[int, str, str]] = ()
    """Row, code and message of each invalid content, at most one for each row."""

    def without_rows(self, rows: Collection[int]) -> ColumnValues:
        """The values of all other rows."""
        if not rows:
            return self

        def kept(values: list[Any]) -> list[Any]:
            return [value for row, value in enumerate(values) if row not in rows]

        return replace(
            self,
            values={name: kept(values) for name, values in self.values.items()},
            labels=None if self.labels is None else kept(self.labels),
        )

    def columns(self) -> dict[str, Tensor | list[Any]]:
        """The columns as a batch has them."""
        return {
            name: _tensor(values) if name in self.integers else values for name, values in self.values.items()
        }

    def y(self) -> Tensor | list[Any] | None:
        """The labels as a batch has them; `None` without labels."""
        if self.labels is None or not self.labels_are_integers:
            return self.labels
        return _tensor(self.labels)


NO_COLUMNS = ColumnValues({}, ())


class ColumnReader:
    """Makes values of the contents in further columns, and the labels. Raises `ConfigError` for a column that the samples lack.

    `columns`: names of the further columns that batches have, in order.
    """

    __slots__ = ("_kinds", "_label", "_objects", "_places")

    def __init__(
        self, objects: Objects, columns: Sequence[str], kinds: Mapping[str, str], label: Column | None
    ) -> None:
        for name in (*kinds, *(() if label is None else (label.name,))):
            if name not in columns:
                raise ConfigError(
                    f"no column `{name}` in the samples: expected one of {', '.join(columns) or 'none'}; "
                    "columns are selected with the index of shards"
                )
        self._objects, self._kinds = objects, kinds
        self._label = None if label is None else _LabelParser(label)
        self._places = {name: place for place, name in enumerate(columns)}

    def read(self, batch: _native.Batch) -> ColumnValues:
        """The columns of a batch."""
        if not self._kinds and self._label is None:
            return NO_COLUMNS
        errors: dict[int, tuple[str, str]] = {}
        values = {}
        for name, kind in self._kinds.items():
            values[name] = self._parse(batch, name, errors, "InvalidColumn", _parser(kind))
        tensors = [name for name, kind in self._kinds.items() if kind == "int"]
        columns = ColumnValues(values, tensors)
        label = self._label
        if label is not None:
            labels = self._parse(batch, label.column.name, errors, "InvalidLabel", label)
            columns = replace(columns, labels=labels, labels_are_integers=label.makes_integers)
        return replace(columns, errors=[(row, *error) for row, error in errors.items()])

    def _parse(
        self,
        batch: _native.Batch,
        name: str,
        errors: dict[int, tuple[str, str]],
        code: str,
        parse: Callable[[bytes | None], Any],
    ) -> list[Any]:
        """The values of a column. Rows that have failed, or have an entry in `errors`, have none. Other errors are added to `errors`."""
        values: list[Any] = [None] * len(batch)
        for row, data in batch.column(self._places[name]):
            if row not in errors:
                try:
                    values[row] = parse(data)
                except _Invalid as error:
                    errors[row] = code, self._message(batch, row, name, data, error)
        return values

    def _message(self, batch: _native.Batch, row: int, name: str, data: bytes | None, error: _Invalid) -> str:
        member = self._member(batch, row, name)
        if data is None or member is None:
            return f"expected {error.expected} in the column `{name}`, found no member"
        return invalid_content(error.expected, member, data)

    def _member(self, batch: _native.Batch, row: int, name: str) -> str | None:
        """Name of the member of a column."""
        if self._objects.has_members:
            return self._objects.column_member(memoryview(batch.index)[row], name)
        # Without an index only the name of the value is known, which has the same base name.
        folder, slash, file = (batch.members[row] or "").rpartition("/")
        return f"{folder}{slash}{file.partition('.')[0]}.{name}"


class _LabelParser:
    """Makes labels of contents."""

    __slots__ = ("_numbers", "column")

    def __init__(self, column: Column) -> None:
        self.column = column
        names = None if column.classes is None else enumerate(column.classes)
        self._numbers = None if names is None else {name: number for number, name in names}

    @property
    def makes_integers(self) -> bool:
        return self.column.parse == "int" or self._numbers is not None

    def __call__(self, data: bytes | None) -> Any:
        """The label in a content. Raises `_Invalid`."""
        column, numbers = self.column, self._numbers
        if data is None:
            raise _Invalid(column.parse)
        if column.field is None:
            value = _parser(column.parse)(data)
            value = value.strip() if column.parse == "text" else value
        else:
            value = _field(_parser("json")(data), column.field, column.parse)
        if numbers is None:
            return value
        if column.parse == "int":
            if not 0 <= value < len(numbers):
                raise _Invalid(f"a number below {len(numbers)}")
            return value
        if value not in numbers:
            raise _Invalid(f"one of {len(numbers)} classes")
        return numbers[value]


class _Invalid(Exception):
    """A content is not what was expected."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


def _parser(kind: str) -> Callable[[bytes | None], Any]:
    """The function that makes a value of a content. Only an integer cannot be missing: a tensor has one for each row."""

    def parse(data: bytes | None) -> Any:
        if data is None:
            if kind == "int":
                raise _Invalid(kind)
            return None
        try:
            return parse_content(kind, data)
        except ValueError as error:
            raise _Invalid(kind) from error

    return parse


def _field(value: Any, path: str, kind: str) -> Any:
    """The value in a JSON document at a path with dots. Raises `_Invalid` unless it is of this kind."""
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            raise _Invalid(f"an object with `{path}`")
        value = value[name]
    if kind == "int":
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer or not MIN_INTEGER <= value <= MAX_INTEGER:
            raise _Invalid(f"an integer at `{path}`")
    if kind == "text" and not isinstance(value, str):
        raise _Invalid(f"text at `{path}`")
    return value


def _tensor(values: list[Any]) -> Tensor:
    """An int64 tensor of shape `[n]`, with zeros for `None`."""
    return integers(0 if value is None else value for value in values)
