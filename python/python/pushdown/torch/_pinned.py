"""Batches in pinned (page-locked) host memory, from which a GPU copies while the host goes on.

Values are stacked directly into pinned tensors. torch's caching host allocator is the ring of buffers: it
hands out a block again only when no tensor holds it any more, and when the CUDA events of all copies from it,
on any stream, are done.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from typing import TYPE_CHECKING

import torch

from .._native import NativeError
from ._convert import TorchBatch, to_torch

if TYPE_CHECKING:
    from .._native import Batch as NativeBatch
    from ..batch import Batch

_DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}


def can_pin() -> bool:
    """Whether there is a CUDA device. Without one, warns once per process, as `DataLoader` does."""
    if torch.cuda.is_available():
        return True
    _warn_without_cuda()
    return False


def to_pinned(batch: Batch) -> TorchBatch:
    """The batch as torch tensors in pinned memory. Values that Python functions made are copied there."""
    x = stack(batch.native, pinned=True) if batch.function_values is None else None
    return to_torch(batch, x).pin_memory()


def stack(batch: NativeBatch, *, pinned: bool) -> torch.Tensor | None:
    """The values, stacked into a new tensor [n, ...]. `None` if they are bytes, or differ in shape."""
    try:
        layout = batch.stacked_shape()
    except NativeError:
        return None
    if layout is None:
        return None
    dtype, shape = layout
    tensor = torch.empty(shape, dtype=_DTYPES[dtype], pin_memory=pinned)
    if tensor.nbytes > 0:
        # A tensor has no buffer protocol, and numpy has no bfloat16.
        batch.stack_into((ctypes.c_ubyte * tensor.nbytes).from_address(tensor.data_ptr()))
    return tensor


@functools.cache
def _warn_without_cuda() -> None:
    warnings.warn(
        "pin_memory=True has no effect: expected a CUDA device, found none; batches are in ordinary memory",
        UserWarning,
        stacklevel=4,
    )
