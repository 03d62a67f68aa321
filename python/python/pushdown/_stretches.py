"""Stretches: parts of a data set that independent tasks read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil

__all__ = ["Stretch", "count_tasks", "divide"]

# Tasks of fewer stored bytes would take longer to start than to run, and longer ones would be long to repeat.
_MIN_TASK_BYTES, _MAX_TASK_BYTES = 8 << 20, 64 << 20
_TASKS_PER_CPU = 4


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive samples of a data set, in its order."""

    objects: range
    """Indices in the data set of the samples; of shards without an index and of rows, of the objects that have the samples."""
    samples: int | None
    """Number of the samples; `None` if it is unknown."""
    stored_bytes: int
    """Bytes of the samples in the store, as far as they are known."""
    skipped: int = 0
    """Samples of the first object that are not in the stretch."""
    first_index: int = 0
    """What to add to the indices of the samples: their reader counts from the first object."""


def count_tasks(stored_bytes: int, cpus: float) -> int:
    """The number of tasks for this number of stored bytes: four for each CPU, but of 8 to 64 MiB each."""
    most, least = -(-stored_bytes // _MIN_TASK_BYTES), -(-stored_bytes // _MAX_TASK_BYTES)
    return max(1, least, min(most, ceil(_TASKS_PER_CPU * cpus)))


def divide(sizes: Sequence[int], count: int) -> list[range]:
    """Divides pieces into consecutive ranges with about equal sums of sizes: `count` of them, or one for each piece if there are fewer."""
    if not sizes:
        return []
    count = min(max(count, 1), len(sizes))
    # A piece without bytes, or of unknown size, costs something, too.
    sums = list(accumulate(max(size, 1) for size in sizes))
    ends = [0]
    for number in range(1, count):
        equal = bisect_left(sums, sums[-1] * number / count) + 1
        # Each range has at least one piece, and leaves one for each of those that follow.
        ends.append(min(max(equal, ends[-1] + 1), len(sizes) - (count - number)))
    return [range(start, end) for start, end in pairwise([*ends, len(sizes)])]
