# Generated from the native module by `make python-stubs`. Do not edit.
"""
The native module of the package `pushdown`.
"""

from _typeshed import SupportsGetItem
from os import PathLike
from typing_extensions import CapsuleType
from typing import Any, Final, SupportsIndex, final

__version__: Final[str]
"""
Version of the package.
"""

@final
class Batch:
    """
    Samples that are consecutive in the order of the epoch.
    """
    def __copy__(self, /) -> Batch:
        """
        The batch itself, which never changes.
        """
    def __deepcopy__(self, /, _memo: Any) -> Batch:
        """
        The batch itself, which never changes.
        """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, number: SupportsIndex, rows: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex, str, str | None, bool, SupportsIndex, SupportsGetItem[int, bytes | None]]], values: Any, errors: SupportsGetItem[int, tuple[SupportsIndex, str, str]], shards_read: str | None = None) -> Batch:
        """
        A batch from the parts that `__reduce_ex__` returns: `values` has one entry per row, stacked or in a list. `shards_read` is JSON.
        """
    def __reduce_ex__(self, /, _protocol: SupportsIndex) -> tuple[type, tuple[int, list[tuple[int, int, str, str | None, bool, int, list[bytes | None]]], Any, list[tuple[int, str, str]], str | None]]:
        """
        Pickles with its values, stacked where they can be.
        """
    def column(self, /, index: SupportsIndex) -> list[tuple[int, bytes | None]]:
        """
        Contents of a further column, by its index in the columns of the data set, of each row that has a value: the number of the row, and
        its content or `None`.
        """
    @property
    def errors(self, /) -> list[tuple[str, str, str, int, int, str | None]]:
        """
        The samples without a value, in order: key, code and message of the error, position, row, and member or `None`.
        """
    @property
    def index(self, /) -> Tensor:
        """
        Index of each row in the data set, `i64 [n]`.
        """
    @property
    def keys(self, /) -> list[str]:
        """
        Key of each row's object, or of its shard.
        """
    @property
    def members(self, /) -> list[str | None]:
        """
        Name of the member that each row is; `None` for a whole object.
        """
    @property
    def names(self, /) -> list[str]:
        """
        Name of each row's sample: the key, or the key of the shard and the name of the member.
        """
    @property
    def number(self, /) -> int:
        """
        Number of the batch within this reader's share, from 0.
        """
    @property
    def position(self, /) -> Tensor:
        """
        Position of each row in the order of the epoch over all ranks, `i64 [n]`.
        """
    @property
    def shards_read(self, /) -> ShardsRead | None:
        """
        What its reader has read of the epoch with this batch; `None` but for readers of shards.
        """
    def stack(self, /) -> Tensor | None:
        """
        The values as one array `[n, ...]`, with zeros where a row has none; `None` if no row has a value.
        """
    def stack_into(self, /, buffer: Any) -> None:
        """
        Copies the values, with zeros where a row has none, into a writable buffer of bytes.
        """
    def stacked_shape(self, /) -> tuple[str, list[int]] | None:
        """
        The dtype and the shape of `stack`; `None` if no row has a value.
        """
    @property
    def valid(self, /) -> Tensor:
        """
        Whether each row has a value and is no padding, `bool [n]`.
        """
    def values(self, /) -> list[Any | None]:
        """
        The value of each row, `None` where it has none.
        """

@final
class ErrorPolicy:
    """
    Decides what becomes of the samples that fail in the batches of one iteration, and counts them.
    """
    def __new__(cls, /, on_error: str, max_errors: Any | None, samples: SupportsIndex | None) -> ErrorPolicy:
        """
        `on_error` is "raise", "report" or "skip"; `max_errors` a whole number, a float from 0 to 1 that is a fraction of `samples`, or `None`;
        `samples` the number of samples in the iteration, `None` if it is unknown.
        """
    def apply(self, /, batch: Batch, errors: SupportsGetItem[int, tuple[SupportsIndex, str, str]]) -> tuple[Batch, list[int]]:
        """
        The batch as the consumer receives it, and which of its rows are left out. `errors` has the row, code and message of values that the
        consumer cannot use: they are errors of their samples, too. Raises `NativeSampleError` for a sample that ends the iteration.
        """

@final
class Footers:
    """
    What a reader of rows has read of the ends of its objects.
    """

