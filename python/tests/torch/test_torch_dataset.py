"""`pushdown.torch.Dataset`: the same order for every number of workers and start method."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader

import pushdown
import pushdown.torch as pt
from torch_samples import ABOUT_WORKERS, PIPELINE, samples

pytestmark = pytest.mark.filterwarnings("error", *ABOUT_WORKERS)


@pytest.fixture(scope="module")
def dataset(source, options):
    return pt.Dataset(source, PIPELINE, **options)


@pytest.fixture(autouse=True)
def first_epoch(request):
    if "dataset" in request.fixturenames:
        request.getfixturevalue("dataset").set_epoch(0)


@pytest.fixture(scope="module")
def expected(source, options):
    """The samples of epochs 0 and 1."""
    with pt.Loader(source, PIPELINE, **options) as loader:
        first = samples(loader)
        return first, samples(loader)


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
def test_the_order_is_the_same_for_every_number_of_workers(dataset, expected, workers):
    loader = DataLoader(dataset, batch_size=None, num_workers=workers)
    assert len(loader) == len(dataset)
    assert samples(loader) == expected[0]
    dataset.set_epoch(1)
    assert samples(loader) == expected[1]


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_every_start_method_works(dataset, expected, method):
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=method)
    assert samples(loader) == expected[0]


def test_persistent_workers_go_on_to_the_next_epoch(dataset, expected):
    loader = DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    assert samples(loader) == expected[0]
    assert samples(loader) == expected[1]


def test_persistent_workers_go_on_together_after_a_loop_that_ended_early(dataset, expected):
    loader = DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    assert samples(itertools.islice(loader, 1)) == expected[0][:4]
    assert samples(loader) == expected[1]


def test_a_dataset_pickles_small_and_without_credentials(dataset, monkeypatch):
    text = pickle.dumps(dataset)
    assert len(text) < 4096
    assert os.environ.get("AWS_SECRET_ACCESS_KEY", "no secret").encode() not in text


def test_a_dropped_iterator_leaves_no_threads(source, options):
    dataset = pt.Dataset(source, PIPELINE, **options)
    samples(dataset)
    gc.collect()
    before = len(os.listdir("/proc/self/task"))
    iterator = iter(DataLoader(dataset, batch_size=None))
    next(iterator)
    assert len(os.listdir("/proc/self/task")) > before
    del iterator
    gc.collect()
    assert len(os.listdir("/proc/self/task")) == before


def test_workers_start_while_the_parent_reads(dataset, source, options, expected):
    with pt.Loader(source, PIPELINE, **options) as parent:
        batches = iter(parent)
        first = [next(batches)]
        assert (
            samples(DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork"))
            == expected[0]
        )
        assert samples(itertools.chain(first, batches)) == expected[0]


def test_an_iterator_that_was_live_at_a_fork_raises_in_the_child(source, options):
    with pt.Loader(source, PIPELINE, **options) as loader:
        batches = iter(loader)
        next(batches)
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            name = "nothing"
            try:
                next(batches)
            except BaseException as error:
                name = type(error).__name__
            os.write(sender, name.encode())
            os._exit(0)
        os.close(sender)
        with os.fdopen(receiver) as answer:
            assert answer.read() == pushdown.errors.ForkedReaderError.__name__
        os.waitpid(child, 0)
        assert len(next(batches)) == 4


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batches", [0, 3])
def test_a_stateful_data_loader_resumes(source, options, expected, workers, batches):
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

    def make():
        return stateful.StatefulDataLoader(
            pt.Dataset(source, PIPELINE, **options), batch_size=None, num_workers=workers
        )

    loader = make()
    iterator = iter(loader)
    seen = [next(iterator) for _ in range(batches)]
    state = loader.state_dict()
    resumed = make()
    resumed.load_state_dict(state)
    assert samples(seen) + samples(resumed) == expected[0]


def test_a_state_of_the_loader_resumes_a_dataset_with_workers(source, options, expected):
    with pt.Loader(source, PIPELINE, **options) as loader:
        seen = samples(itertools.islice(loader, 3))
        state = loader.state_dict()
    dataset = pt.Dataset(source, PIPELINE, **options)
    dataset.load_state_dict(state)
    assert seen + samples(DataLoader(dataset, batch_size=None, num_workers=2)) == expected[0]


def test_the_state_of_another_number_of_workers_is_refused(dataset):
    iterator = iter(dataset)
    state = {**dataset.state_dict(), "batches": 2, "workers": 3}
    with pytest.raises(pushdown.ConfigError, match="expected a state of 1 workers, found one of 3"):
        iterator.load_state_dict(state)


@pytest.mark.parametrize("pipeline, count", [("PIPELINE", 1), ("pushdown.Pipeline(PIPELINE).then(abs)", 0)])
def test_workers_without_functions_cause_one_warning(source, options, pipeline, count):
    script = f"""
        import pushdown, pushdown.torch as pt
        from pushdown import Store
        from torch.utils.data import DataLoader
        PIPELINE = {PIPELINE!r}
        dataset = pt.Dataset({source!r}, {pipeline}, **{options!r})
        iterator = iter(DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork"))
        try:
            next(iterator)
        except TypeError:
            pass  # abs() of a value that is no number
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("num_workers > 0 only costs memory") == count
