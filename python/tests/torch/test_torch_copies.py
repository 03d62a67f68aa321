"""Tensors and batches in torch: by DLPack with and without a copy, and as what workers of a `DataLoader` return."""

from __future__ import annotations

import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader, IterableDataset

import pushdown
import pushdown.torch as pt
from torch_samples import ABOUT_WORKERS, PIPELINE, samples_of

pytestmark = pytest.mark.filterwarnings("error", *ABOUT_WORKERS)

DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}


@pytest.mark.parametrize("shape", [[], [0, 2], [2, 3]], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_from_dlpack_copies_only_if_asked_to(dtype, shape):
    zeros = pushdown.Tensor(dtype, shape)
    tensor = pushdown.Tensor(dtype, shape, bytes(number % 2 for number in range(zeros.nbytes)))
    for wanted in (None, False, True):
        made = torch.from_dlpack(tensor, copy=wanted)
        assert (made.dtype, list(made.shape)) == (DTYPES[dtype], shape)
        assert bytes(made.reshape(-1).view(torch.uint8).tolist()) == memoryview(tensor).tobytes()
        if tensor.nbytes:
            assert (made.data_ptr() == tensor.data_ptr) == (wanted is not True)
    assert torch.from_dlpack(tensor, device="cpu", copy=True).shape == torch.from_dlpack(tensor).shape


class Batches(IterableDataset):
    """Batches as a `Reader` has them."""

    def __init__(self, source, options):
        self.reader = pushdown.Reader(source, PIPELINE, **options)

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return iter(self.reader)
        return self.reader.iterate(pushdown.Worker(worker.id, worker.num_workers))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_of_a_reader_travel_from_workers(source, options, method):
    dataset = Batches(source, options)
    expected = list(dataset)
    dataset.reader.set_epoch(0)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=method)
    for batch, other in zip(loader, expected, strict=True):
        assert (batch.keys, batch.number) == (other.keys, other.number)
        for name in ("x", "y", "index", "position", "valid"):
            one, two = getattr(batch, name), getattr(other, name)
            assert torch.equal(torch.from_dlpack(one), torch.from_dlpack(two))


def test_a_torch_batch_is_equal_after_a_copy(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        batch = next(iter(loader))
    copies = [copy.copy(batch), copy.deepcopy(batch)]
    copies += [pickle.loads(pickle.dumps(batch, protocol=protocol)) for protocol in range(2, 6)]
    for copied in copies:
        assert samples_of(copied) == samples_of(batch)
        assert torch.equal(copied.valid, batch.valid) and copied.errors == batch.errors == []
    assert copies[1].x.data_ptr() != batch.x.data_ptr() == copies[0].x.data_ptr()
