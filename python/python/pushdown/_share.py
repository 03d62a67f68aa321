"""A rank's share of an epoch: how many samples and batches it has, and where it is after some of them.

The native reader deals out samples in the same way. Here it is computed without one, so that `len` starts no threads.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import NamedTuple

__all__ = ["Share", "TailCounts"]

_log = logging.getLogger("pushdown")


class TailCounts(NamedTuple):
    """What a tail policy leaves out or adds in an epoch, over all ranks."""

    dropped: int
    """Samples that no rank reads."""
    repeated: int
    """Samples that are read once more, as padding."""


@dataclass(frozen=True, slots=True)
class Share:
    """The samples from position `start` on of an epoch of `total` samples, as rank `rank` of `world` reads them."""

    total: int
    rank: int
    world: int
    batch_size: int
    tail: str
    start: int = 0
    limit: int | None = None

    @property
    def samples(self) -> int:
        """Samples of this rank, padding included."""
        dealt = self._dealt()
        return dealt if self.limit is None else min(dealt, self.limit)

    @property
    def batches(self) -> int:
        """Batches of this rank. The last one may be short."""
        return -(-self.samples // self.batch_size)

    @property
    def most_batches(self) -> int:
        """Batches of the rank that has the most, which is the first one."""
        return replace(self, rank=0).batches

    @property
    def tail_counts(self) -> TailCounts:
        """What the tail policy drops or repeats, over all ranks. A `limit` drops nothing: it ends the epoch earlier."""
        left = self._left()
        read = left if self.tail == "short" else self._dealt() * self.world
        return TailCounts(max(0, left - read), max(0, read - left))

    def position(self, batches: int) -> int:
        """Position in the order of the epoch after the first `batches` batches of every rank.

        It is the same on every rank, and `total` once all ranks have all their batches.
        """
        if batches >= self.most_batches:
            return self.total
        return min(self.total, self.start + batches * self.batch_size * self.world)

    def log_tail(self, epoch: int) -> None:
        """Logs what the tail policy drops or repeats in this epoch."""
        dropped, repeated = self.tail_counts
        if dropped or repeated:
            verb, count = ("drops", dropped) if dropped else ("repeats", repeated)
            _log.info('epoch %d: tail="%s" %s %d of %d samples', epoch, self.tail, verb, count, self.total)

    def _left(self) -> int:
        return max(0, self.total - self.start)

    def _dealt(self) -> int:
        left, step = self._left(), self.world * self.batch_size
        match self.tail:
            case "short":
                return (left + self.world - 1 - self.rank) // self.world
            case "even":
                return left // self.world
            case "drop":
                return left // step * self.batch_size
            case _:
                return -(-left // step) * self.batch_size
