"""The order of samples and their augmented pixels do not depend on world, workers, batch size or where a run was resumed."""

from __future__ import annotations

import json
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import pushdown
from pushdown import Sampling
from samples import PIPELINE, Sample, samples, samples_of


@pytest.fixture(scope="module")
def expected(options: dict[str, Any], source: str) -> list[Sample]:
    with pushdown.Reader(source, PIPELINE, **{**options, "sampling": Sampling(tail="short")}) as reader:
        return samples(reader)


def world_order(readers: list[list[pushdown.Batch]]) -> list[Sample]:
    """The samples that all ranks read, by position."""
    return sorted(sample for batches in readers for sample in samples(batches))


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_any_world_reads_the_same_samples(
    options: dict[str, Any], source: str, expected: list[Sample], ranks: int, batch_size: int
) -> None:
    options = {**options, "batch_size": batch_size}
    read = []
    for rank in range(ranks):
        sampling = Sampling(rank=rank, world=ranks, tail="short")
        with pushdown.Reader(source, PIPELINE, **options, sampling=sampling) as reader:
            read.append(list(reader))
    assert world_order(read) == expected


@pytest.mark.parametrize("tail", ["even", "drop", "pad"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_have_equally_many_batches(
    options: dict[str, Any], source: str, expected: list[Sample], ranks: int, tail: Any
) -> None:
    lengths, read = set(), []
    for rank in range(ranks):
        sampling = Sampling(rank=rank, world=ranks, tail=tail)
        with pushdown.Reader(source, PIPELINE, **options, sampling=sampling) as reader:
            batches = list(reader)
            assert len(batches) == len(reader)
            lengths.add(len(batches))
            dropped, repeated = reader.tail_counts
            read.append(batches)
    assert len(lengths) == 1
    found = world_order(read)
    assert found == expected[: len(expected) - dropped]
    rows = sum(len(batch.keys) for batches in read for batch in batches)
    assert rows == len(found) + repeated


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_share_the_batches(options: dict[str, Any], source: str, expected: list[Sample], workers: int) -> None:
    options = {**options, "sampling": Sampling(tail="short")}
    batches: dict[int, pushdown.Batch] = {}
    for worker in range(workers):
        with pushdown.Reader(source, PIPELINE, **options) as reader:
            batches |= {batch.number: batch for batch in reader.iterate(pushdown.Worker(worker, workers))}
    assert samples(batches[number] for number in sorted(batches)) == expected


@pytest.mark.parametrize("seed", range(6))
def test_a_run_resumes_in_any_world(
    options: dict[str, Any], source: str, expected: list[Sample], seed: int
) -> None:
    """A few changes of world and batch size at random batches: every sample once, in order, with the same pixels."""
    draw = random.Random(seed)
    state: dict[str, Any] | None = None
    read: list[Sample] = []
    while True:
        world, batch_size = draw.choice([1, 2, 3, 8]), draw.choice([1, 2, 3, 5])
        stop = draw.randint(1, 3)
        states = []
        for rank in range(world):
            sampling = Sampling(tail="short", rank=rank, world=world)
            settings = {**options, "batch_size": batch_size, "sampling": sampling}
            with pushdown.Reader(source, PIPELINE, **settings) as reader:
                if state is not None:
                    reader.load_state_dict(json.loads(json.dumps(state)))
                batches = iter(reader)
                for _ in range(stop):
                    batch = next(batches, None)
                    if batch is None:
                        break
                    read += samples_of(batch)
                states.append(reader.state_dict())
        assert all(other == states[0] for other in states), "the state is the same on every rank"
        state = states[0]
        assert len(json.dumps(state)) < 300
        if state["epoch"] > 0:
            break
    assert sorted(read) == expected


def test_the_next_epoch_has_another_order(options: dict[str, Any], source: str, expected: list[Sample]) -> None:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        first = samples(reader)
        second = samples(reader)
        assert reader.epoch == 2
        reader.set_epoch(0)
        again = samples(reader)
    assert first == again == expected
    assert sorted(sample.index for sample in second) == sorted(sample.index for sample in first)
    assert [sample.index for sample in second] != [sample.index for sample in first]
    assert {sample.pixels for sample in second} != {sample.pixels for sample in first}


def read_all(reader: pushdown.Reader, worker: int) -> list[Sample]:
    with reader:
        return [sample for batch in reader.iterate(pushdown.Worker(worker, 2)) for sample in samples_of(batch)]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_readers_work_in_other_processes(
    options: dict[str, Any], source: str, expected: list[Sample], method: str
) -> None:
    reader = pushdown.Reader(source, PIPELINE, **{**options, "sampling": Sampling(tail="short")})
    assert len(pickle.dumps(reader)) < 4096
    assert b"pushdowntestsecret" not in pickle.dumps(reader)
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as processes:
        parts = [processes.submit(read_all, reader, worker) for worker in range(2)]
        found = sorted(sample for part in parts for sample in part.result(timeout=60))
    assert found == expected


def test_another_data_set_or_pipeline_is_refused(options: dict[str, Any], source: str) -> None:
    reader = pushdown.Reader(source, PIPELINE, **options)
    state = reader.state_dict()
    other = pushdown.Reader(f"{source}exif/", PIPELINE, **{**options, "labels": None})
    with pytest.raises(pushdown.StateError, match=f"{other.objects.digest[:8]}"):
        other.load_state_dict(state)
    other = pushdown.Reader(source, f"{PIPELINE} | normalize(imagenet)", **options)
    with pytest.raises(pushdown.StateError, match="pipeline"):
        other.load_state_dict(state)
    other.load_state_dict(state, strict=False)


def test_take_reads_samples_by_index(options: dict[str, Any], source: str, expected: list[Sample]) -> None:
    pixels = {sample.index: sample.pixels for sample in expected}
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        batch = reader.take([3, 1, 3])
        assert [(sample.index, sample.pixels) for sample in samples_of(batch)] == [(n, pixels[n]) for n in (3, 1, 3)]
        assert batch.keys == [reader.objects.key(n) for n in (3, 1, 3)]
        with pytest.raises(pushdown.ConfigError, match="expected less than"):
            reader.take([len(reader.objects)])


def test_labels_by_folder(options: dict[str, Any], source: str) -> None:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        assert reader.classes == ["exif", "other"]
        for batch in reader:
            assert batch.y.dtype == "i64"
            for key, label in zip(batch.keys, np.asarray(batch.y), strict=True):
                assert key.split("/")[1] == reader.classes[label]
