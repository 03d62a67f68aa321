"""States: where a reader goes on, in any world."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

import pytest

import store_double
from pushdown import Reader, Sampling, Store, TableReader
from pushdown.errors import CredentialsError, StateError
from readers import URL, indices, numbers, reader


def test_all_batches_are_a_complete_pass_even_if_nobody_asks_for_one_more() -> None:
    data = reader()
    for _ in zip(range(len(data)), data, strict=False):
        pass
    assert (data.state_dict()["epoch"], data.state_dict()["position"]) == (1, 0)
    iter(data)
    assert data.epoch == 1


def test_a_pass_that_was_left_early_starts_again_where_it_began() -> None:
    data = reader()
    data.load_state_dict({**data.state_dict(), "position": 8})
    batches = iter(data)
    first = numbers(next(batches).index)
    assert data.state_dict()["position"] == 12
    assert numbers(next(iter(data)).index) == first
    data.close()


def test_the_state_counts_the_batches_of_the_consumer() -> None:
    data = reader(sampling=Sampling(world=2, rank=0))
    assert data.state_dict()["position"] == 0
    batches = iter(data)
    assert data.state_dict()["position"] == 0
    next(batches)
    assert data.state_dict()["position"] == 8
    batches.close()
    assert data.state_dict()["position"] == 8


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 4, 7])
@pytest.mark.parametrize("batches", [0, 1, 2])
def test_a_state_loads_in_any_world_and_loses_nothing(world: int, batch_size: int, batches: int) -> None:
    whole = indices(reader())
    before = reader(sampling=Sampling(world=2, rank=1, tail="short"))
    consumed = iter(before)
    for _ in range(batches):
        next(consumed)
    state = json.loads(json.dumps(before.state_dict()))
    consumed.close()
    left: dict[int, int] = {}
    for rank in range(world):
        after = reader(sampling=Sampling(world=world, rank=rank, tail="short"), batch_size=batch_size)
        after.load_state_dict(state)
        left |= {
            p: i
            for batch in after
            for p, i in zip(numbers(batch.position), numbers(batch.index), strict=True)
        }
    assert [left[position] for position in sorted(left)] == whole[state["position"] :]


@pytest.mark.parametrize("tail", ["even", "drop", "pad"])
def test_all_ranks_have_the_same_state_after_each_batch(tail: Any) -> None:
    readers = [reader(sampling=Sampling(world=3, rank=rank, tail=tail), batch_size=2) for rank in range(3)]
    for _ in zip(*readers, strict=True):
        assert len({json.dumps(data.state_dict()) for data in readers}) == 1
    assert {data.state_dict()["epoch"] for data in readers} == {1}


def test_a_state_at_the_end_of_an_epoch_goes_on_with_the_next_one() -> None:
    data = reader(sampling=Sampling(world=3, rank=0))
    batches = iter(data)
    for _ in range(len(data)):
        next(batches)
    state = data.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    batches.close()
    other = reader()
    other.load_state_dict(state)
    assert (other.state_dict()["epoch"], other.state_dict()["position"]) == (1, 0)


def test_a_state_of_other_data_is_refused_and_names_both() -> None:
    data, other = reader(), Reader("s3://photos/train/cat/", "decode", seed=7)
    with pytest.raises(StateError) as raised:
        data.load_state_dict(other.state_dict())
    assert data.objects.digest in str(raised.value)
    assert other.objects.digest in str(raised.value)
    data.load_state_dict({**other.state_dict(), "position": 4}, strict=False)
    assert data.state_dict()["position"] == 4
    with pytest.raises(StateError, match="the seed 7, found 8"):
        data.load_state_dict(reader(seed=8).state_dict())
    with pytest.raises(StateError, match="the pipeline"):
        data.load_state_dict(Reader(URL, "encode", seed=7).state_dict())


def test_a_reader_pickles_in_4_kb_without_credentials(monkeypatch: pytest.MonkeyPatch, native: Any) -> None:
    native.buckets["photos"] = [f"train/{number:04}" for number in range(1000)]
    labels = {key: number for number, key in enumerate(native.buckets["photos"])}
    data = reader(labels=labels, store=Store(credentials=("access", "secret", None)))
    batches = iter(data)
    next(batches)
    pickled = pickle.dumps(data)
    batches.close()
    assert len(pickled) < 4096
    assert b"secret" not in pickled
    copy = pickle.loads(pickled)
    assert copy.state_dict() == data.state_dict()
    batch = next(iter(copy))
    assert numbers(batch.y) == numbers(batch.index)

    def refuse(*_: Any, **__: Any) -> None:
        raise native.NativeError("credentials", "no credentials", None)

    monkeypatch.setattr(sys.modules["pushdown._native"], "Reader", refuse)
    with pytest.raises(CredentialsError) as raised:
        next(iter(copy))
    assert "not pickled" in raised.value.__notes__[0]


@pytest.mark.parametrize("kind", ["Reader", "TableReader"])
def test_the_next_epoch_begins_with_what_the_planner_knows(native: Any, kind: str) -> None:
    data: Any = reader() if kind == "Reader" else TableReader("s3://photos/train/", "select", sampling=Sampling(rank=0, world=1))
    made: list[Any] = []
    of_kind = native.Reader if kind == "Reader" else store_double.TableReader
    original = of_kind.__init__

    def record(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_kind, "__init__", record)
        for _ in range(2):
            assert sum(1 for _ in data) > 0
    assert [each.known for each in made] == [None, "observed in epoch 0"]
    if kind == "TableReader":
        assert [each.known_footers for each in made] == [None, "footers"]
        assert (data.stats.bottleneck, data.plan.partition(",")[0]) == ("the link", "plan: 9 rows/s (plain reading: 4)")
        assert pickle.loads(pickle.dumps(data))._kind._footers is None


def test_a_pass_of_rows_that_failed_leaves_no_footers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """An object may have been replaced since they were read."""
    rows = TableReader("s3://photos/train/", "select", sampling=Sampling(rank=0, world=1, tail="drop"), batch_size=64)
    with caplog.at_level("INFO", "pushdown"):
        next(iter(rows))
    assert [record.message for record in caplog.records] == ['epoch 0: tail="drop" drops 8 samples']
    assert rows._kind._footers == "footers"  # type: ignore[attr-defined]

    def replaced(_: object) -> None:
        raise ValueError("s3://photos/train/0.parquet was replaced")

    monkeypatch.setattr(store_double.TableReader, "next", replaced)
    with pytest.raises(ValueError, match="was replaced"):
        next(iter(rows))
    assert rows._kind._footers is None  # type: ignore[attr-defined]