@final
class Objects:
    """
    The objects of a data set in order, compact. Each is a sample, or its members are, if it is a shard.
    """
    def __arrow_c_stream__(self, /, requested_schema: CapsuleType | None = None) -> Any:
        """
        Columns `key`, `bytes` and `etag`; with members also `member`, `offset`, `header_bytes` and `size`, and a struct `column:NAME` of these
        four for each further column.
        """
    def __len__(self, /) -> int: ...
    @property
    def bucket(self, /) -> str: ...
    def column_member(self, /, index: SupportsIndex, column: str) -> str | None:
        """
        Name of the member of a further column; `None` if the sample has none.
        """
    @property
    def columns(self, /) -> list[str]:
        """
        Names of the further columns of members, in order.
        """
    def common_folder(self, /) -> str:
        """
        The longest folder that all paths begin with, with its slash; empty if there is none.
        """
    def computed_digest(self, /) -> str:
        """
        The digest of what is in the list. That of a saved list, in contrast, is the one that its file states.
        """
    @property
    def digest(self, /) -> str:
        """
        Hexadecimal SHA-256 of the bucket and the keys in order; with members, of their names, places and columns as well.
        """
    def folders(self, /, prefix: str) -> tuple[list[str], Tensor]:
        """
        The first part of each path after the prefix, sorted and without duplicates, and its number for each sample, `i64 [n]`: -1 for a
        sample without a folder after the prefix.
        """
    @staticmethod
    def from_keys(bucket: str, keys: SupportsGetItem[int, str]) -> Objects:
        """
        These keys in this order, without sizes.
        """
    @property
    def has_members(self, /) -> bool:
        """
        Whether samples are members of shards.
        """
    def key(self, /, index: SupportsIndex) -> str:
        """
        Key of an object; of a member, the key of its shard.
        """
    def keys(self, /) -> list[str]: ...
    @staticmethod
    def list_prefix(store_json: str, credentials: tuple[str, str, str | None] | None, bucket: str, prefix: str, progress: Any | None, include_hidden: bool, inventory: str | None = None) -> Objects:
        """
        Lists a prefix, with or without hidden objects; by the S3 Inventory whose manifest has the URL `inventory`, if there is one. `progress` is
        called from time to time with the number of objects so far. All threads have ended when it returns.
        """
    @staticmethod
    def load(path: str | PathLike[str]) -> Objects:
        """
        A saved list.
        """
    def member(self, /, index: SupportsIndex) -> str | None:
        """
        Name of the member in its shard; `None` for a whole object.
        """
    def paths(self, /) -> list[str]:
        """
        What labels are found by: the name of each member, or the key of each whole object.
        """
    def save(self, /, path: str | PathLike[str]) -> None:
        """
        Saves the list as an Arrow file. It contains no credentials.
        """
    def select(self, /, indices: SupportsGetItem[int, SupportsIndex]) -> Objects:
        """
        Some of the objects, in this order.
        """
    def size(self, /, index: SupportsIndex) -> int | None:
        """
        Stored size in bytes, if known; of a member, the size of its content.
        """

@final
class Observations:
    """
    What the planner of a reader, of objects or rows, has observed.
    """

@final
class Reader:
    """
    A reader whose threads live until `close`, or until it is dropped.
    """
    def __new__(cls, /, spec_json: str, credentials: tuple[str, str, str | None] | None, objects: Objects, observations: Observations | None = None) -> Reader:
        """
        Starts threads. The spec's members are those of the library's `ReaderSpec`; rows without a value are always reported.
        """
    def close(self, /) -> None:
        """
        Cancels everything in flight, and waits until all threads have ended.
        """
    @property
    def mode(self, /) -> str:
        """
        The mode in force: "auto", "pushdown" or "plain".
        """
    def next(self, /) -> Batch | None:
        """
        The next batch; `None` after the last one.
        """
    def observations(self, /) -> Observations | None:
        """
        What the planner has observed, for the next reader of the same data; `None` before the first plan and in other modes than auto.
        """
    def plan(self, /) -> str | None:
        """
        The plan in force, for people; `None` before the first one and in other modes than auto.
        """
    def set_epoch(self, /, epoch: SupportsIndex) -> None:
        """
        Starts another epoch from its first batch.
        """
    def stats_json(self, /) -> str:
        """
        Counts so far, as JSON.
        """
    def take(self, /, indices: SupportsGetItem[int, SupportsIndex]) -> Batch:
        """
        The samples with these indices, in this order, as one batch.
        """

