"""What becomes of samples that fail."""

from __future__ import annotations

from typing import get_args

from . import _native
from ._checks import choice
from ._sample_columns import ColumnValues
from .errors import ConfigError, SampleError
from .options import OnError

__all__ = ["ErrorPolicy", "sample_errors"]


class ErrorPolicy:
    """Applies `on_error` to the batches of one iteration, and counts its errors. Raises `ConfigError`.

    `samples`: their number in the iteration; `None` if it is unknown. Then ranks have different numbers of batches anyway, and "skip" may
    leave a batch without rows.
    """

    __slots__ = ("_count", "_is_counted", "_limit", "_on_error")

    def __init__(self, on_error: str, max_errors: int | float | None, samples: int | None) -> None:
        choice("on_error", on_error, get_args(OnError))
        self._is_counted = samples is not None
        self._on_error = on_error
        self._limit = _limit(on_error, max_errors, samples)
        self._count = 0

    def apply(self, batch: _native.Batch, columns: ColumnValues) -> tuple[_native.Batch, ColumnValues]:
        """The batch as the consumer receives it, and its columns. Raises `SampleError` if the policy says so."""
        errors = sample_errors(batch)
        if not errors:
            return batch, columns
        self._count += len(errors)
        if self._on_error == "raise":
            raise errors[0]
        if self._limit is not None and self._count > self._limit:
            error = errors[-1]
            error.add_note(
                f"{self._count} samples failed, more than the {self._limit} that max_errors allows"
            )
            raise error
        if self._on_error == "report":
            return batch, columns
        if len(errors) == len(batch) and self._is_counted:
            # Without this batch, this rank would have fewer batches than the others.
            errors[0].add_note(
                f'all {len(batch)} samples of batch {batch.number} failed: on_error="skip" has none left'
            )
            raise errors[0]
        return batch.without_errors(), columns.without_rows({row for row, _, _ in batch.errors})


def sample_errors(batch: _native.Batch) -> list[SampleError]:
    """The failed rows of a batch, in order."""
    failed = batch.errors
    if not failed:
        return []
    keys, members, positions = batch.keys, batch.members, memoryview(batch.position)
    return [
        SampleError(keys[row], code, message, positions[row], row, members[row])
        for row, code, message in failed
    ]


def _limit(on_error: str, max_errors: int | float | None, samples: int | None) -> int | None:
    if max_errors is None:
        return None
    if on_error == "raise":
        raise ConfigError(
            'invalid max_errors: expected None with on_error="raise", which ends with the first error'
        )
    if isinstance(max_errors, bool) or not isinstance(max_errors, (int, float)) or not max_errors >= 0:
        raise ConfigError(f"invalid max_errors: expected a number of at least 0, found {max_errors!r}")
    if isinstance(max_errors, int):
        return max_errors
    if max_errors > 1:
        raise ConfigError(
            f"invalid max_errors: expected a fraction from 0.0 to 1.0 or a whole number, found {max_errors!r}"
        )
    if samples is None:
        raise ConfigError(
            f"invalid max_errors: expected a whole number, since the number of samples is unknown, found {max_errors!r}"
        )
    return int(max_errors * samples)
