"""Passes over the samples of an epoch: of objects and members with an index, and of shards without one."""

from __future__ import annotations

from typing import TypeVar

from . import _native
from ._iteration import Iteration
from .batch import Batch
from .errors import native_errors

__all__ = ["ObjectIteration", "SampleIteration", "ShardIteration"]

Native = TypeVar("Native", _native.Reader, _native.ShardReader)


class SampleIteration(Iteration[Native]):
    """A pass over samples in batches."""

    __slots__ = ()

    def deliver(self, batch: Batch) -> None:
        """Counts a batch that the consumer receives."""
        self.batches += 1


class ObjectIteration(SampleIteration[_native.Reader]):
    """A pass over the objects of an epoch, or over the batches of one of the workers of a rank."""

    __slots__ = ("observations", "share")

    def __init__(self, epoch: int, share: _native.Share) -> None:
        super().__init__(epoch)
        self.share = share
        self.observations: _native.Observations | None = None
        """What the planner knew when the iteration was closed."""

    def _keep(self, native: _native.Reader) -> None:
        with native_errors():
            self.observations = native.observations()

    @property
    def position(self) -> int:
        """Position of the consumer in the order of the epoch, the same on every rank."""
        return self.share.position_after(self.batches)

    @property
    def is_complete(self) -> bool:
        """Whether the consumer has every batch, even if it did not ask for one more."""
        return self.has_ended or self.share.is_complete_after(self.batches)


class ShardIteration(SampleIteration[_native.ShardReader]):
    """A pass over the shards of an epoch that one reader has. Only the end says how many batches there are."""

    __slots__ = ("shards_read",)

    def __init__(self, epoch: int, shards_read: _native.ShardsRead) -> None:
        super().__init__(epoch)
        self.shards_read = shards_read
        """What is read of the epoch, up to the last batch that the consumer has."""

    def deliver(self, batch: Batch) -> None:
        """Counts a batch that the consumer receives."""
        super().deliver(batch)
        with native_errors():
            self.shards_read = batch.native.shards_read or self.shards_read

    @property
    def is_complete(self) -> bool:
        """Whether the consumer has every batch, even if it did not ask for one more."""
        return self.has_ended or (self.batches > 0 and self.shards_read.is_complete)