@final
class ShardIndex:
    """
    All members of a set of shards, compact.
    """
    def __len__(self, /) -> int:
        """
        Number of members.
        """
    @property
    def bucket(self, /) -> str: ...
    @property
    def left_out(self, /) -> int:
        """
        Number of members that are left out.
        """
    @staticmethod
    def load(path: str | PathLike[str]) -> ShardIndex:
        """
        A saved index.
        """
    @property
    def members(self, /) -> Objects:
        """
        Every member as a sample.
        """
    @staticmethod
    def read_shards(store_json: str, credentials: tuple[str, str, str | None] | None, bucket: str, keys: SupportsGetItem[int, str], progress: Any | None) -> ShardIndex:
        """
        Finds the members of the shards with these keys. `progress` is called from time to time with the numbers of complete shards and of
        members so far. All threads have ended when it returns.
        """
    def samples(self, /, column: str | None, columns: SupportsGetItem[int, str]) -> Objects:
        """
        The samples that members of one base name form. `column` is the extension of the value, by default that of an image; `columns` are
        those of the further columns.
        """
    def save(self, /, path: str | PathLike[str]) -> None:
        """
        Saves the index as a Parquet file. It contains no credentials.
        """
    def select_shards(self, /, keys: SupportsGetItem[int, str]) -> ShardIndex:
        """
        The index of the shards with these keys alone, in this order.
        """
    @property
    def shards(self, /) -> list[str]:
        """
        Keys of the shards that have members, in order.
        """

@final
class ShardReader:
    """
    A reader of the samples in tar shards without an index, whose threads live until `close`, or until it is dropped.
    """
    def __new__(cls, /, spec_json: str, credentials: tuple[str, str, str | None] | None, objects: Objects) -> ShardReader:
        """
        Starts threads. The objects are the shards; rows without a value are always reported.
        """
    def close(self, /) -> None:
        """
        Cancels everything in flight, and waits until all threads have ended.
        """
    @property
    def mode(self, /) -> str:
        """
        The mode in force: always "plain".
        """
    def next(self, /) -> Batch | None:
        """
        The next batch; `None` after the last one.
        """
    def stats_json(self, /) -> str:
        """
        Counts so far, as JSON.
        """

@final
class ShardsRead:
    """
    What one reader has read of an epoch's shards.
    """
    @staticmethod
    def initial(spec_json: str, objects: Objects) -> ShardsRead:
        """
        The state of a reader before its first batch. The objects are the shards. It checks the settings, and starts no threads.
        """
    @property
    def is_complete(self, /) -> bool:
        """
        Whether no sample is left for the reader whose state it is.
        """
    def to_json(self, /) -> str:
        """
        As the settings of a reader have it in `shards_read`.
        """

@final
class Share:
    """
    What a reader with some settings reads of an epoch.
    """
    def __new__(cls, /, spec_json: str, total: SupportsIndex) -> Share:
        """
        Of an epoch of `total` samples, over all ranks.
        """
    @property
    def batches(self, /) -> int:
        """
        Batches of the reader's rank; the last one may be short.
        """
    def is_complete_after(self, /, batches: SupportsIndex) -> bool:
        """
        Whether no rank has a batch after the first `batches` batches of the reader.
        """
    def position_after(self, /, batches: SupportsIndex) -> int:
        """
        Position in the order of the epoch after the first `batches` batches of the reader, the same on every rank. If the rank has several
        readers, it stays where the share begins.
        """
    @property
    def samples(self, /) -> int:
        """
        Samples of the reader's rank, padding included.
        """
    @property
    def tail_counts(self, /) -> tuple[int, int]:
        """
        Samples that the tail policy drops and repeats, over all ranks.
        """

@final
class Store:
    """
    An endpoint. Threads live until `close`, or until it is dropped.
    """
    def __new__(cls, /, store_json: str, credentials: tuple[str, str, str | None] | None) -> Store: ...
    def check_json(self, /, pipeline: str, size: tuple[SupportsIndex, SupportsIndex] | None = None, nbytes: SupportsIndex | None = None) -> str:
        """
        Kind, shape and bytes of each stage. Models are those of the endpoint.
        """
    def close(self, /) -> None:
        """
        Waits until all threads have ended.
        """
    def explain_json(self, /, objects: Objects, pipeline: str, options_json: str) -> str:
        """
        Measures a pipeline on a few samples. Returns the costs of each split and the best plan, as JSON with a text for people.
        """
    def get(self, /, bucket: str, key: str, member: str | None = None, index: Objects | None = None) -> bytes:
        """
        An object as stored, or a member of it, which is looked up in `index`, or in the shard itself.
        """
    def get_value(self, /, bucket: str, key: str, pipeline: str, split: str = "full", seed: SupportsIndex | None = None, epoch: SupportsIndex | None = None, member: str | None = None, index: Objects | None = None) -> Any:
        """
        What a pipeline computes from an object, or from a member of it: at the gateway, or on this host if the endpoint is a plain
        store. Rows of tables are computed where it is expected to be faster.
        """

