"""Batches of torch tensors, made from batches of `pushdown.Reader` without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.dlpack import from_dlpack

if TYPE_CHECKING:
    from ..batch import Batch
    from ..errors import SampleError


@dataclass(slots=True)
class TorchBatch:
    """The samples of one batch, `n` rows. `x, y = batch` unpacks values and labels."""

    x: Any
    """The values: a `torch.Tensor` [n, ...]; a list of `n` values if they are bytes, or differ in shape."""
    y: Any
    """The labels: an int64 `torch.Tensor` [n], a list if they are no classes, `None` without `labels`."""
    keys: list[str]
    """Key of each row's object, or of its shard."""
    index: torch.Tensor
    """int64 [n]: index of each row's sample in the data set."""
    position: torch.Tensor
    """int64 [n]: position of each row in the order of the epoch over all ranks."""
    valid: torch.Tensor
    """bool [n]: the row has a value and is no padding. Multiply a loss per sample by it."""
    errors: list[SampleError]
    """Samples that have no value, with `on_error="report"`."""
    number: int
    """Number of the batch, from 0, since the start of the iteration."""
    scales: torch.Tensor | None = None
    """f32 [n]: what to multiply quantized values by; `None` if values are not quantized."""
    members: list[str | None] = field(default_factory=list)
    """Name of the member in its shard that each row is; `None` for a whole object."""
    columns: dict[str, Any] = field(default_factory=dict)
    """The further columns by name: an int64 `torch.Tensor` [n], or a list. They stay in host memory."""

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.y))

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> TorchBatch:
        """This batch with `x`, `y` and `valid` on `device`. `index` and `position` stay in host memory.

        `non_blocking`: do not wait for the copy, which needs pinned memory (`Loader(pin_memory=True)`).
        """
        x, y, valid = (_to(value, device, non_blocking) for value in (self.x, self.y, self.valid))
        return replace(self, x=x, y=y, valid=valid)

    def pin_memory(self) -> TorchBatch:
        """This batch with `x`, `y` and `valid` in pinned memory, copied unless they are there already."""
        x, y, valid = (_pin(value) for value in (self.x, self.y, self.valid))
        return replace(self, x=x, y=y, valid=valid)


def to_torch(batch: Batch, x: torch.Tensor | None = None) -> TorchBatch:
    """The batch as torch tensors that share its memory. `x`: use this instead of the batch's values."""
    return TorchBatch(
        x=_stacked(value_to_torch(batch.x)) if x is None else x,
        y=value_to_torch(batch.y),
        keys=batch.keys,
        index=value_to_torch(batch.index),
        position=value_to_torch(batch.position),
        valid=value_to_torch(batch.valid),
        errors=batch.errors,
        number=batch.number,
        scales=value_to_torch(getattr(batch.x, "scales", None)),
        members=batch.members,
        # Lists are contents, also if they are of JSON.
        columns={
            name: values if isinstance(values, list) else value_to_torch(values)
            for name, values in batch.columns.items()
        },
    )


def value_to_torch(value: Any) -> Any:
    """Arrays become tensors that share their memory, also in a list. Others are returned as they are."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, list):
        return [value_to_torch(item) for item in value]
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    return value


def _stacked(value: Any) -> Any:
    """Stacks tensors that a Python function returned, zeros for `None`. Others are returned as they are."""
    if not isinstance(value, list):
        return value
    tensors = [row for row in value if isinstance(row, torch.Tensor)]
    rows = sum(row is not None for row in value)
    if not tensors or len(tensors) < rows or len({(row.shape, row.dtype, row.device) for row in tensors}) > 1:
        return value
    return torch.stack([torch.zeros_like(tensors[0]) if row is None else row for row in value])


def _to(value: Any, device: torch.device | str | int, non_blocking: bool) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=non_blocking)
    if isinstance(value, list):
        return [_to(item, device, non_blocking) for item in value]
    return value


def _pin(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.pin_memory()
    if isinstance(value, list):
        return [_pin(item) for item in value]
    return value
