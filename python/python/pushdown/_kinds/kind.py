"""What readers ask of the kind of their source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar

from .._function_pool import FunctionPool
from .._onnx import provide_onnx_runtime
from .._policy import ErrorPolicy
from .._rank import Place, Rank, detect_rank
from .._settings import SourceKind
from .._share import TailCounts
from .._source import DataSet, Selection, Source, open_data_set
from .._spec import ReaderSpec
from .._stretches import Stretch
from ..batch import Batch
from ..errors import ConfigError, CredentialsError, native_errors
from ..iterator import Iteration, NativeReader, Recipe, Start
from ..objects import Objects
from ..options import Options
from ..pipeline import Pipeline
from ..store import Keys

__all__ = ["Count", "Kind", "Making", "Promises"]

Made = TypeVar("Made")
Native = TypeVar("Native")
Making: TypeAlias = Callable[[], Made] | None
"""How a batch that is begun is finished; `None` for one that is left out."""


@dataclass(frozen=True, slots=True)
class Promises:
    """What a reader can promise about the samples of a kind of source."""

    has_indices: bool
    """Samples can be taken by their index."""
    shared_by_workers: Literal["batches", "shards"] | None
    """What the workers of a rank share. "batches": any number of workers reads one order, and all ranks have one state. "shards": the order
    depends on the workers, and each worker has its own state. `None`: one process reads a rank."""


@dataclass(frozen=True, slots=True)
class Count:
    """What one rank reads of a whole epoch."""

    batches: int
    samples: int
    tail: TailCounts
    """What the tail policy drops or repeats, over all ranks."""


class Kind(ABC, Generic[Made]):
    """The samples of a reader: where their epochs start and go on, how they are read, and what is known of them. It starts nothing."""

    source: ClassVar[SourceKind]
    promises: ClassVar[Promises]
    _is_stretch = False

    def __init__(
        self, options: Options, pipeline: Pipeline, source: Source, selection: Selection | None = None
    ) -> None:
        """`options` are those that apply to the source. Raises `ConfigError`, and errors of listing the objects."""
        # The others are resolved now: into the data set, its labels and columns.
        self.options = replace(options, index=None, column=None, columns=None, labels=None)
        self.pipeline = pipeline
        sampling = options.sampling
        # A rank that is invalid is found now rather than at the first batch.
        detect_rank(sampling.rank, sampling.world)
        self.data_set: DataSet = open_data_set(source, options.connection, selection, sampling.include_hidden)
        self._pipeline_digest = pipeline.digest

    @property
    def objects(self) -> Objects:
        """The objects of the data set."""
        return self.data_set.objects

    @abstractmethod
    def iterate(
        self, start: Start, place: Place, known: Any, start_batch: int
    ) -> Iteration[Made]:
        """An iteration of the reader at a place. `known`: what the planner of the one before has observed."""

    @abstractmethod
    def state(self, start: Start, place: Place, running: Iteration[Made] | None) -> dict[str, Any]:
        """The state of the reader at a place, from a start: that which is `left` of the iteration that runs, if one does."""

    @abstractmethod
    def load(self, state: Any, place: Place, *, strict: bool) -> Start:
        """Where the reader at a place goes on from a state. Raises `StateError`."""

    @abstractmethod
    def count(self, rank: Rank) -> Count | None:
        """What a rank reads of a whole epoch; `None` if nobody knows."""

    @abstractmethod
    def divide(self, count: int) -> list[Stretch]:
        """The data set as at most `count` stretches of about equal size."""

    @abstractmethod
    def of_stretch(self, stretch: Stretch) -> tuple[Self, Start]:
        """The samples of a stretch alone: their kind, and where its only epoch starts."""

    def _stretch_kind(self, **members: Any) -> Self:
        """A copy with other members for the samples of a stretch, credentials included."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self) | {"_is_stretch": True} | members)
        return copied

    def _limited(self, samples: int | None) -> Options:
        """The options, limited to this number of samples."""
        return replace(self.options, sampling=replace(self.options.sampling, limit=samples))

    def take(self, indices: Sequence[int], epoch: int) -> Batch:
        """The samples with these indices, as random steps draw them in `epoch`. Raises `ConfigError` if they have no indices."""
        raise self.read_in_batches("an iteration", "`take`")

    def read_in_batches(self, expected: str, found: str) -> ConfigError:
        """The error of a use that needs indices of samples: what it found, and what to use in its place."""
        # Other sources cannot have one.
        advice = "; with an index their samples have indices: run `pushdown index`, and pass `index`"
        return ConfigError(
            f"{self.source.value} are read in batches only: expected {expected}, found {found}"
            f"{advice if self.source is SourceKind.SHARDS else ''}"
        )

    @property
    def classes(self) -> list[str]:
        """Names of the classes; empty if labels are no names of classes."""
        return []

    @property
    def functions(self) -> tuple[Callable[[Any], Any], ...]:
        """The functions that run after the pipeline."""
        return self.pipeline.functions

    def describe(self) -> str:
        """The data set in a few words."""
        return f"{len(self.objects):,} objects of s3://{self.objects.bucket}/{self.data_set.prefix}"

    def forget(self) -> None:
        """Forgets what was read of the objects, after an iteration that failed: it may be the reason."""

    def close(self) -> None:
        """Ends the threads that belong to no iteration."""

    def policy(self, samples: int | None) -> ErrorPolicy:
        """The error policy of an iteration that reads `samples` samples; `None` if the number is unknown."""
        # Nobody counts the batches of a stretch: one without rows is left out.
        samples = None if self._is_stretch else samples
        return ErrorPolicy(self.options.on_error, self.options.max_errors, samples)

    def spec(self, epoch: int, place: Place, **members: Any) -> ReaderSpec:
        """The settings of the native reader at a place."""
        rank, worker = place.rank, place.worker
        return ReaderSpec(
            options=self.options,
            pipeline=self.pipeline.text,
            epoch=epoch,
            rank=rank.index,
            world=rank.world,
            worker=worker,
            local_ranks=rank.local_ranks * worker.count,  # The workers share the CPUs of one rank.
            **members,
        )

    def recipe(
        self,
        spec: ReaderSpec,
        kind: Callable[[str, Keys | None, Objects], NativeReader],
        make: Callable[[Iteration[Made], Any], Making[Made]],
        *others: Callable[[], None],
    ) -> Recipe[Made]:
        """How the batches of the native reader of a kind with these settings are made."""
        functions, threads = self.functions, self.options.io.threads
        return Recipe(
            open=lambda: self.open_native(kind, spec),
            pool=lambda: FunctionPool.make(functions, threads, spec.local_ranks),
            make=make,
            pipeline=spec.pipeline,
            forget=self.forget,
            others=others,
        )

    def open_native(self, kind: Callable[[str, Keys | None, Objects], Native], spec: ReaderSpec) -> Native:
        """Makes a native reader."""
        provide_onnx_runtime()
        try:
            with native_errors(spec.pipeline):
                return kind(spec.to_json(), self.options.keys, self.objects)
        except CredentialsError as error:
            if self.options.has_lost_keys:
                error.add_note(
                    "explicit credentials are not pickled: worker processes need AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY in their environment, or a profile"
                )
            raise

    def origin(self) -> dict[str, Any]:
        """What a state belongs to: seed, data set and pipeline."""
        return {
            "seed": self.options.seed,
            "objects": self.objects.digest,
            "pipeline": self._pipeline_digest,
        }

    def __getstate__(self) -> dict[str, Any]:
        # A copy of a store has no credentials.
        return {**self.__dict__, "options": replace(self.options, store=copy(self.options.store))}