@final
class Table:
    """
    Rows in memory. Every export shares the memory.
    """
    def __arrow_c_schema__(self, /) -> Any: ...
    def __arrow_c_stream__(self, /, requested_schema: CapsuleType | None = None) -> Any: ...
    def __copy__(self, /) -> Table:
        """
        The table itself, whose rows never change.
        """
    def __deepcopy__(self, /, _memo: Any) -> Table:
        """
        The table itself, whose rows never change.
        """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, stream: Any) -> Table:
        """
        The rows of an Arrow IPC stream.
        """
    def __reduce_ex__(self, /, protocol: SupportsIndex) -> tuple[type, tuple[Any]]:
        """
        Pickles as an Arrow IPC stream, which may travel out of band with protocol 5.
        """
    def column(self, /, name: str) -> Any:
        """
        A numeric or fixed-size column as one array `[n, ...]`, any other as a list.
        """
    @property
    def column_names(self, /) -> list[str]: ...
    @property
    def num_rows(self, /) -> int: ...

@final
class TableBatch:
    """
    Rows that are consecutive in the order of the epoch.
    """
    def __copy__(self, /) -> TableBatch:
        """
        The batch itself, which never changes.
        """
    def __deepcopy__(self, /, _memo: Any) -> TableBatch:
        """
        The batch itself, which never changes.
        """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, number: SupportsIndex, table: Table, objects: Tensor, rows: Tensor, position: Tensor) -> TableBatch:
        """
        A batch from the parts that `__reduce__` returns.
        """
    def __reduce__(self, /) -> tuple[type, tuple[int, Table, Tensor, Tensor, Tensor]]:
        """
        Pickles with its rows.
        """
    def column(self, /, name: str) -> Any:
        """
        A numeric or fixed-size column as one array `[n, ...]`, any other as a list.
        """
    @property
    def number(self, /) -> int:
        """
        Number of the batch within this reader's share, from 0.
        """
    @property
    def objects(self, /) -> Tensor:
        """
        Index of each row's object, `i64 [n]`.
        """
    @property
    def position(self, /) -> Tensor:
        """
        Position of each row in the order of the epoch over all ranks, `i64 [n]`.
        """
    @property
    def rows(self, /) -> Tensor:
        """
        Number of each row in its object, `i64 [n]`.
        """
    @property
    def table(self, /) -> Table: ...
    def values(self, /, name: str) -> list[Any]:
        """
        A column as a list of Python objects.
        """

@final
class TableReader:
    """
    A reader of rows whose threads live until `close`, or until it is dropped.
    """
    def __len__(self, /) -> int:
        """
        Rows of this rank that are left in the epoch.
        """
    def __new__(cls, /, spec_json: str, credentials: tuple[str, str, str | None] | None, objects: Objects, observations: Observations | None = None, footers: Footers | None = None) -> TableReader:
        """
        Starts threads, reads the footers that are not known, and evaluates the condition.
        """
    @property
    def batches(self, /) -> int:
        """
        Batches of this rank that are left in the epoch.
        """
    def close(self, /) -> None:
        """
        Cancels everything in flight, and waits until all threads have ended.
        """
    def footers(self, /) -> Footers:
        """
        What it has read of the ends of its objects, for the next reader of them.
        """
    @property
    def mode(self, /) -> str:
        """
        The mode in force: "auto", "pushdown" or "plain".
        """
    @property
    def most_batches(self, /) -> int:
        """
        The most batches that a rank has left in the epoch; the same on every rank.
        """
    def next(self, /) -> TableBatch | None:
        """
        The next batch; `None` after the last one.
        """
    def observations(self, /) -> Observations | None:
        """
        What the planner has observed, for the next reader of the same data; `None` before the first plan and in other modes than auto.
        """
    def plan(self, /) -> str | None:
        """
        The plan in force, for people; `None` before the first one, in other modes than auto, and once all rows are read plainly.
        """
    @property
    def row_groups(self, /) -> list[tuple[int, int, int]]:
        """
        The row groups with samples, in the order of the data set: index of the object, number in the data set of the object's first row,
        and number of samples.
        """
    def samples(self, /, batch: TableBatch, column: str) -> Batch:
        """
        The values of a batch that `each` computed in a column, as the samples of a batch. The index of a sample is the number of its row
        in the data set.
        """
    def stats_json(self, /) -> str:
        """
        Counts so far, as JSON.
        """
    @property
    def tail_counts(self, /) -> tuple[int, int]:
        """
        Rows that the tail policy drops and repeats, over all ranks.
        """

