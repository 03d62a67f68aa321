"""The reader: order, epochs, workers, labels, functions, closing."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from pushdown import Pipeline, Plan, Reader, Sampling, Sidecar, Worker, _rank
from pushdown.errors import ClosedError
from readers import URL, indices, numbers, reader


def test_batches_have_values_labels_and_places() -> None:
    data = reader(labels="dir", seed=None)
    batch = next(iter(data))
    assert data.classes == ["cat", "dog"]
    assert (len(batch), batch.x.shape, list(batch.x[:4])) == (4, (4, 2), [0, 0, 1, 1])
    assert (numbers(batch.y), numbers(batch.position), numbers(batch.valid)) == (
        [0] * 4,
        [0, 1, 2, 3],
        [1] * 4,
    )
    assert batch.keys[1] == "train/cat/01.jpg"
    assert batch.x is batch.x
    data.close()


def test_the_length_is_that_of_a_whole_epoch_and_starts_nothing(native: Any) -> None:
    data = reader(sampling=Sampling(rank=1, world=3))
    assert (len(data), data.samples, data.tail_counts) == (2, 6, (2, 0))
    assert native.opened == []


def test_iterating_starts_the_native_reader_with_the_first_batch(native: Any) -> None:
    batches = iter(reader())
    assert native.live == []
    next(batches)
    assert len(native.live) == 1
    batches.close()
    assert native.live == []


def test_each_complete_pass_goes_to_the_next_epoch(native: Any) -> None:
    data = reader()
    first, second = indices(data), indices(data)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert [spec["epoch"] for spec in native.opened] == [0, 1]
    data.set_epoch(0)
    assert indices(data) == first


def test_the_epochs_left_are_those_after_the_current_one(native: Any) -> None:
    data = reader(epoch=4, plan=Plan(epochs=3))
    for _ in range(4):
        indices(data)
    assert [spec["epochs"] for spec in native.opened] == [3, 2, 1, 1]
    data.set_epoch(0)
    indices(data)
    assert native.opened[-1]["epochs"] == 3


def test_a_second_iteration_closes_the_first(native: Any) -> None:
    data = reader()
    first = iter(data)
    next(first)
    second = iter(data)
    next(second)
    assert len(native.live) == 1
    with pytest.raises(ClosedError):
        next(first)
    second.close()


def test_an_abandoned_iterator_leaves_nothing_open(native: Any) -> None:
    data = reader()
    batches = iter(data)
    next(batches)
    del batches
    assert native.live == []


def test_workers_share_the_batches_of_a_rank() -> None:
    whole = [numbers(batch.index) for batch in reader()]
    workers = [
        [numbers(batch.index) for batch in reader().iterate(Worker(index, 2))] for index in range(2)
    ]
    assert workers == [whole[0::2], whole[1::2]]
    data = reader()
    batches = data.iterate(Worker(0, 2))
    next(batches)
    assert data.state_dict()["position"] == 0
    batches.close()
    assert [numbers(batch.index) for batch in reader().iterate(Worker(1, 2), start_batch=2)] == whole[3::2]


def test_functions_run_in_threads_and_keep_the_order() -> None:
    threads = set()

    def double(value: Any) -> Any:
        threads.add(threading.current_thread().name)
        return 2 * value[0]

    data = Reader(URL, Pipeline("decode").then(double).then(int), batch_size=4, seed=7)
    plain = indices(reader())
    assert [value for batch in data for value in batch.x] == [2 * index for index in plain]
    assert threads
    assert all(name.startswith("pushdown-then") for name in threads)
    assert not any(thread.name.startswith("pushdown") for thread in threading.enumerate())


def test_functions_of_two_batches_run_ahead_of_the_consumer(native: Any) -> None:
    batches = iter(Reader(URL, Pipeline("decode").then(len), batch_size=2))
    taken = []
    for _ in range(4):
        next(batches)
        taken.append(native.live[0].next_batch)
    # The first batch does not wait for others.
    assert taken == [1, 3, 5, 6]
    batches.close()


def test_take_keeps_its_native_reader_until_close(native: Any) -> None:
    with reader(labels="dir") as data:
        batch = data.take([3, 1, 3])
        assert (numbers(batch.index), numbers(batch.position)) == ([3, 1, 3], [0, 1, 2])
        data.set_epoch(5)
        data.take([0])
        assert native.live[0].epoch == 5
        assert len(native.opened) == len(native.live) == 1
    assert native.live == []


def test_sidecars_are_read_with_each_batch_and_leave_nothing_open(native: Any) -> None:
    data = reader(labels=Sidecar(".cls", parse="text"), seed=None)
    batches = iter(data)
    assert next(batches).y == [f"train/cat/0{number}.cls" for number in range(4)]
    assert len(native.live) == 2
    for _ in batches:
        pass
    assert native.live == []


def test_the_rank_is_looked_up_at_each_iter_and_travels_from_torch(
    monkeypatch: pytest.MonkeyPatch, native: Any
) -> None:
    data = reader()
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert (len(list(data)), len(data)) == (3, 3)
    monkeypatch.setattr(_rank, "rank_of_torch", lambda: _rank.Rank(2, 4))
    copy = pickle.loads(pickle.dumps(data))
    monkeypatch.setattr(_rank, "rank_of_torch", lambda: None)
    list(copy)
    places = [(spec["rank"], spec["world"]) for spec in native.opened]
    assert places == [(1, 2), (2, 4)]


def test_a_tail_that_drops_samples_says_how_many(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "pushdown"):
        iter(reader(sampling=Sampling(world=3, rank=0)))
    assert [record.message for record in caplog.records] == ['epoch 0: tail="even" drops 2 of 20 samples']


def test_stats_outlive_the_iteration() -> None:
    data = reader()
    assert data.stats.samples == 0
    for _ in data:
        pass
    assert data.stats.samples == 20
    assert data.stats.bottleneck == "the link"
    assert data.plan is not None
    assert data.mode == "auto"
