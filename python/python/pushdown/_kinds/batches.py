"""From native batches of samples to those of the consumer: columns, labels, the error policy, and functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import _native
from .._labels import LabelSet
from .._policy import ErrorPolicy
from .._sample_columns import ColumnReader, ColumnValues
from ..batch import Batch, make_batch
from ..iterator import Iteration
from ..labels import Labels
from .kind import Making

__all__ = ["SampleMaker", "begin_batch"]


class SampleMaker:
    """Makes the batches of one iteration over objects or members."""

    __slots__ = ("_columns", "_labels", "_policy")

    def __init__(self, labels: LabelSet, columns: ColumnReader, policy: ErrorPolicy) -> None:
        self._labels, self._columns, self._policy = labels, columns, policy

    def __call__(self, iteration: Iteration[Batch], batch: _native.Batch) -> Making[Batch]:
        columns = self._columns.read(batch)
        iteration.refused += len(columns.errors)
        return begin_batch(iteration, self._policy, batch, columns, self._labels.get)


def begin_batch(
    iteration: Iteration[Batch],
    policy: ErrorPolicy,
    batch: _native.Batch,
    columns: ColumnValues,
    labels: Callable[[], Labels | None],
) -> Making[Batch]:
    """Applies the error policy, and starts the functions. `None` for a batch of which the policy leaves nothing."""
    batch, columns = policy.apply(batch, columns)
    if len(batch) == 0:
        return None
    values = None if iteration.pool is None else iteration.pool.submit(batch)
    return partial(_finish, batch, columns, labels, values)


def _finish(
    batch: _native.Batch,
    columns: ColumnValues,
    labels: Callable[[], Labels | None],
    values: Callable[[], list[Any]] | None,
) -> Batch:
    return make_batch(batch, labels(), columns, None if values is None else values())
