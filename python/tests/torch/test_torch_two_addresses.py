"""Loader and data sets with a gateway beside the store: tensors as with one address, in worker processes as well."""

from __future__ import annotations

import itertools
import json
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader

import pushdown.torch as pt
from pushdown import Sampling
from torch_samples import ABOUT_WORKERS, PIPELINE, samples, samples_of

pytestmark = pytest.mark.filterwarnings("error", *ABOUT_WORKERS)


@pytest.fixture(scope="module")
def expected(source, options):
    """With one address."""
    with pt.Loader(source, PIPELINE, **options) as loader:
        return samples(loader)


@pytest.mark.parametrize("mode", ["pushdown", "auto", "plain"])
def test_a_loader_has_the_same_batches(source, both, gateway, expected, mode):
    with pt.Loader(source, PIPELINE, **both, mode=mode) as loader:
        assert samples(loader) == expected
        assert loader.stats.gateway == gateway
        assert loader.stats.gateway_bytes_down > 0 or mode != "pushdown"


def test_a_loader_takes_the_gateway_of_the_environment(source, both, gateway, expected, monkeypatch):
    monkeypatch.setenv("PUSHDOWN_GATEWAY_URL", gateway)
    for given, found in ((None, gateway), ("", None)):
        with pt.Loader(source, PIPELINE, **{**both, "gateway": given}) as loader:
            assert samples(loader) == expected
            assert loader.stats.gateway == found


def test_a_pickled_loader_keeps_both_addresses(source, both, gateway, expected):
    loader = pt.Loader(source, PIPELINE, **both, mode="pushdown")
    with pickle.loads(pickle.dumps(loader)) as copied:
        assert samples(copied) == expected
        assert copied.stats.gateway == gateway


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_worker_processes_keep_both_addresses(source, both, expected, method):
    """In this mode every sample needs the gateway: no other address computes."""
    dataset = pt.Dataset(source, PIPELINE, **both, mode="pushdown")
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=method)
    assert samples(loader) == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_map_dataset_keeps_both_addresses_in_workers(source, both, options, method):
    def read(settings):
        with pt.Loader(source, PIPELINE, **settings) as loader:
            dataset = pt.MapDataset(loader.objects, PIPELINE, **settings)
        workers = {"num_workers": 2, "multiprocessing_context": method}
        batches = [samples_of(batch) for batch in DataLoader(dataset, batch_size=4, collate_fn=pt.collate, **workers)]
        dataset.close()
        return batches

    assert read({**both, "mode": "pushdown"}) == read(options)


def test_a_state_goes_on_in_another_world_with_another_address(source, both, options, expected):
    with pt.Loader(source, PIPELINE, **options) as loader:
        seen = samples(itertools.islice(loader, 2))
        saved = json.dumps(loader.state_dict())
    rest = []
    for rank in range(2):
        sampling = Sampling(rank=rank, world=2, tail="short")
        with pt.Loader(source, PIPELINE, **both, sampling=sampling) as loader:
            loader.load_state_dict(json.loads(saved))
            rest += samples(loader)
    assert seen + sorted(rest) == expected
