"""Copies of tensors, batches and tables: pickles of every protocol, queues of other processes, `copy`, and DLPack's `copy`."""

from __future__ import annotations

import copy
import io
import itertools
import multiprocessing
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Sampling, Store, _native
from shards import files_of, put_shards

DTYPES = ["bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"]
SHAPES: list[list[int]] = [[], [0], [3], [2, 3, 4], [0, 3], [2, 0, 4]]
PROTOCOLS = range(2, 6)


def tensor_of(dtype: str, shape: list[int]) -> pushdown.Tensor:
    """A tensor of these sizes with different bytes, all of which `bool` has, too."""
    empty = pushdown.Tensor(dtype, shape)
    return pushdown.Tensor(dtype, shape, bytes(number % 2 for number in range(empty.nbytes)), "hwc", pushdown.Tensor("f32", [2], np.float32([1, 2])))


def bytes_of(tensor: pushdown.Tensor) -> bytes:
    return memoryview(tensor).tobytes()


def described(value: Any) -> Any:
    """A value as one that can be compared."""
    if isinstance(value, pushdown.Tensor):
        return value.dtype, value.shape, value.layout, described(value.scales), bytes_of(value)
    if isinstance(value, pushdown.Table):
        return pa.table(value).schema, pa.table(value).to_pylist()
    if isinstance(value, pushdown.Batch):
        names = ("keys", "members", "index", "position", "valid", "number", "y", "columns", "errors", "values", "x")
        return {name: described(getattr(value, name)) for name in names}
    if isinstance(value, pushdown.TableBatch):
        names = ("table", "objects", "rows", "number", "columns")
        return {name: described(getattr(value, name)) for name in names} | {"position": described(value.native.position)}
    if isinstance(value, pushdown.SampleError):
        return type(value), value.args, str(value)
    if isinstance(value, dict):
        return {name: described(each) for name, each in value.items()}
    if isinstance(value, list):
        return [described(each) for each in value]
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    return value


def unpickled(value: Any, protocol: int) -> Any:
    return pickle.loads(pickle.dumps(value, protocol=protocol))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_tensor_is_equal_after_a_copy(dtype: str, shape: list[int]) -> None:
    tensor = tensor_of(dtype, shape)
    copies = [copy.copy(tensor), copy.deepcopy(tensor), *(unpickled(tensor, protocol) for protocol in range(6))]
    for copied in copies:
        assert described(copied) == described(tensor)
        assert copied.data_ptr % 64 == 0 and not memoryview(copied).readonly
        if tensor.nbytes:
            assert copied.data_ptr != tensor.data_ptr
            memoryview(copied).cast("B")[0] = 1
            assert bytes_of(tensor)[0] == 0, "the copy has memory of its own"


def test_the_memory_of_a_tensor_travels_out_of_band() -> None:
    tensor = tensor_of("f32", [256, 256])
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
    assert len(stream) < 1000
    assert [len(buffer.raw()) for buffer in buffers] == [tensor.nbytes, 8]
    assert np.shares_memory(np.asarray(buffers[0].raw()), np.asarray(tensor))
    assert described(pickle.loads(stream, buffers=buffers)) == described(tensor)
    received = [bytes(buffer.raw()) for buffer in buffers]
    assert described(pickle.loads(stream, buffers=received)) == described(tensor)


def test_one_tensor_twice_is_one_tensor_after_a_copy() -> None:
    tensor = tensor_of("u8", [4])
    for one, other in (copy.deepcopy([tensor, tensor]), unpickled([tensor, tensor], 5)):
        assert one is other


def test_invalid_parts_of_a_tensor_are_refused() -> None:
    for arguments, text in (
        (("u8", [1], None, "nchw"), "expected one of chw, hwc, flat, found `nchw`"),
        (("u8", [1], None, "hwc", pushdown.Tensor("u8", [1])), r"expected f32 with one axis, found u8 \[1\]"),
        (("u8", [1], None, "hwc", pushdown.Tensor("f32", [])), r"expected f32 with one axis, found f32 \[\]"),
    ):
        with pytest.raises(Exception, match=text):
            pushdown.Tensor(*arguments)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def damaged(world: Any) -> str:
    """Eight photos, of which two are none."""
    world.s3.create_bucket(Bucket="copies")
    entries = world.s3.list_objects_v2(Bucket="photos", Prefix="train/other/")["Contents"][:8]
    for number, entry in enumerate(entries):
        body = world.s3.get_object(Bucket="photos", Key=entry["Key"])["Body"].read()
        world.put("copies", f"some/{number % 2}/{number}", b"no photo" if number in (2, 5) else body)
    return "s3://copies/some/"


