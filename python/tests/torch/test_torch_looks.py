"""A look at a data set before its epoch: whatever looked, and however workers start, the epoch has every sample once."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import multiprocessing
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader

import pushdown
import pushdown.torch as pt
from pushdown import Sampling, Store
from shards import files_of, put_compressed, put_shards
from torch_samples import ABOUT_WORKERS, PIPELINE, samples

pytestmark = pytest.mark.filterwarnings("error", *ABOUT_WORKERS)

METHODS = ["fork", "forkserver", "spawn"]


def one_batch(dataset):
    next(iter(dataset))


def a_kept_iterator(dataset):
    batches = iter(dataset)
    next(batches)
    return batches


def an_iterator_without_a_batch(dataset):
    return iter(dataset)


def a_loop_that_breaks(dataset):
    for batch in dataset:
        if batch.number == 2:
            break


def some_batches(dataset):
    assert len(list(itertools.islice(dataset, 2))) == 2


def a_loader_in_this_process(dataset):
    loader = DataLoader(dataset, batch_size=None, num_workers=0)
    next(iter(loader))
    return loader


def a_loader_with_workers(dataset):
    next(iter(DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork")))


def a_pass_without_its_end(dataset):
    """Every batch, but for the question whether there is one more."""
    count = len(list(dataset))
    dataset.set_epoch(0)
    batches = iter(dataset)
    return batches, [next(batches) for _ in range(count)]


def a_whole_pass(dataset):
    assert len(list(dataset)) > 2


def its_state(dataset):
    next(iter(dataset))
    state = dataset.state_dict()
    if "position" in state:
        assert state["position"] == 4 and len(dataset) > 2
    next(iter(dataset))


LOOKS = [
    one_batch,
    a_kept_iterator,
    an_iterator_without_a_batch,
    a_loop_that_breaks,
    some_batches,
    a_loader_in_this_process,
    a_loader_with_workers,
    a_pass_without_its_end,
    a_whole_pass,
    its_state,
]
# Workers of these receive a pickle, and of a fork the data set itself: one look for each is enough.
CASES = [
    *((look, "fork") for look in LOOKS),
    *((look, method) for look in (a_kept_iterator, a_pass_without_its_end) for method in METHODS[1:]),
]


@pytest.fixture(scope="module")
def whole(source, options):
    """Arguments of a data set that leaves out no sample, and its samples in epochs 0 and 1."""
    options = {**options, "sampling": Sampling(tail="short")}
    with pt.Loader(source, PIPELINE, **options) as loader:
        return options, [samples(loader), samples(loader)]


def epoch_after(look):
    return 1 if look in (a_whole_pass, a_pass_without_its_end) else 0


@pytest.mark.parametrize(("look", "method"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_an_epoch_by_workers_has_every_sample_after_a_look(source, whole, look, method):
    options, expected = whole
    dataset = pt.Dataset(source, PIPELINE, **options)
    kept = look(dataset)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=method)
    assert samples(loader) == expected[epoch_after(look)]
    del kept


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.__name__)
def test_an_epoch_in_this_process_has_every_sample_after_a_look(source, whole, look):
    options, expected = whole
    dataset = pt.Dataset(source, PIPELINE, **options)
    kept = look(dataset)
    assert samples(DataLoader(dataset, batch_size=None, num_workers=0)) == expected[epoch_after(look)]
    del kept


@pytest.mark.parametrize("method", METHODS)
def test_persistent_workers_have_every_sample_in_each_epoch_after_a_look(source, whole, method):
    options, expected = whole
    dataset = pt.Dataset(source, PIPELINE, **options)
    kept = a_kept_iterator(dataset)
    loader = DataLoader(
        dataset, batch_size=None, num_workers=2, multiprocessing_context=method, persistent_workers=True
    )
    assert samples(loader) == expected[0]
    one_batch(dataset)
    assert samples(loader) == expected[1]
    del kept


def test_the_parent_goes_on_while_workers_read_the_whole_epoch(source, whole):
    options, expected = whole
    dataset = pt.Dataset(source, PIPELINE, **options)
    batches = iter(dataset)
    seen = [next(batches)]
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert samples(loader) == expected[0]
    assert dataset.state_dict()["position"] == 4
    assert samples(itertools.chain(seen, batches)) == expected[0]


class SanityCheck:
    """What Lightning does with a loader for validation: two batches before training, fetched one ahead, then new workers."""

    def __init__(self, loader):
        self.loader = loader

    def run(self):
        batches = iter(self.loader)
        for _ in range(2 + 1):
            next(batches)
        if hasattr(self.loader, "_iterator"):
            if self.loader.num_workers > 0 and self.loader._iterator is not None:
                self.loader._iterator._shutdown_workers()
            self.loader._iterator = None


@pytest.mark.parametrize(
    "workers",
    [
        {"num_workers": 0},
        {"num_workers": 2, "multiprocessing_context": "fork"},
        {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
        {"num_workers": 2, "multiprocessing_context": "forkserver", "persistent_workers": True},
    ],
    ids=["none", "fork", "persistent", "persistent-forkserver"],
)
def test_validation_has_every_sample_after_a_sanity_check(source, whole, workers):
    options, expected = whole
    dataset = pt.Dataset(source, PIPELINE, **options)
    loader = DataLoader(dataset, batch_size=None, **workers)
    one_batch(dataset)
    SanityCheck(loader).run()
    assert samples(loader) == expected[0]


def test_a_loader_has_every_sample_after_a_sanity_check(source, whole):
    options, expected = whole
    with pt.Loader(source, PIPELINE, **options) as loader:
        SanityCheck(loader).run()
        assert samples(loader) == expected[0]


def test_a_state_from_before_a_look_goes_on_exactly(source, whole):
    options, expected = whole
    dataset = pt.Dataset(source, PIPELINE, **options)
    seen = samples(itertools.islice(dataset, 2))
    state = json.loads(json.dumps(dataset.state_dict()))
    dataset = pt.Dataset(source, PIPELINE, **options)
    dataset.load_state_dict(state)
    a_loop_that_breaks(dataset)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert seen + samples(loader) == expected[0]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batches", [0, 3])
def test_a_stateful_data_loader_resumes_after_looks(source, whole, workers, batches):
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
    options, expected = whole

    def make():
        dataset = pt.Dataset(source, PIPELINE, **options)
        one_batch(dataset)
        return dataset, stateful.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    dataset, loader = make()
    next(iter(loader))
    one_batch(dataset)
    iterator = iter(loader)
    seen = [next(iterator) for _ in range(batches)]
    state = loader.state_dict()
    dataset, resumed = make()
    resumed.load_state_dict(state)
    one_batch(dataset)
    assert samples(seen) + samples(resumed) == expected[0]


def test_a_stateful_data_loader_saves_its_own_beginning(source, whole):
    """Also if another iterator has read since its own was made."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
    options, expected = whole
    dataset = pt.Dataset(source, PIPELINE, **options)
    loader = stateful.StatefulDataLoader(dataset, batch_size=None, num_workers=0)
    loader.state_dict()
    one_batch(dataset)
    state = loader.state_dict()
    resumed = stateful.StatefulDataLoader(pt.Dataset(source, PIPELINE, **options), batch_size=None)
    resumed.load_state_dict(state)
    assert samples(resumed) == samples(loader) == expected[0]


