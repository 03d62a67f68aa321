"""`pushdown.torch.Loader`: tensors without a copy, order, state."""

from __future__ import annotations

import gc
import inspect
import itertools
import json
import os
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import pushdown
import pushdown.torch as pt
from pushdown import Sampling
from pushdown.torch._convert import to_torch
from pushdown.torch._pinned import _warn_without_cuda, stack
from torch_samples import PIPELINE, samples, samples_of

pytestmark = pytest.mark.filterwarnings("error")


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_tensors_share_the_memory_of_the_reader_and_are_writable(source, options):
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        batch = next(iter(reader))
        converted = to_torch(batch)
        assert converted.x.data_ptr() == batch.x.data_ptr
        assert converted.index.data_ptr() == batch.index.data_ptr
        converted.x.fill_(0.25)
        assert set(memoryview(batch.x).cast("B").cast("f").tolist()) == {0.25}


def test_a_tensor_outlives_its_batch_and_its_loader(source, options):
    loader = pt.Loader(source, PIPELINE, **options)
    batch = next(iter(loader))
    before, x = samples_of(batch), batch.x
    copy = x.clone()
    loader.close()
    del batch, loader
    gc.collect()
    assert torch.equal(x, copy)
    assert len(before) == 4


def test_a_batch_has_values_labels_and_origin(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        batch = next(iter(loader))
        x, y = batch
        assert x is batch.x and y is batch.y
        assert (x.shape, x.dtype, y.dtype) == ((4, 3, 32, 32), torch.float32, torch.int64)
        assert batch.valid.tolist() == [True] * 4 and batch.errors == [] and batch.number == 0
        assert [loader.classes[label] for label in y] == [key.split("/")[1] for key in batch.keys]
        assert [loader.objects.key(index) for index in batch.index.tolist()] == batch.keys
        assert batch.position.tolist() == [0, 1, 2, 3]
        moved = batch.to("cpu", non_blocking=True)
        assert torch.equal(moved.x, x) and moved.keys == batch.keys
        assert samples_of(pickle.loads(pickle.dumps(batch))) == samples_of(batch)


def test_bfloat16_arrives_without_numpy(source, options):
    with (
        pt.Loader(source, f"{PIPELINE} | cast(bf16)", **options) as cast,
        pt.Loader(source, PIPELINE, **options) as plain,
    ):
        x, expected = next(iter(cast)).x, next(iter(plain)).x
        assert x.dtype == torch.bfloat16
        assert torch.equal(x, expected.to(torch.bfloat16))


@pytest.mark.parametrize("cast", ["", " | cast(bf16)", " | cast(f16)"])
def test_values_are_stacked_into_a_tensor_of_the_caller(source, options, cast):
    with pushdown.Reader(source, PIPELINE + cast, **options) as reader:
        batch = next(iter(reader))
        assert torch.equal(stack(batch.native, pinned=False), to_torch(batch).x)


def test_values_of_different_shapes_are_a_list(source, options):
    with pt.Loader(source, "decode", **options) as loader:
        x = loader.take(range(len(loader.objects))).x
        shapes = {value.shape for value in x}
        assert isinstance(x, torch.Tensor) == (len(shapes) == 1)


def test_len_counts_the_batches_of_an_epoch(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        batches = list(loader)
        assert len(loader) == len(batches) == -(-len(samples(batches)) // 4)


def test_each_epoch_has_its_own_order_and_is_repeatable(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        first = samples(loader)
        assert loader.epoch == 1  # a complete pass goes on
        second = samples(loader)
        loader.set_epoch(0)
        assert samples(loader) == first
        assert [sample.key for sample in second] != [sample.key for sample in first]
        assert {sample.key for sample in second} == {sample.key for sample in first}


@pytest.mark.parametrize("ranks, batch_size", [(1, 4), (1, 3), (2, 2), (3, 2)])
def test_a_state_resumes_in_another_world(source, options, ranks, batch_size):
    with pt.Loader(source, PIPELINE, **options) as loader:
        whole = samples(loader)
        loader.set_epoch(0)
        seen = samples(itertools.islice(loader, 3))
        saved = json.dumps(loader.state_dict())
    assert len(saved) < 300
    rest = []
    for rank in range(ranks):
        arguments = {**options, "batch_size": batch_size, "sampling": Sampling(rank=rank, world=ranks)}
        with pt.Loader(source, PIPELINE, **arguments) as loader:
            loader.load_state_dict(json.loads(saved))
            rest += samples(loader)
    resumed = seen + sorted(rest)
    assert resumed == whole[: len(resumed)]
    assert len(whole) - len(resumed) < ranks


def test_the_state_counts_what_the_consumer_got_on_every_rank(source, options):
    states = []
    for rank in range(2):
        with pt.Loader(source, PIPELINE, sampling=Sampling(rank=rank, world=2), **options) as loader:
            next(iter(loader))
            states.append(loader.state_dict())
    assert states[0] == states[1]
    assert states[0]["position"] == 8


def test_a_state_of_another_pipeline_is_refused(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        state = loader.state_dict()
    with (
        pt.Loader(source, "decode", **options) as other,
        pytest.raises(pushdown.StateError, match="pipeline"),
    ):
        other.load_state_dict(state)


def test_strict_false_goes_on_at_the_same_position(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader, pt.Loader(source, "decode", **options) as other:
        other.load_state_dict({**loader.state_dict(), "epoch": 2, "position": 8}, strict=False)
        assert (other.state_dict()["epoch"], other.state_dict()["position"]) == (2, 8)


def test_the_options_are_those_of_the_reader():
    parameters = inspect.signature(pushdown.Reader).parameters.values()
    assert pt.ReaderOptions.__annotations__.keys() == {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_a_pickled_loader_reads_the_same(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        text = pickle.dumps(loader)
        assert len(text) < 4096
        with pickle.loads(text) as copy:
            assert samples(copy) == samples(loader)


def test_threads_live_only_while_an_iterator_does(source, options):
    samples(pt.Loader(source, PIPELINE, **options))
    gc.collect()
    before = threads()
    loader = pt.Loader(source, PIPELINE, **options)
    assert threads() == before
    iterator = iter(loader)
    next(iterator)
    assert threads() > before
    loader.close()
    assert threads() == before


def test_functions_run_after_the_pipeline_in_order(source, options):
    pipeline = pushdown.Pipeline(PIPELINE).then(lambda value: torch.from_dlpack(value) * 2)
    with pt.Loader(source, pipeline, **options) as doubled, pt.Loader(source, PIPELINE, **options) as plain:
        for batch, expected in zip(doubled, plain, strict=True):
            assert torch.equal(batch.x, expected.x * 2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_pin_memory_warns_once_without_cuda(source, options):
    _warn_without_cuda.cache_clear()
    with pt.Loader(source, PIPELINE, pin_memory=True, **options) as loader:
        with pytest.warns(UserWarning, match="pin_memory=True has no effect"):
            batch = next(iter(loader))
        assert not batch.x.is_pinned()
        assert len(next(iter(loader))) == 4  # a second warning would be an error


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_pinned_batches_have_the_same_values_while_copies_are_pending(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        expected = samples(loader)
    with pt.Loader(source, PIPELINE, pin_memory=True, **options) as loader:
        side = torch.cuda.Stream()
        copies = []
        for batch in loader:
            assert batch.x.is_pinned() and batch.y.is_pinned() and batch.valid.is_pinned()
            with torch.cuda.stream(side):
                torch.cuda._sleep(10_000_000)
                copies.append(batch.to("cuda", non_blocking=True))
        side.synchronize()
        assert samples(copy.to("cpu") for copy in copies) == expected
