"""What readers of objects, tables and shards share: source, settings, epoch, rank, and how they pickle."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from . import _rank
from ._iteration import Iteration
from ._onnx import provide_onnx_runtime
from ._rank import Rank, detect_rank
from ._source import DataSet, Selection, Source, open_data_set
from ._spec import (
    Credentials,
    ReaderSpec,
    Retry,
    StoreSpec,
    Timeouts,
    check_least,
    path_text,
    size_bytes,
    split_text,
)
from .errors import CredentialsError, native_errors
from .objects import Objects
from .pipeline import Pipeline
from .stats import Stats

__all__ = ["ReaderBase", "reader_spec"]

Pass = TypeVar("Pass", bound=Iteration[Any])
Native = TypeVar("Native")


def reader_spec(
    pipeline: Pipeline,
    *,
    endpoint: str | None,
    region: str | None,
    profile: str | None,
    timeouts: Timeouts | None,
    retry: Retry | None,
    split: int | str,
    prefetch: int | str,
    models: str | os.PathLike[str] | None,
    value_cache: str | os.PathLike[str] | None = None,
    value_cache_bytes: int | str = 10 << 30,
    **members: Any,
) -> ReaderSpec:
    """The settings of a native reader from the arguments of a reader. Raises `ConfigError`."""
    return ReaderSpec(
        store=StoreSpec(endpoint, region, profile, timeouts, retry),
        pipeline=pipeline.text,
        split=split_text(split),
        prefetch_bytes=size_bytes("prefetch", prefetch),
        models=path_text(models),
        value_cache=path_text(value_cache),
        value_cache_bytes=size_bytes("value_cache_bytes", value_cache_bytes),
        **members,
    )


class ReaderBase(ABC, Generic[Pass]):
    """A description of what to read. Threads live only while an iterator does. It pickles without credentials."""

    def __init__(
        self,
        source: Source,
        pipeline: Pipeline,
        spec: ReaderSpec,
        credentials: Credentials | None,
        rank: int | None,
        world: int | None,
        selection: Selection | None = None,
        include_hidden: bool = False,
    ) -> None:
        self.pipeline = pipeline
        """The pipeline."""
        self._spec = spec
        self._credentials = credentials
        self._lost_credentials = False
        self._rank_arguments = rank, world
        self._inherited_rank: Rank | None = None
        # Found now rather than at the first batch.
        detect_rank(rank, world)
        self._data_set: DataSet = open_data_set(
            source, spec.store, credentials, selection, include_hidden
        )
        self._epoch = spec.epoch
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
        self, kind: Callable[[str, Credentials | None, Objects], Native], spec: ReaderSpec
    ) -> Native:
        """Makes a native reader."""
        provide_onnx_runtime()
        try:
            with native_errors(spec.pipeline):
                return kind(spec.to_json(), self._credentials, self.objects)
        except CredentialsError as error:
            if self._lost_credentials:
                error.add_note(
                    "explicit credentials are not pickled: worker processes need AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY in their environment, or a profile"
                )
            raise

    def _rank(self) -> Rank:
        return detect_rank(*self._rank_arguments, inherited=self._inherited_rank)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        # A worker process has no process group, and its environment may not name the rank.
        state["_inherited_rank"] = _rank.rank_of_torch() or self._inherited_rank
        state["_lost_credentials"] = self._lost_credentials or self._credentials is not None
        return {**state, "_credentials": None, "_current": None, "_last": None}