def read_all(loader, results):
    results.put(samples(loader))


@pytest.mark.parametrize("method", METHODS)
def test_a_loader_starts_again_in_another_process(source, whole, method):
    options, expected = whole
    with pt.Loader(source, PIPELINE, **options) as loader:
        batches = iter(loader)
        seen = [next(batches)]
        context = multiprocessing.get_context(method)
        results = context.SimpleQueue()
        process = context.Process(target=read_all, args=(loader, results))
        process.start()
        assert results.get() == expected[0]
        process.join()
        assert samples(itertools.chain(seen, batches)) == expected[0]


def test_a_map_data_set_has_every_sample_after_a_look(source, whole):
    options, _ = whole
    dataset = pt.MapDataset(source, PIPELINE, **options)
    dataset[0], next(iter(DataLoader(dataset, batch_size=4, collate_fn=pt.collate)))
    for method in ("fork", "spawn"):
        loader = DataLoader(
            dataset, batch_size=4, num_workers=2, collate_fn=pt.collate, multiprocessing_context=method
        )
        assert [index for batch in loader for index in batch.index.tolist()] == list(range(len(dataset)))
    dataset.close()


@pytest.fixture(scope="module")
def shards(world):
    """Three shards, whole and compressed."""
    world.s3.create_bucket(Bucket="torch-looks")
    plain = put_shards(world.s3, "torch-looks", "train-", files_of(world.s3, ""), "pax", 3)
    return plain, put_compressed(world.s3, "torch-looks", plain, ".gz")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.__name__)
@pytest.mark.parametrize("is_indexed", [True, False], ids=["indexed", "whole"])
def test_shards_have_every_sample_after_a_look(world, shards, tmp_path, look, is_indexed):
    options = {
        "store": Store(endpoint=world.endpoint),
        "batch_size": 4,
        "labels": pushdown.Column("cls"),
        "seed": 7,
        "sampling": Sampling(order="shards", buffer=6),
    }
    plain, compressed = shards
    if is_indexed:
        pushdown.index(plain, path=tmp_path / "index.parquet", store=Store(endpoint=world.endpoint))
        sampling = dataclasses.replace(options["sampling"], tail="short")
        options |= {"index": tmp_path / "index.parquet", "sampling": sampling}
    dataset = pt.Dataset(plain if is_indexed else compressed, PIPELINE, **options)
    expected = collections.Counter(sample.key for sample in samples(dataset))
    dataset.set_epoch(0)
    kept = look(dataset)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert collections.Counter(sample.key for sample in samples(loader)) == expected
    copied = pickle.loads(pickle.dumps(dataset))
    assert collections.Counter(sample.key for sample in samples(copied)) == expected
    del kept


def test_a_loader_of_whole_shards_starts_again_after_a_look(world, shards):
    _, compressed = shards
    options = {"store": Store(endpoint=world.endpoint), "labels": pushdown.Column("cls"), "batch_size": 4, "seed": 7}
    with pt.Loader(compressed, PIPELINE, sampling=Sampling(order="shards", buffer=6), **options) as loader:
        expected = samples(loader)
        loader.set_epoch(0)
        next(iter(loader))
        with pickle.loads(pickle.dumps(loader)) as copied:
            assert samples(copied) == expected
        state = loader.state_dict()
        assert samples(loader) == expected
        loader.load_state_dict(state)
        next(iter(loader))
        with pickle.loads(pickle.dumps(loader)) as copied:
            assert samples(copied) == samples(loader) == expected[4:]
