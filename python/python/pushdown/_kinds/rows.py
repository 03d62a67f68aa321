"""Rows of Parquet objects: in stretches of each rank, so that their order depends on the world, and counted once the footers are read."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeGuard, cast

from .. import _native, ops
from .._label_columns import values_of
from .._native import Tensor
from .._policy import ErrorPolicy
from .._rank import Place, Rank
from .._sample_columns import NO_COLUMNS
from .._settings import SourceKind
from .._share import TailCounts, log_tail
from .._source import Source
from .._stretches import Stretch, divide
from ..batch import Batch, TableBatch, table_batch
from ..errors import ConfigError, StateError, native_errors
from ..iterator import Iteration, Recipe, Start
from ..labels import Labels
from ..objects import Objects
from ..options import Options
from ..parquet import Parquet, is_pattern, list_files
from ..pipeline import Pipeline, PipelineLike
from ..state import check_members, check_origin, write_state
from ..store import Keys
from .batches import begin_batch
from .kind import Count, Kind, Made, Making, Promises

__all__ = ["RowKind", "TableKind"]

# The column of row numbers, by which random steps draw.
_ROW_NUMBER = "pushdown row number"


class RowIteration(Iteration[Made]):
    """A pass through the stretch that a rank has of an epoch."""

    def __init__(self, start: Start, recipe: Recipe[Made], world: int, options: Options) -> None:
        super().__init__(start, recipe)
        self._world, self._batch_size, self._tail = world, options.batch_size, options.sampling.tail
        self._total_batches: int | None = None

    def begin(self) -> None:
        super().begin()
        if self._total_batches is None:
            native = self.native()
            self._total_batches = native.most_batches
            log_tail(TailCounts(*native.tail_counts), self._tail, self.start.epoch)

    @property
    def is_complete(self) -> bool:
        # Other ranks may have one batch more, and until they have it the state is that of all ranks.
        return self.has_ended or (self.batches > 0 and self.batches == self._total_batches)

    @property
    def left(self) -> Start:
        if self.is_complete:
            return self.next_epoch
        rows = self.batches * self._batch_size
        rows_read = _native.rows_read_after(self.start.read or (), self._world, rows)
        return Start(self.start.epoch, tuple(rows_read))


class _Rows(Kind[Made]):
    """Rows. What is read of an epoch are pairs (world, rows of each rank), one for each change of the world."""

    promises = Promises(has_indices=False, shared_by_workers=None)

    def __init__(self, options: Options, pipeline: Pipeline, source: Source) -> None:
        super().__init__(options, pipeline, source)
        self._counts: dict[tuple[int, int], Count] = {}
        self._footers: _native.Footers | None = None
        """What was read of the ends of the objects; `None` before the first native reader."""
        self._row_groups: list[tuple[int, int, int]] | None = None
        """Of each row group with samples: index of its object, number of the object's first row, number of samples."""

    @abstractmethod
    def maker(self) -> Callable[[Iteration[Made], _native.TableBatch], Making[Made]]:
        """What makes the batches of one iteration."""

    def iterate(
        self, start: Start, place: Place, known: Any, start_batch: int
    ) -> RowIteration[Made]:
        spec = self.spec(start.epoch, place, rows_read=start.read)
        recipe = self.recipe(spec, partial(self._open, observations=known), self.maker())
        return RowIteration(start, recipe, spec.world, self.options)

    def state(self, start: Start, place: Place, running: Iteration[Made] | None) -> dict[str, Any]:
        rows_read = [list(entry) for entry in start.read or ()]
        return write_state(start.epoch, {"rows_read": rows_read}, **self.origin())

    def load(self, state: Any, place: Place, *, strict: bool) -> Start:
        check_members(state, numbers=("epoch",))
        if strict:
            check_origin(state, **self.origin())
        rows_read = state.get("rows_read")
        if not isinstance(rows_read, (list, tuple)):
            advice = "is it the state of a reader of rows?"
            raise StateError("the member", "`rows_read`", sorted(state), advice)
        for entry in rows_read:
            if not _is_entry(entry):
                raise StateError("entries", "[world, rows of each rank]", entry, "was the state edited?")
        return Start(state["epoch"], tuple((world, rows) for world, rows in rows_read))

    def count(self, rank: Rank) -> Count:
        key = rank.index, rank.world
        if key not in self._counts:
            # The numbers of every epoch are those of the first one.
            native = self.open_native(self._open, self.spec(self.options.epoch, Place(rank)))
            with native_errors():
                self._counts[key] = Count(native.batches, len(native), TailCounts(*native.tail_counts))
                native.close()
        return self._counts[key]

    def divide(self, count: int) -> list[Stretch]:
        if self._row_groups is None:
            # It reads all footers, and evaluates the condition.
            native = self.open_native(self._open, self.spec(self.options.epoch, Place(Rank())))
            with native_errors():
                self._row_groups = native.row_groups
                native.close()
        groups = self._row_groups
        rows = Counter[int]()
        for index, _, samples in groups:
            rows[index] += samples
        sizes = [
            (self.objects.size(index) or 0) * samples // rows[index] for index, _, samples in groups
        ]
        return [self._stretch(groups, sizes, part) for part in divide(sizes, count)]

    def _stretch(
        self, groups: Sequence[tuple[int, int, int]], sizes: Sequence[int], part: range
    ) -> Stretch:
        """The stretch of some row groups."""
        (first, first_row, _), (last, _, _) = groups[part.start], groups[part.stop - 1]
        skipped = 0
        for group in range(part.start - 1, -1, -1):
            index, _, samples = groups[group]
            if index != first:
                break
            skipped += samples
        return Stretch(
            range(first, last + 1),
            sum(samples for _, _, samples in groups[part.start : part.stop]),
            sum(sizes[part.start : part.stop]),
            skipped,
            first_row,
        )

    def of_stretch(self, stretch: Stretch) -> tuple[Self, Start]:
        # Of other objects not even the footers are read.
        data_set = replace(self.data_set, objects=self.objects.select(stretch.objects))
        kind = self._stretch_kind(
            options=self._limited(stretch.samples), data_set=data_set, _counts={}, _footers=None, _row_groups=None
        )
        read = ((1, stretch.skipped),) if stretch.skipped else None
        return kind, Start(self.options.epoch, read)

    def _open(
        self,
        spec_json: str,
        keys: Keys | None,
        objects: Objects,
        observations: _native.Observations | None = None,
    ) -> _native.TableReader:
        """Makes a native reader, which reads the footers that no earlier one has read."""
        native = _native.TableReader(spec_json, keys, objects, observations, self._footers)
        self._footers = native.footers()
        return native

    def forget(self) -> None:
        # An object may have been replaced since.
        self._footers = self._row_groups = None
        self._counts.clear()

    def close(self) -> None:
        self.forget()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_footers": None, "_row_groups": None}


