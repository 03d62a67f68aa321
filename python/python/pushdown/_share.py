"""What the tail policy of a reader drops or repeats in an epoch."""

from __future__ import annotations

import logging
from typing import NamedTuple

from . import _native
from ._spec import ReaderSpec

__all__ = ["TailCounts", "log_tail"]

_log = logging.getLogger("pushdown")


class TailCounts(NamedTuple):
    """What a tail policy leaves out or adds in an epoch, over all ranks."""

    dropped: int
    """Samples that no rank reads."""
    repeated: int
    """Samples that are read once more, as padding."""


def log_tail(share: _native.Share, spec: ReaderSpec, total: int) -> None:
    """Logs what the tail policy drops or repeats in the epoch of `total` samples of which a reader has this share."""
    dropped, repeated = share.tail_counts
    if dropped or repeated:
        verb, count = ("drops", dropped) if dropped else ("repeats", repeated)
        tail = spec.options.sampling.tail
        _log.info('epoch %d: tail="%s" %s %d of %d samples', spec.epoch, tail, verb, count, total)