@final
class Tensor:
    """
    A dense, writable array in host memory, row-major, aligned to 64 bytes. Every consumer sees the same memory, which lives as long as
    one of them.
    """
    def __array__(self, /, dtype: Any | None = None, copy: bool | None = None) -> Any:
        """
        As a NumPy array, without a copy unless one is asked for or another dtype is. `bfloat16`, which NumPy lacks, is `uint16`.
        """
    def __copy__(self, /) -> Tensor:
        """
        A tensor that shares no memory with others.
        """
    def __deepcopy__(self, /, _memo: Any) -> Tensor:
        """
        A tensor that shares no memory with others.
        """
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(self, /, *, stream: Any | None = None, max_version: tuple[SupportsIndex, SupportsIndex] | None = None, dl_device: tuple[SupportsIndex, SupportsIndex] | None = None, copy: bool | None = None) -> Any:
        """
        A capsule that shares the memory, or with `copy` a copy of it. `stream` is None or -1: host memory has no streams. Raises
        `BufferError` for another device.
        """
    def __dlpack_device__(self, /) -> tuple[int, int]:
        """
        The CPU.
        """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, dtype: str, shape: SupportsGetItem[int, SupportsIndex], data: Any | None = None, layout: str = "flat", scales: Tensor | None = None) -> Tensor:
        """
        Zeros, or a copy of `data`, which has the bytes of the tensor. `layout` and `scales` are those of the values.
        """
    def __reduce_ex__(self, /, protocol: SupportsIndex) -> tuple[type, tuple[str, list[int], Any, str, Tensor | None]]:
        """
        Pickles with the arguments of the constructor. With protocol 5 the memory may travel out of band.
        """
    def __repr__(self, /) -> str: ...
    @property
    def data_ptr(self, /) -> int:
        """
        Address of the first element.
        """
    @property
    def dtype(self, /) -> str: ...
    @property
    def layout(self, /) -> str:
        """
        Order of the axes of a value: "chw", "hwc" or "flat".
        """
    @property
    def nbytes(self, /) -> int: ...
    @property
    def scales(self, /) -> Tensor | None:
        """
        Quantisation scale of each value, `f32 [n]`, if values have one.
        """
    @property
    def shape(self, /) -> tuple[int, ...]: ...

def check_json(pipeline: str, size: tuple[SupportsIndex, SupportsIndex] | None = None, nbytes: SupportsIndex | None = None) -> str:
    """
    Kind, shape and bytes of each stage, as `pushdown check --json` prints them.
    """

def escape(text: str) -> str:
    """
    A text on one line, with its control characters escaped: what a store has named cannot control a terminal.
    """

def expand_braces(pattern: str) -> list[str]:
    """
    The texts that a pattern with braces names, such as `train-{000..999}.tar`. A text without braces names itself.
    """

def is_shard(key: str) -> bool:
    """
    Whether a key is that of a shard, also of a compressed one.
    """

def materialize_json(spec_json: str, credentials: tuple[str, str, str | None] | None, target_credentials: tuple[str, str, str | None] | None, objects: Objects, is_trial: bool, progress: Any | None) -> str:
    """
    Writes the values of all objects as parts of a data set, and returns what was written, as JSON; with `is_trial` an estimate, and nothing is
    written. `progress` is called from time to time, and at the end, with five numbers: samples that are done, samples, parts that are done, parts,
    and bytes that were written. All threads of network I/O have ended when it returns.
    """

def parse_pipeline(text: str) -> str:
    """
    The canonical text of a pipeline. The text of one that names models stays as it is, since only an endpoint knows them.
    """

def rows_read_after(rows_read: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex]], world: SupportsIndex, rows_per_rank: SupportsIndex) -> list[tuple[int, int]]:
    """
    What was read of an epoch's rows, as pairs of a world and the rows of each rank, after each rank of `world` has read more of them.
    """

def run_command(arguments: SupportsGetItem[int, str]) -> int:
    """
    Runs the command line `pushdown` with these arguments, the program's name first, and returns its exit code.
    """

def steps_json() -> str:
    """
    Every step with the types of its arguments.
    """

def warm_json(spec_json: str, credentials: tuple[str, str, str | None] | None, objects: Objects, progress: Any | None) -> str:
    """
    Has the gateway compute and cache the values of all samples, and returns what is cached, as JSON. The spec's members are those of the library's
    `ReaderSpec`. `progress` is called from time to time, and at the end, with the number of samples that are done and of all. All threads have
    ended when it returns.
    """

class NativeError(Exception):
    """
    An error as (kind, message, position in the pipeline's text or None).
    """

class NativeSampleError(Exception):
    """
    A sample that ends an iteration as (its entry in `Batch.errors`, a note that says why or None).
    """
