"""Shards without an index: settings, batches, states of one reader and of all."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import pushdown
from pushdown import Column, Reader, Sampling, Worker
from pushdown.errors import ConfigError, SampleError, StateError
from readers import numbers

PATTERN = "s3://photos/train-{0..4}.tar"


@pytest.fixture(autouse=True)
def _shards(native: Any) -> None:
    """Five shards of one to five samples: `N.jpg` with its number in `cls`."""
    for shard in range(5):
        members: dict[str, bytes] = {}
        for number in range(10 * shard, 11 * shard + 1):
            members |= {f"{number}.jpg": b"photo", f"{number}.cls": f"{number}\n".encode()}
        native.shards[f"train-{shard}.tar"] = members
    native.buckets["photos"] = [*native.shards, "train-readme.txt"]


def reader(source: Any = PATTERN, **options: Any) -> Reader:
    return Reader(source, "decode", **{"batch_size": 2, "labels": Column("cls"), **options})


def labels(batches: Any) -> list[int]:
    return [label for batch in batches for label in numbers(batch.y)]


ALL = [10 * shard + n for shard in range(5) for n in range(shard + 1)]


def test_a_reader_has_batches_with_columns_and_labels(native: Any) -> None:
    data = reader(columns={"cls": "text"}, seed=7, sampling=Sampling(buffer=20))
    batches = list(data)
    assert labels(batches) == ALL
    assert [text for batch in batches for text in batch.columns["cls"]] == [f"{n}\n" for n in ALL]
    assert [member for batch in batches for member in batch.members] == [f"{n}.jpg" for n in ALL]
    assert [n for batch in batches for n in numbers(batch.index)] == [n // 10 for n in ALL]
    assert batches[0].keys == ["train-0.tar", "train-1.tar"]
    assert [batch.number for batch in batches] == list(range(8))
    assert (data.epoch, data.stats.samples, data.classes, data.plan) == (1, 15, [], None)
    spec = native.opened[-1]
    assert (spec["order"], spec["tail"]) == ({"shards": {"buffer": 20}}, "short")
    assert spec["columns"] == {"value": None, "further": ["cls"]}
    assert repr(data) == f"Reader(5 shards of s3://photos, {data.pipeline!r})"


def test_sources_are_those_of_an_index() -> None:
    keys = [f"train-{n}.tar" for n in range(5)]
    by_shards = Sampling(order="shards")
    assert reader("s3://photos/", sampling=by_shards).objects.keys() == keys, "all shards under a prefix, and no other objects"
    assert reader(["s3://photos/train-4.tar", "s3://photos/train-{0..1}.tar"]).objects.keys() == [
        keys[4],
        *keys[:2],
    ]
    for source, found in (
        ("s3://photos/train-readme.txt", "cannot stream train-readme"),
        ("s3://photos/none/", "no shards under"),
        (["s3://photos/train-0.tar", "s3://other/train-0.tar"], "one reader per bucket"),
    ):
        with pytest.raises(ConfigError, match=found):
            reader(source, sampling=by_shards)


def test_nobody_knows_the_number_of_samples() -> None:
    data = reader()
    with pytest.raises(TypeError, match=r"no len\(\): the number of samples"):
        len(data)
    with pytest.raises(TypeError, match="no number of samples"):
        _ = data.samples
    with pytest.raises(ConfigError, match="a whole number, since the number of samples is unknown"):
        reader(on_error="skip", max_errors=0.1)
    with pytest.raises(ConfigError, match="in batches only"):
        data.take([0])
    for other in ("dir", [1], len):
        with pytest.raises(ConfigError, match=r"labels=.* does not apply to shards without an index: expected a pushdown\.Column; .* need an index"):
            reader(labels=other)


def test_other_orders_name_the_index() -> None:
    with pytest.raises(ConfigError, match=r'order="global" does not apply .*: expected "shards"; .* run `pushdown index`, and pass `index`'):
        reader(sampling=Sampling(order="global"))
    with pytest.raises(ConfigError, match=r"run `pushdown index 's3://photos/train-.* and pass index="):
        pushdown.explain(PATTERN, "decode")
    objects = pushdown.list("s3://photos/train-0")
    with pytest.raises(ConfigError, match=r'order="shards" does not apply to whole objects: expected "global"; shards without an index are named by URLs'):
        Reader(objects, "decode", sampling=Sampling(order="shards"))


def test_only_its_workers_share_the_shards_of_a_rank() -> None:
    with pytest.raises(ConfigError, match="start_batch=2 does not apply to shards without an index: expected 0, the default"):
        reader().iterate(start_batch=2)


def test_skip_leaves_out_a_batch_without_values(native: Any) -> None:
    native.shards["bad.tar"] = native.shards["train-1.tar"]
    source = ["s3://photos/train-1.tar", "s3://photos/bad.tar", "s3://photos/train-2.tar"]
    assert labels(reader(source, on_error="skip")) == [10, 11, 20, 21, 22]
    with pytest.raises(SampleError, match=r"bad\.tar"):
        list(reader(source, on_error="skip", max_errors=1))
    batches = list(reader(source, on_error="report"))
    assert [len(batch.errors) for batch in batches] == [0, 2, 0, 0]


def test_a_bad_label_names_its_member(native: Any) -> None:
    native.shards["train-0.tar"] = {"a.b/1.jpg": b"", "a.b/1.cls": b"dog", "2.jpg": b""}
    (batch,) = reader("s3://photos/train-0.tar", on_error="report")
    assert [error.message for error in batch.errors] == [
        "expected int in `a.b/1.cls`, found 'dog'",
        "expected int in the column `cls`, found no member",
    ]


@pytest.mark.parametrize("batches", range(9))
def test_a_state_goes_on_exactly(batches: int) -> None:
    data = reader(seed=7)
    consumed = iter(data)
    seen = labels(next(consumed) for _ in range(batches))
    state = json.loads(json.dumps(data.state_dict()))
    copy = pickle.loads(pickle.dumps(data))
    consumed.close()
    assert copy.state_dict() == data.state_dict() == state
    is_over = len(seen) == len(ALL)
    rest = ALL if is_over else ALL[len(seen) :]
    assert labels(copy) == rest
    resumed = reader(seed=7)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state, "nothing was read since"
    assert labels(resumed) == rest
    assert (resumed.epoch, labels(resumed)) == (1 + is_over, ALL)


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_the_state_after_the_last_batch_begins_the_next_epoch(batch_size: int) -> None:
    data = reader(batch_size=batch_size)
    consumed = iter(data)
    seen: list[int] = []
    while len(seen) < len(ALL):
        assert data.state_dict()["epoch"] == 0
        seen += labels([next(consumed)])
    state = json.loads(json.dumps(data.state_dict()))
    assert state["epoch"] == 1
    assert state["ended"]["read"] == len(ALL)
    copy = pickle.loads(pickle.dumps(data))
    assert labels(consumed) == []
    assert (data.epoch, data.state_dict()) == (1, state), "as after the end"
    for other in (reader(batch_size=batch_size), copy):
        other.load_state_dict(state)
        assert other.state_dict() == state
        assert (labels(other), other.epoch) == (ALL, 2)


def test_functions_do_not_run_ahead_of_the_state() -> None:
    data = Reader(PATTERN, pushdown.Pipeline("decode").then(lambda value: value), batch_size=1)
    for number, _ in enumerate(data, 1):
        read = data.state_dict()["shards_read"]["read"]
        assert read == number
        if number == 6:
            break
    data.close()


@pytest.mark.parametrize("stops", [(0, 0), (1, 0), (0, 3), (2, 1), (9, 1), (1, 9), (9, 9)])
@pytest.mark.parametrize("world", [1, 3])
def test_states_of_all_readers_go_on_in_another_world(stops: tuple[int, int], world: int) -> None:
    seen, states = [], []
    for rank, stop in enumerate(stops):
        with reader(sampling=Sampling(rank=rank, world=2)) as data:
            batches = iter(data)
            # A reader that asks for one batch more sees the end of the epoch.
            seen += labels(batch for _, batch in zip(range(stop), batches, strict=False))
            states.append(json.loads(json.dumps(data.state_dict())))
    is_over = all(state["epoch"] == 1 for state in states)
    assert is_over == (stops == (9, 9))
    rest = []
    for rank in range(world):
        with reader(sampling=Sampling(rank=rank, world=world), batch_size=3) as data:
            data.load_state_dict(states)
            assert data.epoch == int(is_over)
            rest += labels(data)
    assert sorted(rest if is_over else seen + rest) == ALL
    with reader(sampling=Sampling(rank=1, world=2)) as data:
        data.load_state_dict(states[1])
        alone = labels(data)
        data.load_state_dict(states)
        assert labels(data) == alone, "its own state is enough"


def test_states_that_do_not_fit_are_refused(native: Any) -> None:
    data = reader(seed=7)
    state = data.state_dict()
    for options, found in (
        ({"seed": 8}, "the seed 8, found 7"),
        ({"source": "s3://photos/train-{0..3}.tar"}, "the data set"),
        ({"columns": ["txt"]}, "the columns images and txt, cls, found images and cls"),
    ):
        other = reader(**{"seed": 7, **options})
        with pytest.raises(StateError, match=found):
            other.load_state_dict(state)
        other.load_state_dict(state, strict=False)
    for states, found in (
        ([], "at least one reader"),
        ([{**state, "shards_read": 3}], "is it the state of a reader of shards without an index"),
        ({**state, "version": 2}, "use the release"),
    ):
        with pytest.raises(StateError, match=found):
            data.load_state_dict(states)  # type: ignore[arg-type]
    one = reader(sampling=Sampling(rank=0, world=2), seed=7)
    one.load_state_dict(reader(sampling=Sampling(rank=1, world=2), seed=7).state_dict())
    with pytest.raises(ConfigError, match="a state of 2 readers is missing"):
        iter(one)
    ahead = {**reader(sampling=Sampling(rank=1, world=2), seed=7).state_dict(), "epoch": 2}
    data.load_state_dict([reader(sampling=Sampling(rank=0, world=2), seed=7).state_dict(), ahead])
    with pytest.raises(StateError, match="states of the epoch 0, found 2"):
        iter(data)


def test_workers_have_states_of_their_own() -> None:
    readers = [reader() for _ in range(2)]
    parts = [labels(data.iterate(Worker(index, 2))) for index, data in enumerate(readers)]
    assert sorted(parts[0] + parts[1]) == ALL
    assert parts[0] == [0, 20, 21, 22, 40, 41, 42, 43, 44]
    states = [data.state_dict() for data in readers]
    assert [state["epoch"] for state in states] == [1, 1]
    assert [state["shards_read"]["place"]["turn"] for state in states] == [0, 1]


def test_set_epoch_and_a_pass_that_was_left_early_begin_again() -> None:
    data = reader(epoch=3)
    for _ in range(2):
        assert labels([next(iter(data))]) == [0, 10]
    data.set_epoch(5)
    assert (data.state_dict()["epoch"], labels(data), data.epoch) == (5, ALL, 6)
    assert data.state_dict()["ended"]["read"] == len(ALL)
    data.set_epoch(0)
    assert "ended" not in data.state_dict()
