"""Readers of images in a column: rows of Parquet objects in, batches of samples out."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from . import _native, ops
from ._function_pool import FunctionPool
from ._label_columns import values_of
from ._native import Tensor
from ._policy import ErrorPolicy
from ._sample_columns import NO_COLUMNS
from ._settings import SourceKind, shows_options
from ._table_iterator import TableBatch, TableIterator
from .batch import Batch, make_batch
from .errors import ConfigError, native_errors
from .labels import Labels
from .options import Options, RowOptions
from .parquet import Parquet, list_files
from .pipeline import Pipeline, PipelineLike
from .table import RowReaderBase

__all__ = ["RowIterator", "RowReader"]

Result = TypeVar("Result")

# The column of row numbers, by which random steps draw.
_ROW_NUMBER = "pushdown row number"


class RowReader(RowReaderBase):
    """Reads images in a column of Parquet objects through a pipeline, in batches like those of `Reader`. Each row is a sample.

    `source`: `Parquet`, or what it takes as `files`. `labels`: the column with the labels. The other options are those of `Reader`, as far
    as they apply to rows: `batch_size`, `seed`, `epoch`, `shuffle`, `mode`, `on_error`, `max_errors`, `store`, `io`, `sampling` without an
    order, `include_hidden` and `tail="pad"`, and `plan` without `epochs` and `max_expand`.

    - `keys` of a batch are those of the objects. `index` is the number of the row in the data set: the rows of all objects in their
      order.
    - Row groups are shuffled, and rows within them. Ranks keep contiguous stretches of that order. The order depends on the world;
      the value of a row does not: random steps draw by seed, epoch, key and row.
    - `y` is an int64 tensor for whole numbers, otherwise a list of Python values: those of pyarrow's `to_pylist`. Categories are their
      values.
    - Objects may differ in columns that are not read, in the order of columns, and in types that one type holds: int32 and int64, string
      and large_string, columns of nulls.

    A `RowReader` iterates, keeps its state, pickles and survives forks as a `Reader` does. Raises `ConfigError`, `PipelineError`, and
    errors of listing the objects.
    """

    @shows_options(Options, SourceKind.ROWS)
    def __init__(
        self,
        source: Parquet | str | Sequence[str] | _native.Objects,
        pipeline: PipelineLike,
        **options: Unpack[RowOptions],
    ) -> None:
        chosen = Options.of(options, SourceKind.ROWS)
        parquet = source if isinstance(source, Parquet) else Parquet(source)
        inner = Pipeline.of(pipeline)
        ErrorPolicy(chosen.on_error, chosen.max_errors, 0)
        self._column, self._label = parquet.column, options.get("labels")
        objects = list_files(parquet.files, chosen.connection)
        super().__init__(objects, _over_rows(parquet, inner, self._label), chosen)
        self._functions = inner.functions

    def __iter__(self) -> RowIterator:
        """Starts to read at this reader's epoch and position. Rank and world size are looked up now."""
        threads = self._options.io.threads
        pool = partial(FunctionPool.make, self._functions, threads, self._rank().local_ranks)
        return RowIterator(self._iterate(pool), self._column, self._label, self._policy)

    @property
    def samples(self) -> int:
        """Samples of a whole epoch on this rank. The first call reads the footers of all objects."""
        return self._count()[0]

    @property
    def classes(self) -> list[str]:
        """Names of the classes: none, since labels are the values of a column."""
        return []

    def take(self, indices: Sequence[int]) -> Batch:
        """Rows cannot be taken by index: raises `ConfigError`."""
        raise ConfigError(
            "rows of Parquet objects are read in batches only: expected an iteration, found `take`"
        )

    def __repr__(self) -> str:
        files, column = len(self.objects), self._column
        return f"RowReader({files:,} objects of s3://{self.objects.bucket}/{self._data_set.prefix}, column {column!r}, {self.pipeline!r})"

    def _policy(self, samples: int) -> ErrorPolicy:
        return ErrorPolicy(self._options.on_error, self._options.max_errors, samples)


class RowIterator(Iterator[Batch]):
    """Batches of rows of an epoch as samples, in order. Reading starts with the first `next()`.

    Its threads end with the last batch, with an error, with `close`, with the `with` block, or when it is garbage.
    """

    def __init__(
        self, batches: TableIterator, column: str, label: str | None, policy: Callable[[int], ErrorPolicy]
    ) -> None:
        self._batches, self._column, self._label = batches, column, label
        self._new_policy = policy
        self._policy: ErrorPolicy | None = None

    def __next__(self) -> Batch:
        """The next batch. Waits; Ctrl-C ends the wait and closes the iterator. Raises as the iterator of a `Reader` does."""
        return self.advance(lambda batch: batch)

    def advance(self, convert: Callable[[Batch], Result]) -> Result:
        """As `next()`, with the batch converted. It counts as received once it is converted; if that fails, the iterator is closed."""
        return self._batches.advance(lambda table: convert(self._batch(table)))

    def _batch(self, table: TableBatch) -> Batch:
        iteration = self._batches.iteration
        native = iteration.native()
        if self._policy is None:
            self._policy = self._new_policy(len(native))
        with native_errors():
            samples = native.samples(table.native, self._column)
            labels = None
            if self._label is not None:
                labels = _ColumnLabels(samples.index, table.native.values(self._label))
        samples, _ = self._policy.apply(samples, NO_COLUMNS)
        values = None if iteration.pool is None else iteration.pool.submit(samples)()
        return make_batch(samples, labels, function_values=values)

    def close(self) -> None:
        """Cancels what is in flight and joins all threads. Can be called more than once."""
        self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _ColumnLabels(Labels):
    """The labels of a batch: the values of a column."""

    def __init__(self, indices: Tensor, values: list[Any]) -> None:
        self._values: Mapping[int, Any] = dict(zip(memoryview(indices), values, strict=True))

    def batch(self, indices: Sequence[int], keys: Sequence[str]) -> Tensor | list[object]:
        # Rows that failed may be left out.
        labels = values_of(self._values[index] for index in indices).values
        return _native.Tensor("i64", [len(labels)], labels) if isinstance(labels, array) else list(labels)


def _over_rows(parquet: Parquet, inner: Pipeline, label: str | None) -> Pipeline:
    """The pipeline over the objects: the columns, then the steps over the images."""
    columns = [parquet.column] if label is None else [parquet.column, label]
    select = ops.select(columns, where=parquet.where, row_number=_ROW_NUMBER)
    return Pipeline.of(select | ops.each(parquet.column, inner.text))
