"""What the tail policy of a reader drops or repeats in an epoch."""

from __future__ import annotations

import logging
from typing import NamedTuple

__all__ = ["TailCounts", "log_tail"]

_log = logging.getLogger("pushdown")


class TailCounts(NamedTuple):
    """What a tail policy leaves out or adds in an epoch, over all ranks."""

    dropped: int
    """Samples that no rank reads."""
    repeated: int
    """Samples that are read once more, as padding."""


def log_tail(counts: TailCounts, tail: str | None, epoch: int, total: int | None = None) -> None:
    """Logs what a tail policy drops or repeats in an epoch of `total` samples; `None` if only those of this rank are counted."""
    dropped, repeated = counts
    if dropped or repeated:
        verb, count = ("drops", dropped) if dropped else ("repeats", repeated)
        of_total = "" if total is None else f" of {total}"
        _log.info('epoch %d: tail="%s" %s %d%s samples', epoch, tail, verb, count, of_total)
