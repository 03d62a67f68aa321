"""What becomes of samples that fail."""

from __future__ import annotations

from typing import get_args

from . import _native
from ._checks import choice
from ._sample_columns import ColumnValues
from .errors import SampleError, native_errors
from .options import OnError

__all__ = ["ErrorPolicy", "sample_errors"]


class ErrorPolicy:
    """Applies `on_error` to the batches of one iteration, and counts its errors. Raises `ConfigError`.

    `samples`: their number in the iteration; `None` if it is unknown. Then ranks have different numbers of batches anyway, and "skip" may
    leave a batch without rows.
    """

    __slots__ = ("_native",)

    def __init__(self, on_error: str, max_errors: int | float | None, samples: int | None) -> None:
        choice("on_error", on_error, get_args(OnError))
        with native_errors():
            self._native = _native.ErrorPolicy(on_error, max_errors, samples)

    def apply(self, batch: _native.Batch, columns: ColumnValues) -> tuple[_native.Batch, ColumnValues]:
        """The batch as the consumer receives it, and its columns. Raises `SampleError` if the policy says so."""
        with native_errors():
            batch, left_out = self._native.apply(batch, columns.errors)
        return batch, columns.without_rows(set(left_out))


def sample_errors(batch: _native.Batch) -> list[SampleError]:
    """The failed rows of a batch, in order."""
    return [SampleError(*sample) for sample in batch.errors]
