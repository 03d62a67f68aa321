"""What readers of samples and of tables share: options, epoch, rank and state, and how they pickle."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from . import _rank
from ._checks import check_least
from ._kinds import Kind
from ._rank import ONLY_WORKER, Place, Rank, Worker, detect_rank
from .iterator import BatchIterator, Iteration, Start
from .objects import Objects
from .options import Options
from .pipeline import Pipeline
from .stats import Stats

__all__ = ["ReaderBase"]

Made = TypeVar("Made")
Batches = TypeVar("Batches", bound=BatchIterator[Any])


class ReaderBase(ABC, Generic[Made]):
    """A description of what to read. Threads live only while an iterator does. It pickles without credentials."""

    def __init__(self, kind: Kind[Made]) -> None:
        self._kind = kind
        self._inherited_rank: Rank | None = None
        self._worker = ONLY_WORKER
        """The worker of the last iteration."""
        self._start = Start(kind.options.epoch)
        """Where the next iteration starts."""
        self._current: Iteration[Made] | None = None
        """The iteration whose consumer the state follows; `None` once the epoch is over."""
        self._last: Iteration[Made] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self._kind.pipeline

    @property
    def objects(self) -> Objects:
        """The objects of the data set, in order; of shards with an index, the members that are samples."""
        return self._kind.objects

    @property
    def epoch(self) -> int:
        """The epoch of the current or next iteration, from 0. Each complete pass raises it by one."""
        return self._start.epoch

    @property
    def stats(self) -> Stats:
        """Counts of the current or last iteration. `print(reader.stats)` is a summary, `stats.verdict()` one line."""
        return Stats() if self._last is None else self._last.report.stats

    @property
    def plan(self) -> str | None:
        """The plan of the current or last iteration, as text. `None` before the first plan, and without one: without `mode="auto"`, of shards
        without an index, and once all rows are read plainly since the gateway does not compute them."""
        return None if self._last is None else self._last.report.plan

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is in the epoch: JSON values. It counts the batches that the consumer has received, not those that are
        prefetched. After the last batch it is the beginning of the next epoch. Call it between batches at any time.
        """
        return self._kind.state(self._left(), self._place(), self._current)

    def load_state_dict(
        self, state_dict: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, strict: bool = True
    ) -> None:
        """Makes the next iteration go on from a state. Closes one that runs.

        Raises `StateError` for a state of another data set, pipeline or seed; with `strict=False` it goes on nevertheless.
        """
        start = self._kind.load(state_dict, self._place(), strict=strict)
        self._stop()
        self._start = start

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start with the first sample of `epoch`, from 0. Closes an iteration that runs."""
        check_least("epoch", epoch, 0)
        self._stop()
        self._start = Start(epoch)

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once; the reader stays usable."""
        if self._last is not None:
            self._last.close()
        self._kind.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._kind.describe()}, {self.pipeline!r})"

    def _iterate(
        self,
        make: Callable[[Iteration[Made], Callable[[], None]], Batches],
        worker: Worker = ONLY_WORKER,
        start_batch: int = 0,
    ) -> Batches:
        """Starts to read at this reader's epoch and position. Rank and world size are looked up now."""
        self._end_previous()
        # Its planner has measured what the next one needs to know.
        known = None if self._last is None else self._last.observations
        self._worker = worker
        iteration = self._kind.iterate(self._start, self._place(), known, start_batch)
        self._start = iteration.start
        self._current = self._last = iteration
        return make(iteration, lambda: self._finish(iteration))

    def _left(self) -> Start:
        """Where the samples start that the consumer does not have yet."""
        return self._start if self._current is None else self._current.left

    def _stop(self) -> None:
        """Ends the running iteration. The state no longer follows it."""
        if self._last is not None:
            self._last.close()
        self._current = None

    def _begin_again(self) -> None:
        """Ends the running iteration. The next one begins where it began, or with the next epoch if its consumer has every batch."""
        self._end_previous()
        self._current = None

    def _unread(self) -> Self:
        """A copy that begins where the running iteration began, or with the next epoch if its consumer has every batch."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        current = copied._current
        if current is not None and current.is_complete:
            copied._finish(current)
        copied._current = copied._last = None
        return copied

    def _finish(self, iteration: Iteration[Made]) -> None:
        """Goes to the next epoch after a complete pass."""
        if self._current is iteration:
            self._current = None
            self._start = iteration.next_epoch

    def _end_previous(self) -> None:
        """Closes the running iteration. If its consumer has every batch, the next epoch follows."""
        previous = self._current
        if previous is not None:
            previous.close()
            if previous.is_complete:
                self._finish(previous)

    @property
    def _options(self) -> Options:
        return self._kind.options

    def _rank(self) -> Rank:
        sampling = self._options.sampling
        return detect_rank(sampling.rank, sampling.world, self._inherited_rank)

    def _place(self) -> Place:
        """The place of this reader, as it is now."""
        return Place(self._rank(), self._worker)

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            # A worker process has no process group, and its environment may not name the rank.
            "_inherited_rank": _rank.rank_of_torch() or self._inherited_rank,
            "_kind": copy(self._kind),
            "_start": self._left(),
            "_current": None,
            "_last": None,
        }