class TableKind(_Rows[TableBatch]):
    """Rows in batches of tables."""

    source = SourceKind.TABLE

    def __init__(self, source: Source, pipeline: PipelineLike, options: Options) -> None:
        parsed = Pipeline.of(pipeline)
        if parsed.functions:
            raise ConfigError(
                "invalid pipeline of a TableReader: expected no functions, found `then`; apply them to its batches"
            )
        matching = list_files(source, options.connection) if is_pattern(source) else source
        super().__init__(options, parsed, matching)

    def maker(self) -> Callable[[Iteration[TableBatch], _native.TableBatch], Making[TableBatch]]:
        return lambda _, batch: partial(table_batch, batch)


class RowKind(_Rows[Batch]):
    """Rows as samples: images in a column, and labels in another one."""

    source = SourceKind.ROWS

    def __init__(self, source: Parquet | Source, pipeline: PipelineLike | None, options: Options) -> None:
        if pipeline is None:
            raise ConfigError(
                f"invalid pipeline of {source}, whose samples are rows: expected a pipeline, found None; "
                "whole objects are read from a list of them: pushdown.list(prefix)"
            )
        parquet = source if isinstance(source, Parquet) else Parquet(cast(str | Sequence[str], source))
        inner = Pipeline.of(pipeline)
        ErrorPolicy(options.on_error, options.max_errors, 0)
        self._column, self._label = parquet.column, cast(str | None, options.labels)
        self._functions = inner.functions
        objects = list_files(parquet.files, options.connection)
        super().__init__(options, over_rows(parquet, inner, self._label), objects)

    @property
    def functions(self) -> tuple[Callable[[Any], Any], ...]:
        return self._functions

    def maker(self) -> Callable[[Iteration[Batch], _native.TableBatch], Making[Batch]]:
        return _RowMaker(self._column, self._label, self.policy)

    def describe(self) -> str:
        return f"{super().describe()}, column {self._column!r}"


class _RowMaker:
    """Makes the batches of one iteration."""

    def __init__(self, column: str, label: str | None, policy: Callable[[int], ErrorPolicy]) -> None:
        self._column, self._label, self._new_policy = column, label, policy
        self._policy: ErrorPolicy | None = None

    def __call__(self, iteration: Iteration[Batch], table: _native.TableBatch) -> Making[Batch]:
        native: _native.TableReader = iteration.native()
        if self._policy is None:
            self._policy = self._new_policy(len(native))
        labels: ColumnLabels | None = None
        with native_errors():
            samples = native.samples(table, self._column)
            if self._label is not None:
                labels = ColumnLabels(samples.index, table.values(self._label))
        return begin_batch(iteration, self._policy, samples, NO_COLUMNS, lambda: labels)


class ColumnLabels(Labels):
    """The labels of a batch: the values of a column."""

    def __init__(self, indices: Tensor, values: list[Any]) -> None:
        self._values: Mapping[int, Any] = dict(zip(memoryview(indices), values, strict=True))

    def batch(self, indices: Sequence[int], keys: Sequence[str]) -> Tensor | list[object]:
        # Rows that failed may be left out.
        labels = values_of(self._values[index] for index in indices).values
        return _native.Tensor("i64", [len(labels)], labels) if isinstance(labels, array) else list(labels)


def over_rows(parquet: Parquet, inner: Pipeline, label: str | None) -> Pipeline:
    """The pipeline over the objects: the columns, then the steps over the images."""
    columns = [parquet.column] if label is None else [parquet.column, label]
    select = ops.select(columns, where=parquet.where, row_number=_ROW_NUMBER)
    return Pipeline.of(select | ops.each(parquet.column, inner.text))


def _is_entry(entry: object) -> TypeGuard[Sequence[int]]:
    """Whether it is a world and the rows that each of its ranks has read."""
    return (
        isinstance(entry, (list, tuple))
        and len(entry) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) for number in entry)
        and entry[0] >= 1
        and entry[1] >= 0
    )
