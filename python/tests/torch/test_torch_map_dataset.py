"""`pushdown.torch.MapDataset` with the samplers of torch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
)

import pushdown.torch as pt
from torch_samples import ABOUT_WORKERS, PIPELINE, samples_of

pytestmark = pytest.mark.filterwarnings("error", *ABOUT_WORKERS)


@pytest.fixture(scope="module")
def dataset(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        dataset = pt.MapDataset(loader.objects, PIPELINE, **options)
    yield dataset
    dataset.close()


def test_a_sample_has_the_value_and_the_label_of_its_object(dataset, source, options):
    x, y = dataset[3]
    assert (x.shape, x.dtype) == ((3, 32, 32), torch.float32)
    assert dataset.classes[y] == dataset.objects.key(3).split("/")[1]
    assert torch.equal(dataset[len(dataset) - 1][0], dataset[-1][0])
    assert len(dataset) == len(dataset.objects)
    for index in (len(dataset), -len(dataset) - 1):
        with pytest.raises(IndexError, match=f"expected a number below {len(dataset)}, found {index}"):
            dataset[index]


def test_many_samples_are_one_request(dataset, monkeypatch):
    requests = []
    take = dataset._reader.take
    monkeypatch.setattr(
        dataset,
        "_reader",
        type("Reader", (), {"take": lambda _, rows: requests.append(rows) or take(rows)})(),
    )
    samples = dataset.__getitems__([3, 1, 3])
    assert requests == [[3, 1, 3]]
    assert torch.equal(samples[0][0], samples[2][0]) and not torch.equal(samples[0][0], samples[1][0])
    assert len(list(samples)) == len(samples[0:3]) == 3


def test_the_default_collation_and_ours_give_the_same_values(dataset):
    default = list(DataLoader(dataset, batch_size=4))
    whole = list(DataLoader(dataset, batch_size=4, collate_fn=pt.collate))
    assert len(default) == len(whole) == -(-len(dataset) // 4)
    for (x, y), batch in zip(default, whole, strict=True):
        assert torch.equal(x, batch.x) and torch.equal(y, batch.y)


def test_collate_does_not_copy(dataset):
    samples = dataset.__getitems__([0, 1])
    assert pt.collate(samples).x.data_ptr() == samples[0][0].data_ptr()
    assert torch.equal(pt.collate([(torch.ones(2), 1)])[0], torch.ones(1, 2))


def test_without_labels_the_label_is_the_key(source, options):
    dataset = pt.MapDataset(source, PIPELINE, **{**options, "labels": None})
    assert dataset[2][1] == dataset.objects.key(2)
    dataset.close()


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_read_the_same_with_every_start_method(dataset, method):
    dataset[0]  # a reader is live when the workers start
    arguments = {"batch_size": 4, "collate_fn": pt.collate}
    expected = [samples_of(batch) for batch in DataLoader(dataset, **arguments)]
    loader = DataLoader(dataset, num_workers=2, multiprocessing_context=method, **arguments)
    assert [samples_of(batch) for batch in loader] == expected


def test_samplers_choose_the_samples(dataset):
    def read(sampler, data=dataset):
        batches = DataLoader(data, batch_size=4, sampler=sampler, collate_fn=pt.collate)
        return [index for batch in batches for index in batch.index.tolist()]

    count = len(dataset)
    assert read(SequentialSampler(dataset)) == list(range(count))
    weights = [float(index in (2, 5)) for index in range(count)]
    assert set(read(WeightedRandomSampler(weights, 16))) == {2, 5}
    ranks = [
        read(DistributedSampler(dataset, num_replicas=2, rank=rank, drop_last=True)) for rank in range(2)
    ]
    assert len(ranks[0]) == len(ranks[1]) == count // 2 and not set(ranks[0]) & set(ranks[1])
    subset = Subset(dataset, [7, 1, 4])
    assert read(SequentialSampler(subset), subset) == [7, 1, 4]
    assert sorted(read(RandomSampler(subset), subset)) == [1, 4, 7]


def test_a_batch_sampler_sends_one_request_per_batch(dataset):
    loader = DataLoader(
        dataset, batch_size=None, sampler=BatchSampler(SequentialSampler(dataset), 4, drop_last=True)
    )
    with pytest.raises(TypeError):
        next(iter(loader))  # indices of a batch are not an index
    loader = DataLoader(dataset, batch_sampler=BatchSampler(SequentialSampler(dataset), 4, drop_last=True))
    assert len(list(loader)) == len(dataset) // 4


def test_random_steps_draw_by_epoch(dataset):
    first = dataset[0][0]
    dataset.set_epoch(1)
    second = dataset[0][0]
    dataset.set_epoch(0)
    assert torch.equal(dataset[0][0], first) and not torch.equal(second, first)
