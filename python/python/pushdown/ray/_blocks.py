"""From batches to blocks: tables of Arrow in which tensors have the extension types of Ray."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from ray.data.extensions import ArrowPythonObjectArray, ArrowTensorArray, ArrowVariableShapedTensorArray

from .._native import Tensor
from ..batch import Batch
from ..errors import ConfigError

__all__ = ["OWN_COLUMNS", "Layout", "numpy_dtype", "to_block"]

OWN_COLUMNS = ("x", "scale", "y", "key", "member", "index", "error")
_DTYPES = {
    "bool": "bool",
    "u8": "uint8",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """What all blocks of a data set have in common."""

    dtype: np.dtype[Any] | None
    """Of values that are tensors, as far as the pipeline says it."""
    shape: tuple[int | None, ...] | None
    """Of these values; `None` for a side that differs between values."""
    has_members: bool
    has_indices: bool
    has_errors: bool
    leaves_out: bool
    """Whether rows without a value are left out, so that their number is unknown before they are read."""

    @property
    def value_bytes(self) -> int | None:
        """Bytes of each value, if all have the same shape."""
        if self.fixed_shape is None or self.dtype is None:
            return None
        return self.dtype.itemsize * math.prod(self.fixed_shape)

    @property
    def may_be_stacked(self) -> bool:
        """Whether all values may have one shape: what a model or a function makes is unknown before."""
        return self.shape is None or self.fixed_shape is not None

    @property
    def fixed_shape(self) -> tuple[int, ...] | None:
        """The shape that all values have."""
        if self.shape is None:
            return None
        sides = tuple(side for side in self.shape if side is not None)
        return sides if len(sides) == len(self.shape) else None


def to_block(batch: Batch, layout: Layout, first_index: int = 0) -> pa.Table:
    """The rows of a batch.

    `x` has the memory of the batch if all values have one shape. A row without a value has zeros in a tensor of a known shape, an empty tensor
    of another one, and null else.
    """
    columns: dict[str, Any] = {"x": _values(batch, layout)}
    scales = getattr(batch.x, "scales", None) if layout.may_be_stacked else None
    if scales is not None:
        columns["scale"] = np.asarray(scales)
    if batch.y is not None:
        columns["y"] = _plain(batch.y)
    columns["key"] = pa.array(batch.keys, pa.string())
    if layout.has_members:
        columns["member"] = pa.array(batch.members, pa.string())
    if layout.has_indices:
        columns["index"] = np.asarray(batch.index) + first_index
    columns |= {name: _plain(values) for name, values in batch.columns.items()}
    if layout.has_errors:
        texts = {error.row: f"{error.code}: {error.message}" for error in batch.errors}
        columns["error"] = pa.array([texts.get(row) for row in range(len(batch))], pa.string())
    return pa.table(columns)


def _values(batch: Batch, layout: Layout) -> pa.Array:
    if layout.may_be_stacked:
        x = batch.x
        if isinstance(x, Tensor):
            return ArrowTensorArray.from_numpy(np.asarray(x).view(numpy_dtype(x.dtype)))
        if layout.fixed_shape is not None:
            return ArrowTensorArray.from_numpy(np.zeros((len(batch), *layout.fixed_shape), layout.dtype))
    values = batch.values
    if all(value is None or isinstance(value, bytes) for value in values) and layout.dtype is None:
        return pa.array(values, pa.large_binary())
    arrays = [_array(value) for value in values]
    known = [array for array in arrays if array is not None]
    if len(known) < sum(value is not None for value in values):
        return ArrowPythonObjectArray.from_objects(values)
    dtype, ndim = (known[0].dtype, known[0].ndim) if known else (layout.dtype, len(layout.shape or (0,)))
    empty = np.zeros((0,) * ndim, dtype)
    return ArrowVariableShapedTensorArray.from_numpy([empty if array is None else array for array in arrays])


def _array(value: Any) -> np.ndarray[Any, Any] | None:
    """A tensor of this package, or an array that a function has returned; `None` for what is neither."""
    if isinstance(value, Tensor):
        return np.asarray(value).view(numpy_dtype(value.dtype))
    return np.asarray(value) if hasattr(value, "__array__") else None


def _plain(values: Tensor | Sequence[Any] | None) -> Any:
    """A column of numbers, or of values that Arrow or Python has."""
    if isinstance(values, Tensor):
        return np.asarray(values)
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return ArrowPythonObjectArray.from_objects(list(values or ()))


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of NumPy. Raises `ConfigError` for one that it does not have."""
    if name not in _DTYPES:
        raise ConfigError(
            f"blocks of Ray have no {name}: expected one of {', '.join(_DTYPES)}; end the pipeline with cast(f16) or cast(f32)"
        )
    return np.dtype(_DTYPES[name])
