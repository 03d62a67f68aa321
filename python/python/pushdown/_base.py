"""What readers of objects, tables and shards share: source, options, epoch, rank, and how they pickle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from . import _rank
from ._checks import check_least
from ._iteration import Iteration
from ._onnx import provide_onnx_runtime
from ._rank import Rank, detect_rank
from ._source import DataSet, Selection, Source, open_data_set
from ._spec import ReaderSpec
from .errors import CredentialsError, native_errors
from .objects import Objects
from .options import Options
from .pipeline import Pipeline
from .stats import Stats
from .store import Keys

__all__ = ["ReaderBase"]

Pass = TypeVar("Pass", bound=Iteration[Any])
Native = TypeVar("Native")


class ReaderBase(ABC, Generic[Pass]):
    """A description of what to read. Threads live only while an iterator does. It pickles without credentials."""

    def __init__(
        self,
        source: Source,
        pipeline: Pipeline,
        options: Options,
        selection: Selection | None = None,
    ) -> None:
        self.pipeline = pipeline
        """The pipeline."""
        # The others are resolved now: into the data set, its labels and columns.
        self._options = replace(options, index=None, column=None, columns=None, labels=None)
        self._inherited_rank: Rank | None = None
        # Found now rather than at the first batch.
        self._rank()
        self._data_set: DataSet = open_data_set(
            source, options.connection, selection, options.sampling.include_hidden
        )
        self._epoch = options.epoch
        self._current: Pass | None = None
        """The iteration whose consumer the state follows; `None` once the epoch is over."""
        self._last: Pass | None = None
        self._pipeline_digest = pipeline.digest

    @property
    def objects(self) -> Objects:
        """The objects of the data set, in order; of shards, the members that are samples."""
        return self._data_set.objects

    @property
    def epoch(self) -> int:
        """The epoch of the current or next iteration, from 0. Each complete pass raises it by one."""
        return self._epoch

    @property
    def stats(self) -> Stats:
        """Counts of the current or last iteration. `print(reader.stats)` is a summary, `stats.verdict()` one line."""
        return Stats() if self._last is None else self._last.report.stats

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is in the epoch: JSON values."""

    @abstractmethod
    def load_state_dict(self, state_dict: Mapping[str, Any], *, strict: bool = True) -> None:
        """Makes the next iteration go on from a state."""

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start with the first sample of `epoch`, from 0. Closes an iteration that runs."""
        check_least("epoch", epoch, 0)
        self._stop()
        self._restart(epoch)

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once; the reader stays usable."""
        if self._last is not None:
            self._last.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _restart(self, epoch: int) -> None:
        """Goes to the first sample of an epoch."""

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

    def _finish(self, iteration: Pass) -> None:
        """Goes to the next epoch after a complete pass."""
        if self._current is iteration:
            self._current = None
            self._restart(iteration.epoch + 1)

    def _follow(self, iteration: Pass) -> None:
        """Makes `iteration` the one that the state and the stats describe."""
        self._current = self._last = iteration

    def _end_previous(self) -> None:
        """Closes the running iteration. If its consumer has every batch, the next epoch follows."""
        previous = self._current
        if previous is not None:
            previous.close()
            if previous.is_complete:
                self._finish(previous)

    def _open_native(
        self, kind: Callable[[str, Keys | None, Objects], Native], spec: ReaderSpec
    ) -> Native:
        """Makes a native reader."""
        provide_onnx_runtime()
        try:
            with native_errors(spec.pipeline):
                return kind(spec.to_json(), self._options.keys, self.objects)
        except CredentialsError as error:
            if self._options.has_lost_keys:
                error.add_note(
                    "explicit credentials are not pickled: worker processes need AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY in their environment, or a profile"
                )
            raise

    def _spec(self, **members: Any) -> ReaderSpec:
        """The settings of a native reader of this epoch."""
        begin = {"epoch": self._epoch, **members}
        return ReaderSpec(options=self._options, pipeline=self.pipeline.text, **begin)

    def _rank(self) -> Rank:
        sampling = self._options.sampling
        return detect_rank(sampling.rank, sampling.world, self._inherited_rank)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        # A worker process has no process group, and its environment may not name the rank.
        state["_inherited_rank"] = _rank.rank_of_torch() or self._inherited_rank
        # A copy of a store has no credentials.
        state["_options"] = replace(self._options, store=copy(self._options.store))
        return {**state, "_current": None, "_last": None}