def black(value: Any) -> Any:
    return np.zeros_like(np.asarray(value))


PIPELINES: dict[str, Any] = {
    "pixels": "decode | resize(16, 12)",
    "floats": "decode | resize(16, 12) | to_float",
    "f16": "decode | resize(16, 12) | to_float | cast(f16)",
    "bf16": "decode | resize(16, 12) | to_float | cast(bf16)",
    "quantized": "decode | resize(16, 12) | to_float | quantize(int8)",
    "shapes": "decode",
    "bytes": "decode | encode(png)",
    "functions": pushdown.Pipeline("decode | resize(16, 12)").then(black),
    "text": pushdown.Pipeline("decode | resize(16, 12)").then(repr),
}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("is_stacked", [False, True], ids=["before-x", "after-x"])
def test_a_batch_is_equal_after_a_copy(endpoint: str, damaged: str, name: str, is_stacked: bool) -> None:
    """The first one without a value is a row of zeros, or `None`."""
    with pushdown.Reader(
        damaged,
        PIPELINES[name],
        store=Store(endpoint=endpoint),
        batch_size=8,
        labels="dir",
        on_error="report",
        sampling=Sampling(tail="pad"),
    ) as reader:
        (batch,) = reader
    assert len(batch.errors) == 2
    if is_stacked:
        assert batch.x is not None
    copies = [copy.copy(batch), copy.deepcopy(batch), *(unpickled(batch, protocol) for protocol in PROTOCOLS)]
    for copied in copies:
        assert described(copied) == described(batch)
        assert len(copied) == 8 and [described(part) for part in copied] == [described(part) for part in batch]
    assert described(unpickled(copies[-1], 4)) == described(batch), "a copy of a copy"
    skipped = [_native.ErrorPolicy("skip", None, None).apply(each.native, []) for each in (copies[-1], batch)]
    assert len({tuple(left_out) for _, left_out in skipped}) == 1
    assert described(skipped[0][0].values()) == described(skipped[1][0].values())


def test_a_batch_without_any_value_is_equal_after_a_copy(endpoint: str, damaged: str) -> None:
    sampling = Sampling(tail="short")
    store = Store(endpoint=endpoint)
    with pushdown.Reader([f"{damaged}0/2", f"{damaged}1/5"], "decode", store=store, on_error="report", sampling=sampling) as reader:
        (batch,) = reader
    for copied in (copy.deepcopy(batch), *(unpickled(batch, protocol) for protocol in PROTOCOLS)):
        assert described(copied) == described(batch) and copied.x == [None, None]


def test_values_that_were_changed_stay_changed(endpoint: str, damaged: str) -> None:
    with pushdown.Reader(damaged, PIPELINES["floats"], store=Store(endpoint=endpoint), on_error="report") as reader:
        (batch,) = reader
    unread = len(pickle.dumps(batch))
    before = described(batch.values)
    assert len(pickle.dumps(batch)) < 1.1 * unread, "stacked values are not pickled beside the values"
    np.asarray(batch.x)[:] = 7
    for copied in (copy.copy(batch), copy.deepcopy(batch), unpickled(batch, 5)):
        assert (np.asarray(copied.x) == 7).all()
        assert described(copied.values) == before
    assert copy.copy(batch).x is batch.x
    assert copy.deepcopy(batch).x is not batch.x


def test_the_values_of_a_batch_travel_out_of_band(endpoint: str, damaged: str) -> None:
    store = Store(endpoint=endpoint)
    with pushdown.Reader(damaged, "decode | resize(64, 64) | to_float", store=store, on_error="report") as reader:
        (batch,) = reader
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    assert len(stream) < 4000
    assert batch.x.nbytes in {len(buffer.raw()) for buffer in buffers}
    assert described(pickle.loads(stream, buffers=buffers)) == described(batch)


def test_invalid_parts_of_a_batch_are_refused(endpoint: str, damaged: str) -> None:
    with pushdown.Reader(damaged, PIPELINES["pixels"], store=Store(endpoint=endpoint), on_error="report") as reader:
        (batch,) = reader
    make, (number, rows, values, errors, _) = batch.native.__reduce_ex__(4)
    for parts, text in (
        ((number, rows, pushdown.Tensor("u8", [1 << 40, 0]), errors), "expected 8 values, found 1099511627776"),
        ((number, rows, pushdown.Tensor("u8", []), errors), "found a tensor without axes"),
        ((number, rows, pushdown.Tensor("f64", [8, 1]), errors), "found f64"),
        ((number, rows, [b""], errors), "expected 8 values, found 1"),
        ((number, rows, [None] * 8, errors), "row 0 has neither a value nor an error"),
        ((number, rows, values, errors, "{}"), "invalid state of shards"),
    ):
        with pytest.raises(Exception, match=text):
            make(*parts)
    with pytest.raises(Exception, match="invalid table"):
        pushdown.Table(b"no table")


