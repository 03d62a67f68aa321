"""Batches as the consumer receives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from . import _native
from ._native import Table, Tensor
from ._policy import sample_errors
from ._sample_columns import NO_COLUMNS, ColumnValues
from .errors import SampleError, native_errors
from .labels import Labels

__all__ = ["Batch", "TableBatch", "make_batch", "table_batch"]

_UNSTACKED: Any = object()
_CHUNK_BYTES = 1 << 20
# Dtypes of values that functions return, by the format of their buffers.
_DTYPES = {
    "?": "bool",
    "B": "u8",
    "b": "i8",
    "i": "i32",
    "l": "i64",
    "q": "i64",
    "e": "f16",
    "f": "f32",
    "d": "f64",
}


@dataclass(slots=True)
class Batch:
    """Samples that are consecutive in the order of the epoch, `n` rows. `x, y = batch` unpacks values and labels.

    It pickles with its values, and `copy.deepcopy` makes tensors with memory of their own.
    """

    native: _native.Batch
    y: Tensor | list[object] | None
    """The labels: an int64 tensor `[n]`, or a list. `None` without `labels`."""
    keys: list[str]
    """Key of each row's object, or of its shard."""
    members: list[str | None]
    """Name of the member in its shard that each row is; `None` for a whole object."""
    columns: dict[str, Tensor | list[Any]]
    """The further columns by name: an int64 tensor `[n]`, zero where a row has no value, or a list with `None` there."""
    index: Tensor
    """int64 `[n]`: index of each row's sample in the data set."""
    position: Tensor
    """int64 `[n]`: position of each row in the order of the epoch over all ranks; of `take`, in its list."""
    valid: Tensor
    """bool `[n]`: the row has a value and is no padding."""
    errors: list[SampleError]
    """The rows without a value, with `on_error="report"`."""
    number: int
    """Number of the batch since the start of the iteration, from 0."""
    function_values: list[Any] | None = None
    """The values after the functions of `Pipeline.then`, if it has any."""
    _x: Any = field(default=_UNSTACKED, init=False, repr=False)

    @property
    def x(self) -> Any:
        """The values, stacked once: a `Tensor` of shape `[n, ...]`, with zeros where a row has no value.

        A list like `values` if they cannot be stacked: bytes, values of different shapes, or results of functions that are no
        arrays. A `crop` or `resize(w, h)` in the pipeline makes shapes equal.
        """
        if self._x is _UNSTACKED:
            self._x = self._stack()
        return self._x

    @property
    def values(self) -> list[Any]:
        """One value per row: a `Tensor`, `bytes`, or what a function returned; `None` where a row has no value."""
        if self.function_values is not None:
            return self.function_values
        with native_errors():
            return list(self.native.values())

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.y))

    def __getstate__(self) -> dict[str, Any]:
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        # Stacked values can be made again from the values, unless the consumer has changed them.
        if self._x is _UNSTACKED or _is_equal(self._x, self._stack()):
            del state["_x"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._x = _UNSTACKED
        for name, value in state.items():
            setattr(self, name, value)

    def __copy__(self) -> Self:
        """A batch with the same tensors and lists."""
        copied = object.__new__(type(self))
        for each in fields(self):
            setattr(copied, each.name, getattr(self, each.name))
        return copied

    def _stack(self) -> Any:
        stacked = self._stack_native() if self.function_values is None else _stack(self.function_values)
        return self.values if stacked is None else stacked

    def _stack_native(self) -> Tensor | None:
        try:
            if self.native.stacked_shape() is None:
                return None
        except _native.NativeError:
            return None
        with native_errors():
            return self.native.stack()


def make_batch(
    native: _native.Batch,
    labels: Labels | None,
    columns: ColumnValues = NO_COLUMNS,
    function_values: list[Any] | None = None,
) -> Batch:
    """The batch of a native one, with its columns and labels."""
    with native_errors():
        keys, index = native.keys, native.index
        y = columns.y() if labels is None else labels.batch(memoryview(index), keys)
        return Batch(
            native=native,
            y=y,
            keys=keys,
            members=native.members,
            columns=columns.columns(),
            index=index,
            position=native.position,
            valid=native.valid,
            errors=sample_errors(native),
            number=native.number,
            function_values=function_values,
        )


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Rows of an epoch, `n` of them. `batch["column"]` is a column. It pickles with its rows."""

    native: _native.TableBatch
    table: Table
    """The rows with `__arrow_c_stream__`, for pyarrow, polars, DuckDB and pandas, without a copy."""
    objects: Tensor
    """int64 `[n]`: index of each row's object."""
    rows: Tensor
    """int64 `[n]`: number of each row in its object."""
    number: int
    """Number of the batch since the start of the iteration, from 0."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.table.column_names

    def __getitem__(self, column: str) -> Tensor | list[object]:
        """A column: numbers, and arrays of one shape, as a tensor `[n, ...]`, all else as a list of Python values. Raises `KeyError`."""
        if column not in self.columns:
            raise KeyError(f"no column `{column}`: expected one of {', '.join(self.columns)}")
        with native_errors():
            values: Tensor | list[object] = self.native.column(column)
        return values

    def to_dict(self) -> dict[str, Tensor | list[object]]:
        """All columns by name."""
        return {column: self[column] for column in self.columns}

    def __len__(self) -> int:
        return len(self.native)

    def __reduce__(self) -> tuple[Callable[..., TableBatch], tuple[_native.TableBatch, Tensor, Tensor]]:
        # The native batch has the table, too, which would be pickled twice.
        return table_batch, (self.native, self.objects, self.rows)


def table_batch(
    native: _native.TableBatch, objects: Tensor | None = None, rows: Tensor | None = None
) -> TableBatch:
    """The batch of a native one. `objects` and `rows` replace those of the native batch."""
    with native_errors():
        return TableBatch(
            native,
            native.table,
            native.objects if objects is None else objects,
            native.rows if rows is None else rows,
            native.number,
        )


def _stack(values: Sequence[Any]) -> Tensor | None:
    """The arrays of all rows in one tensor; `None` if they are no arrays of one shape and dtype, or no row has a value."""
    found = {_array_type(value) for value in values if value is not None}
    if len(found) != 1 or (kind := found.pop()) is None:
        return None
    dtype, shape = kind
    with native_errors():
        stacked = _native.Tensor(dtype, [len(values), *shape])
    size = stacked.nbytes // max(1, len(values))
    if size == 0 or math.prod(shape) == 0:
        return stacked
    rows = memoryview(stacked).cast("B")
    for row, value in enumerate(values):
        if value is not None:
            rows[row * size : (row + 1) * size] = memoryview(value).tobytes()
    return stacked


def _is_equal(one: Any, other: Any) -> bool:
    """Whether these are equal values: tensors, `bytes`, or lists of them."""
    if one is other:
        return True
    if isinstance(one, _native.Tensor) and isinstance(other, _native.Tensor):
        is_alike = (one.dtype, one.shape) == (other.dtype, other.shape) and _is_equal(
            one.scales, other.scales
        )
        return is_alike and (one.nbytes == 0 or _are_bytes_equal(memoryview(one), memoryview(other)))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return isinstance(one, bytes) and one == other


def _are_bytes_equal(one: memoryview, other: memoryview) -> bool:
    one, other = one.cast("B"), other.cast("B")
    # Comparing views takes an object per element, and comparing copies of bytes does not.
    return all(
        one[start : start + _CHUNK_BYTES].tobytes() == other[start : start + _CHUNK_BYTES].tobytes()
        for start in range(0, len(one), _CHUNK_BYTES)
    )


def _array_type(value: Any) -> tuple[str, tuple[int, ...]] | None:
    if isinstance(value, _native.Tensor):
        return value.dtype, value.shape
    # Bytes are values of their own, not arrays of numbers.
    if isinstance(value, (bytes, bytearray)) or not hasattr(value, "shape"):
        return None
    try:
        view = memoryview(value)
    except TypeError:
        return None
    dtype = _DTYPES.get(view.format)
    return None if dtype is None else (dtype, tuple(view.shape or ()))
