"""Samples in shards for PyTorch: labels of columns, workers, state."""

from __future__ import annotations

import itertools
import json
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader, SequentialSampler

import pushdown
import pushdown.torch as pt
from shards import CLASSES, files_of, put_shards
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
    pushdown.index(shards, path=path, endpoint=world.endpoint)
    return {"endpoint": world.endpoint, "index": path, "batch_size": 4, "labels": LABELS[0], "seed": 7}


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


@pytest.mark.parametrize("order", ["global", "shards"])
def test_a_state_resumes_in_another_world(shards, shard_options, order):
    options = {**shard_options, "order": order, "buffer": 6}
    with pt.Loader(shards, PIPELINE, **options) as loader:
        whole = samples(loader)
        loader.set_epoch(0)
        seen = samples(itertools.islice(loader, 2))
        saved = json.dumps(loader.state_dict())
    assert len(saved) < 300
    rest = []
    for rank in range(2):
        with pt.Loader(shards, PIPELINE, **{**options, "batch_size": 3, "rank": rank, "world": 2}) as loader:
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