@pytest.fixture(scope="module")
def shards(world: Any, damaged: str) -> str:
    world.s3.create_bucket(Bucket="copied-shards")
    return put_shards(world.s3, "copied-shards", "train-", files_of(world.s3, ""), "pax", 2)


@pytest.mark.parametrize("is_indexed", [True, False], ids=["indexed", "whole"])
def test_a_batch_of_a_shard_is_equal_after_a_copy(endpoint: str, shards: str, is_indexed: bool) -> None:
    options: dict[str, Any] = {
        "store": Store(endpoint=endpoint),
        "batch_size": 4,
        "labels": pushdown.Column("cls"),
        "columns": {"json": "json", "cls": "int"},
        "seed": 7,
    }
    if is_indexed:
        options["index"] = pushdown.index(shards, store=Store(endpoint=endpoint))
    with pushdown.Reader(shards, PIPELINES["floats"], **options) as reader:
        batch = next(iter(reader))
    for copied in (copy.copy(batch), copy.deepcopy(batch), *(unpickled(batch, protocol) for protocol in PROTOCOLS)):
        assert described(copied) == described(batch)
        assert copied.native.column(0) == batch.native.column(0)
        states = [each.native.shards_read for each in (copied, batch)]
        assert [state and state.to_json() for state in states] == [states[1] and states[1].to_json()] * 2


@pytest.fixture(scope="module")
def rows(world: Any, damaged: str) -> str:
    """Rows of photos with labels, numbers, texts and nulls in a Parquet object."""
    photos = world.s3.list_objects_v2(Bucket="photos", Prefix="train/other/")["Contents"][:6]
    images = [world.s3.get_object(Bucket="photos", Key=photo["Key"])["Body"].read() for photo in photos]
    table = pa.table(
        {
            "image": images,
            "label": list(range(6)),
            "text": [None, "é", *"abcd"],
            "number": [None, *range(5)],
            "kind": pa.array([*"abcabc"]).dictionary_encode(),
        }
    )
    body = io.BytesIO()
    pq.write_table(table, body)
    world.put("copies", "rows.parquet", body.getvalue())
    return "s3://copies/rows.parquet"


@pytest.mark.parametrize("labels", ["label", "text"])
def test_a_batch_of_rows_is_equal_after_a_copy(endpoint: str, rows: str, labels: str) -> None:
    sampling = Sampling(tail="short")
    store = Store(endpoint=endpoint)
    with pushdown.Reader(rows, PIPELINES["floats"], store=store, labels=labels, sampling=sampling) as reader:
        (batch,) = reader
    for copied in (copy.copy(batch), copy.deepcopy(batch), *(unpickled(batch, protocol) for protocol in PROTOCOLS)):
        assert described(copied) == described(batch)


def test_a_batch_of_a_table_is_equal_after_a_copy(endpoint: str, rows: str) -> None:
    pipeline = "select(columns=[image, label, text, number, kind]) | each(image: decode | resize(8, 8))"
    sampling = Sampling(tail="short")
    store = Store(endpoint=endpoint)
    with pushdown.TableReader(rows, pipeline, store=store, batch_size=4, seed=7, sampling=sampling) as reader:
        batches = list(reader)
    for batch in batches:
        for copied in (copy.copy(batch), copy.deepcopy(batch), *(unpickled(batch, protocol) for protocol in PROTOCOLS)):
            assert described(copied) == described(batch) and len(copied) == len(batch)
            for column in ("image", "label", "text", "number"):
                assert described(copied[column]) == described(batch[column])
    changed = batches[0]
    np.asarray(changed.rows)[:] = 7
    assert described(unpickled(changed, 5)) == described(changed)


