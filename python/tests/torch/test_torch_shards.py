"""Samples in shards for PyTorch: labels of columns, workers, state."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader, SequentialSampler

import pushdown
import pushdown.torch as pt
from pushdown import Sampling, Store
from shards import CLASSES, files_of, put_compressed, put_shards
from torch_samples import ABOUT_WORKERS, PIPELINE, samples, samples_of

pytestmark = pytest.mark.filterwarnings("error", *ABOUT_WORKERS)

LABELS = [pushdown.Column("cls"), pushdown.Column("json", "label", parse="text", classes=CLASSES)]


@pytest.fixture(scope="module")
def shards(world):
    world.s3.create_bucket(Bucket="torch-shards")
    return put_shards(world.s3, "torch-shards", "train-", files_of(world.s3, ""), "pax", 3)


@pytest.fixture(scope="module")
def shard_options(world, shards, tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "train.parquet"
    pushdown.index(shards, path=path, store=Store(endpoint=world.endpoint))
    return {"store": Store(endpoint=world.endpoint), "index": path, "batch_size": 4, "labels": LABELS[0], "seed": 7}


@pytest.mark.parametrize("labels", LABELS, ids=["cls", "json"])
def test_a_loader_has_values_and_labels(shards, shard_options, labels):
    with pt.Loader(
        shards, PIPELINE, **{**shard_options, "labels": labels}, columns={"json": "json", "cls": "int"}
    ) as loader:
        for batch in loader:
            x, y = batch
            assert (x.shape[1:], x.dtype, y.dtype) == ((3, 32, 32), torch.float32, torch.int64)
            assert [CLASSES[label] for label in y] == [member.split("/")[0] for member in batch.members]
            assert torch.equal(batch.columns["cls"], y)
            assert [document["label"] for document in batch.columns["json"]] == [
                CLASSES[label] for label in y
            ]
            assert set(batch.keys) <= {f"train-00{n}.tar" for n in range(3)}
        moved = batch.to("cpu")
        assert moved.columns is batch.columns and moved.members is batch.members
        copy = pickle.loads(pickle.dumps(batch))
        assert samples_of(copy) == samples_of(batch) and copy.columns["json"] == batch.columns["json"]


def test_labels_by_folder_are_the_same(shards, shard_options):
    with (
        pt.Loader(shards, PIPELINE, **shard_options) as by_column,
        pt.Loader(shards, PIPELINE, **{**shard_options, "labels": "dir"}) as by_folder,
    ):
        assert by_folder.classes == CLASSES
        assert samples(by_column) == samples(by_folder)


@pytest.mark.parametrize("sampling", [Sampling(order="global"), Sampling(order="shards", buffer=6)])
def test_a_state_resumes_in_another_world(shards, shard_options, sampling):
    options = {**shard_options, "sampling": sampling}
    with pt.Loader(shards, PIPELINE, **options) as loader:
        whole = samples(loader)
        loader.set_epoch(0)
        seen = samples(itertools.islice(loader, 2))
        saved = json.dumps(loader.state_dict())
    assert len(saved) < 300
    rest = []
    for rank in range(2):
        sampling = dataclasses.replace(options["sampling"], rank=rank, world=2)
        with pt.Loader(shards, PIPELINE, **{**options, "batch_size": 3, "sampling": sampling}) as loader:
            loader.load_state_dict(json.loads(saved))
            rest += samples(loader)
    resumed = seen + sorted(rest)
    assert resumed == whole[: len(resumed)]
    assert len(whole) - len(resumed) < 2


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_of_a_data_set_read_the_same(shards, shard_options, workers):
    with pt.Loader(shards, PIPELINE, **shard_options) as loader:
        expected = samples(loader)
    dataset = pt.Dataset(shards, PIPELINE, **shard_options)
    assert samples(DataLoader(dataset, batch_size=None, num_workers=workers)) == expected


def test_a_map_data_set_has_samples_by_index(shards, shard_options):
    dataset = pt.MapDataset(shards, PIPELINE, **{**shard_options, "labels": None})
    try:
        assert dataset[1][1] == dataset.objects.member(1)
        sampled = DataLoader(dataset, batch_size=4, sampler=SequentialSampler(dataset), collate_fn=pt.collate)
        batches = list(sampled)
    finally:
        dataset.close()
    members = [member for batch in batches for member in batch.members]
    assert members == dataset.objects.paths()


@pytest.fixture(scope="module")
def whole_options(world):
    """Of shards without an index."""
    return {
        "store": Store(endpoint=world.endpoint),
        "batch_size": 4,
        "labels": LABELS[0],
        "seed": 7,
        "sampling": Sampling(order="shards", buffer=6),
    }


def without_places(read):
    return sorted(sample._replace(position=0, index=0) for sample in read)


def test_a_loader_without_an_index_reads_the_same(shards, shard_options, whole_options):
    sampling = Sampling(order="shards", buffer=6, tail="short")
    with pt.Loader(shards, PIPELINE, **shard_options, sampling=sampling) as loader:
        indexed = [sample._replace(index=0) for sample in samples(loader)]
    with pt.Loader(shards, PIPELINE, **whole_options, columns={"json": "json"}) as loader:
        batches = list(loader)
        assert loader.epoch == 1
        with pytest.raises(TypeError, match="no len"):
            len(loader)
    assert [sample._replace(index=0) for sample in samples(batches)] == indexed
    with pt.Loader(shards, PIPELINE, **{**whole_options, "sampling": Sampling(buffer=6)}) as loader:
        assert samples(loader) == samples(batches), "the order of shards is the default"
    for batch in batches:
        assert [document["label"] for document in batch.columns["json"]] == [CLASSES[n] for n in batch.y]


def test_a_loader_without_an_index_resumes_in_another_world(shards, whole_options):
    with pt.Loader(shards, PIPELINE, **whole_options) as loader:
        whole = samples(loader)
    seen, states = [], []
    for rank in range(2):
        sampling = dataclasses.replace(whole_options["sampling"], rank=rank, world=2)
        with pt.Loader(shards, PIPELINE, **{**whole_options, "sampling": sampling}) as loader:
            seen += samples(itertools.islice(loader, 1))
            states.append(json.loads(json.dumps(loader.state_dict())))
    with pt.Loader(shards, PIPELINE, **whole_options) as loader:
        loader.load_state_dict(states)
        assert without_places(seen + samples(loader)) == without_places(whole)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_data_set_reads_compressed_shards(world, shards, whole_options, suffix):
    source = put_compressed(world.s3, "torch-shards", shards, suffix)
    with pt.Loader(source, PIPELINE, **whole_options) as loader:
        whole = samples(loader)
    for workers in (0, 2, 4):
        dataset = pt.Dataset(source, PIPELINE, **whole_options)
        read = samples(DataLoader(dataset, batch_size=None, num_workers=workers))
        assert without_places(read) == without_places(whole)
        if workers == 0:
            assert read == whole


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batches", [0, 1, 3, 100])
def test_a_stateful_data_loader_resumes_shards_without_an_index(shards, whole_options, workers, batches):
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

    def make(epoch=0):
        return stateful.StatefulDataLoader(
            pt.Dataset(shards, PIPELINE, epoch=epoch, **whole_options), batch_size=None, num_workers=workers
        )

    whole = list(make())
    batches = min(batches, len(whole))
    loader = make()
    iterator = iter(loader)
    seen = [next(iterator) for _ in range(batches)]
    state = loader.state_dict()
    resumed = make()
    resumed.load_state_dict(state)
    if batches == len(whole) and workers == 0:
        # After the last batch the state begins the next epoch, as that of a reader of objects. Workers are not all there at once.
        assert (samples(seen), samples(resumed)) == (samples(whole), samples(make(epoch=1)))
    else:
        assert samples(seen) + samples(resumed) == samples(whole)


def test_options_that_need_an_index_are_refused(shards, whole_options):
    sampling = dataclasses.replace(whole_options["sampling"], tail="even")
    for options, refused in (
        ({"sampling": sampling}, 'tail="even" does not apply to shards without an index: expected "short"'),
        ({"mode": "pushdown"}, 'mode="pushdown" does not apply to shards without an index: expected "auto" or "plain"'),
    ):
        with pytest.raises(pushdown.ConfigError, match=refused):
            pt.Loader(shards, PIPELINE, **{**whole_options, **options})
    with pytest.raises(pushdown.ConfigError, match=r"expected a pushdown\.Column"):
        pt.Dataset(shards, PIPELINE, **{**whole_options, "labels": "dir"})
    with pytest.raises(pushdown.ConfigError, match=r"are read in batches only: expected pushdown\.torch\.Loader, found MapDataset"):
        pt.MapDataset(shards, PIPELINE, **whole_options)