@pytest.mark.parametrize("where", ["label >= 0", "label > 100"], ids=["rows", "none"])
def test_a_table_is_equal_after_a_copy(endpoint: str, rows: str, where: str) -> None:
    table = pushdown.read_table(rows, f"select(columns=[label, text, kind], where='{where}')", store=Store(endpoint=endpoint))
    for copied in (copy.copy(table), copy.deepcopy(table), *(unpickled(table, protocol) for protocol in PROTOCOLS)):
        assert described(copied) == described(table)
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(table, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and described(pickle.loads(stream, buffers=buffers)) == described(table)


def test_tables_are_values_of_a_batch_after_a_copy(endpoint: str, rows: str) -> None:
    with pushdown.Reader([rows], "select(columns=[label, text])", store=Store(endpoint=endpoint)) as reader:
        (batch,) = reader
    for copied in (copy.deepcopy(batch), *(unpickled(batch, protocol) for protocol in PROTOCOLS)):
        assert described(copied) == described(batch)


def send(results: Any, value: Any) -> None:
    results.put(value)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_batches_travel_through_queues(endpoint: str, damaged: str, method: str) -> None:
    store = Store(endpoint=endpoint)
    with pushdown.Reader(damaged, PIPELINES["bf16"], store=store, labels="dir", on_error="report") as reader:
        (batch,) = reader
    context = multiprocessing.get_context(method)
    results = context.Queue()
    for value in (batch, batch.x, pushdown.Tensor("f32", [])):
        process = context.Process(target=send, args=(results, value))
        process.start()
        assert described(results.get(timeout=60)) == described(value)
        process.join()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bf16"])
def test_from_dlpack_copies_only_if_asked_to(dtype: str, shape: list[int]) -> None:
    tensor = tensor_of(dtype, shape)
    for wanted in (None, False, True):
        array = np.from_dlpack(tensor, copy=wanted)
        assert (array.shape, array.tobytes()) == (tuple(shape), bytes_of(tensor))
        assert array.flags.writeable
        if tensor.nbytes:
            assert np.shares_memory(array, np.asarray(tensor)) == (wanted is not True)
    kept = np.from_dlpack(tensor, copy=True)
    del tensor
    assert kept.tobytes() == bytes_of(tensor_of(dtype, shape)), "a copy outlives its tensor"


class Forwarder:
    """Passes on what a consumer asks for, with other arguments."""

    def __init__(self, tensor: pushdown.Tensor, **arguments: Any) -> None:
        self.tensor, self.arguments = tensor, arguments

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.tensor.__dlpack__(**{**arguments, **self.arguments})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


VERSIONS = [None, (0, 8), (1, 0), (1, 3), (2, 0)]


@pytest.mark.parametrize(("version", "device", "wanted", "stream"), [*itertools.product(VERSIONS, [None, (1, 0)], [None, False, True], [None, -1])])
def test_every_argument_of_the_standard_is_taken(version: Any, device: Any, wanted: Any, stream: Any) -> None:
    tensor = tensor_of("f32", [2, 3])
    arguments = {"stream": stream, "max_version": version, "dl_device": device, "copy": wanted}
    capsule = tensor.__dlpack__(**arguments)
    name = "dltensor_versioned" if version is not None and version[0] >= 1 else "dltensor"
    assert f'"{name}"' in repr(capsule)
    array = np.from_dlpack(Forwarder(tensor, **arguments))
    assert array.tobytes() == bytes_of(tensor)
    assert np.shares_memory(array, np.asarray(tensor)) == (wanted is not True)


def test_bfloat16_is_copied_by_dlpack() -> None:
    tensor = tensor_of("bf16", [2, 3])
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=(1, 0), copy=True))
    assert np.asarray(unpickled(tensor, 5)).view(ml_dtypes.bfloat16).shape == (2, 3)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dl_device": (2, 0)}, BufferError, "cross-device"),
    ({"dl_device": (2, 0), "copy": True}, BufferError, "cross-device"),
    ({"dl_device": (2, 0), "copy": False}, BufferError, "cross-device"),
    ({"dl_device": (1, 1)}, BufferError, "cross-device"),
    ({"stream": 1}, ValueError, "expected None for a tensor in host memory, found 1"),
    ({"stream": "s"}, ValueError, "expected None for a tensor in host memory, found 's'"),
    ({"max_version": 1}, TypeError, "max_version"),
    ({"dl_device": "cpu"}, TypeError, "dl_device"),
    ({"copy": "yes"}, TypeError, "copy"),
    ({"device": (1, 0)}, TypeError, "device"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), REFUSED)
def test_other_devices_streams_and_types_are_refused(arguments: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        tensor_of("f32", [2]).__dlpack__(**arguments)


def test_numpy_names_a_device_that_it_has_not() -> None:
    with pytest.raises((BufferError, ValueError)):
        np.from_dlpack(tensor_of("f32", [2]), device="cuda")
    assert np.from_dlpack(tensor_of("f32", [2]), device="cpu", copy=True).shape == (2,)
