"""Samples in shards: the index, columns of samples, labels in columns, the order of shards."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import pushdown
from pushdown import Column, Reader, Sampling, ShardIndex
from pushdown._sample_columns import split_columns
from pushdown._settings import SourceKind
from pushdown._spec import ReaderSpec
from pushdown.errors import ConfigError, RefusedError, SampleError, StateError
from pushdown.options import Options
from readers import indices, numbers

PATTERN = "s3://photos/train-{0..2}.tar"


@pytest.fixture(autouse=True)
def _shards(native: Any) -> None:
    """Three shards of four samples: `cat/N.jpg` with its number in `cls`, and a class and a box in `json`."""
    for shard in range(3):
        members: dict[str, bytes] = {}
        for number in range(4 * shard, 4 * shard + 4):
            name = ("cat", "dog")[number % 2]
            members |= {
                f"{name}/{number}.jpg": b"photo",
                f"{name}/{number}.cls": f"{number}\n".encode(),
                f"{name}/{number}.json": json.dumps({"name": name, "box": {"left": number}}).encode(),
            }
        native.shards[f"train-{shard}.tar"] = members
    native.buckets["photos"] = [*native.shards, "train-readme.txt"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A saved index of the shards."""
    pushdown.index(PATTERN, path=tmp_path / "train.parquet")
    return tmp_path / "train.parquet"


def reader(path: Path, **options: Any) -> Reader:
    return Reader(PATTERN, "decode", **{"index": path, "batch_size": 4, **options})


def test_an_index_is_saved_and_loaded(path: Path) -> None:
    index = ShardIndex.load(path)
    assert (len(index), index.bucket) == (36, "photos")
    assert index.shards == ["train-0.tar", "train-1.tar", "train-2.tar"]
    assert len(index.members) == 36
    assert repr(index) == "ShardIndex(36 members of 3 shards of s3://photos)"
    assert pushdown.index("s3://photos/").shards == index.shards, (
        "all shards under a prefix, and no other objects"
    )
    assert pushdown.index(["s3://photos/train-2.tar", "s3://photos/train-0.tar"]).shards == [
        "train-2.tar",
        "train-0.tar",
    ]


def test_get_of_a_member_passes_the_index(path: Path) -> None:
    url = "s3://photos/train-0.tar"
    assert pushdown.get(url, member="a.jpg") == b"train-0.tar a.jpg"
    for index in (path, str(path), ShardIndex.load(path)):
        assert pushdown.get(url, member="a.jpg", index=index) == b"train-0.tar a.jpg of 36"
        assert pushdown.get(url, "decode", member="a.jpg", index=index) == b"decode(train-0.tar a.jpg of 36)"
    with pytest.raises(ConfigError, match="invalid index: expected none without a member"):
        pushdown.get(url, index=path)


def test_an_index_of_some_shards(path: Path) -> None:
    index = ShardIndex.load(path)
    assert index.select("s3://photos/train-{1..2}.tar").shards == ["train-1.tar", "train-2.tar"]
    assert index.select(["s3://photos/train-2.tar", "s3://photos/train-0.tar"]).shards == [
        "train-2.tar",
        "train-0.tar",
    ]
    assert index.select("s3://photos/").shards == index.shards
    with pytest.raises(ConfigError, match=r"no members of train-3\.tar"):
        index.select("s3://photos/train-{2..3}.tar")
    with pytest.raises(ConfigError, match="shards of the bucket `photos`"):
        index.select("s3://other/train-0.tar")


def test_indexing_fails_by_name(tmp_path: Path, native: Any) -> None:
    with pytest.raises(RefusedError, match=r"train-3\.tar"):
        pushdown.index("s3://photos/train-{0..9}.tar")
    with pytest.raises(ConfigError, match="expected an existing folder"):
        pushdown.index(PATTERN, path=tmp_path / "none" / "train.parquet")
    with pytest.raises(ConfigError, match="invalid braces"):
        pushdown.index("s3://photos/train-{0,1}.tar")
    with pytest.raises(ConfigError, match="no shards under s3://photos/other/"):
        pushdown.index("s3://photos/other/")
    with pytest.raises(ConfigError, match="cannot load the index"):
        ShardIndex.load(tmp_path / "missing")


def test_a_list_of_shards_has_samples_and_columns(path: Path) -> None:
    by_pattern = pushdown.list(PATTERN, columns=["cls"])
    assert (len(by_pattern), by_pattern.columns, by_pattern.member(1)) == (12, ["cls"], "dog/1.jpg")
    for source in (PATTERN, "s3://photos/", ["s3://photos/train-{0..1}.tar", "s3://photos/train-2.tar"]):
        assert pushdown.list(source, index=path, columns=["cls"]).digest == by_pattern.digest
    assert len(pushdown.list("s3://photos/train-r")) == 1, "a prefix of objects"
    with pytest.raises(ConfigError, match=r"columns=\['cls'\] does not apply to whole objects: expected none; samples in shards have columns"):
        pushdown.list("s3://photos/", columns=["cls"])
    with pytest.raises(ConfigError, match="expected a prefix or patterns of shards"):
        pushdown.list(["s3://photos/a.jpg"])


def test_rows_name_shard_and_member(path: Path) -> None:
    data = reader(path)
    batch = next(iter(data))
    assert batch.keys == ["train-0.tar"] * 4
    assert batch.members == ["cat/0.jpg", "dog/1.jpg", "cat/2.jpg", "dog/3.jpg"]
    assert batch.columns == {}
    assert batch.y is None
    assert repr(data).startswith("Reader(12 samples in shards of s3://photos")
    data.close()


def test_sources_are_patterns_indexes_and_lists(path: Path) -> None:
    index = ShardIndex.load(path)
    expected = reader(path).objects.digest
    assert Reader(PATTERN, "decode", index=index).objects.digest == expected
    assert Reader(index, "decode").objects.digest == expected
    assert Reader(index.samples(), "decode").objects.digest == expected
    with pytest.raises(ConfigError, match="run `pushdown index 's3://photos/train-"):
        pushdown.explain(PATTERN, "decode")
    with pytest.raises(ConfigError, match="does not apply to a source that is an index of shards: expected none"):
        Reader(index, "decode", index=index)
    with pytest.raises(ConfigError, match="expected patterns of shards, since there is an index"):
        Reader(index.samples(), "decode", index=index)
    with pytest.raises(ConfigError, match='column="jpg" does not apply to a list of samples: expected none'):
        Reader(index.samples(), "decode", column="jpg")
    with pytest.raises(ConfigError, match=r"columns=\['cls'\] does not apply to whole objects: expected none; samples in shards have columns"):
        Reader("s3://photos/train-r", "decode", columns=["cls"])
    with pytest.raises(ConfigError, match='order="shards" does not apply to whole objects: expected "global"'):
        Reader(pushdown.list("s3://photos/train-r"), "decode", sampling=Sampling(order="shards"))


def test_columns_have_kinds(path: Path) -> None:
    kinds: dict[str, Any] = {"jpg": "decode", "cls": "int", "json": "json"}
    data = Reader(PATTERN, index=path, columns=kinds, batch_size=2)
    batch = next(iter(data))
    assert str(data.pipeline) == "decode"
    assert (batch.columns["cls"].dtype, numbers(batch.columns["cls"])) == ("i64", [0, 1])
    assert batch.columns["json"] == [{"name": "cat", "box": {"left": 0}}, {"name": "dog", "box": {"left": 1}}]
    data.close()
    for columns, expected in (
        (["cls"], b"0\n"),
        ("cls", b"0\n"),
        ({"cls": "bytes"}, b"0\n"),
        ({"cls": "text"}, "0\n"),
    ):
        data = reader(path, columns=columns)
        assert next(iter(data)).columns["cls"][0] == expected
        data.close()


def test_a_list_with_columns_needs_no_names(path: Path) -> None:
    objects = pushdown.list(PATTERN, index=path, columns=["cls", "json"])
    data = Reader(objects, "decode", batch_size=1)
    assert next(iter(data)).columns["cls"] == [b"0\n"]
    data.close()
    data = Reader(
        objects, "decode", batch_size=1, columns={"cls": "int"}, labels=Column("json", "name", "text")
    )
    batch = next(iter(data))
    assert (list(batch.columns), numbers(batch.columns["cls"]), batch.y) == (["cls"], [0], ["cat"])
    data.close()
    with pytest.raises(ConfigError, match="no column `txt` in the samples: expected one of cls, json"):
        Reader(objects, "decode", columns=["txt"])


def test_one_column_has_the_pipeline() -> None:
    assert split_columns("decode", "png", ["cls"]) == ("decode", "png", {"cls": "bytes"})
    assert split_columns(None, None, {"cls": "int", "png": "decode"}) == ("decode", "png", {"cls": "int"})
    assert split_columns("decode", None, None) == ("decode", None, {})
    for pipeline, columns, found in (
        (None, None, "found none; other columns are bytes, int, json, text"),
        ("decode", {"jpg": "decode"}, "found the argument and `jpg`"),
        (None, {"jpg": "decode", "png": "decode"}, "found `jpg` and `png`"),
    ):
        with pytest.raises(ConfigError, match=found):
            split_columns(pipeline, None, columns)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected `jpg`, which has the pipeline, found `png`"):
        split_columns(None, "png", {"jpg": "decode"})


def test_labels_in_columns(path: Path) -> None:
    for labels, expected in (
        (Column("cls"), [0, 1, 2, 3]),
        (Column("cls", parse="text"), ["0", "1", "2", "3"]),
        (Column("json", "box.left"), [0, 1, 2, 3]),
        (Column("json", "box", parse="json"), [{"left": n} for n in range(4)]),
        (Column("json", "name", parse="text", classes=["dog", "cat"]), [1, 0, 1, 0]),
        (Column("cls", classes=[str(n) for n in range(12)]), [0, 1, 2, 3]),
    ):
        data = reader(path, labels=labels)
        batch = next(iter(data))
        y: Any = batch.y
        assert (y if isinstance(y, list) else numbers(y)) == expected
        assert isinstance(y, list) == (labels.parse != "int" and labels.classes is None)
        assert data.classes == list(labels.classes or ())
        assert batch.columns == {}, "the column of the labels is read for them alone"
        assert data.take([2, 0]).y is not None
        data.close()


def test_other_labels_are_found_by_the_names_of_members(path: Path) -> None:
    for labels in ("dir", r"^(\w+)/", lambda name: ("cat", "dog").index(name.split("/")[0])):
        data = reader(path, labels=labels)
        assert numbers(next(iter(data)).y) == [0, 1, 0, 1]
        data.close()
    with pytest.raises(ConfigError, match=r"use `labels=pushdown.Column\('cls'\)`"):
        reader(path, labels=pushdown.Sidecar(".cls"))


def test_invalid_settings_of_labels() -> None:
    for arguments, found in (
        ({"parse": "csv"}, "found 'csv'"),
        ({"parse": "json", "classes": ["a"]}, 'with classes, found "json"'),
        ({"classes": ["a", "a"]}, "expected each name once"),
    ):
        with pytest.raises(ConfigError, match=found):
            Column("cls", **arguments)  # type: ignore[arg-type]


BAD = [
    (Column("cls"), "cls", b"dog", "expected int in `dog/1.cls`, found 'dog'"),
    (Column("cls"), "cls", b"9" * 30, "expected int in `dog/1.cls`, found '999"),
    (Column("cls"), "cls", None, "expected int in the column `cls`, found no member"),
    (Column("cls", classes=["a"]), "cls", b"1", "expected a number below 1 in `dog/1.cls`, found '1'"),
    (Column("cls", parse="text", classes=["0"]), "cls", b"x", "expected one of 1 classes in `dog/1.cls`"),
    (
        Column("cls", parse="text"),
        "cls",
        b"\xff",
        "expected text in `dog/1.cls`, found '\N{REPLACEMENT CHARACTER}'",
    ),
    (Column("json", "a"), "json", b"[", "expected json in `dog/1.json`, found '['"),
    (Column("json", "a"), "json", b"[" * 100_000, "expected json in `dog/1.json`"),
    (Column("json", "a.b"), "json", b'{"a": 1}', "expected an object with `a.b` in `dog/1.json`"),
    (Column("json", "a"), "json", b'{"a": true}', "expected an integer at `a` in `dog/1.json`"),
    (Column("json", "a", parse="text"), "json", b'{"a": 1}', "expected text at `a` in `dog/1.json`"),
]


@pytest.mark.parametrize(("labels", "extension", "content", "message"), BAD)
def test_a_bad_label_is_an_error_of_its_sample(
    native: Any, labels: Column, extension: str, content: bytes | None, message: str
) -> None:
    members = {"dog/1.jpg": b"photo", "dog/2.jpg": b"photo"}
    value: Any = "x" if labels.parse == "text" else 0
    document = json.dumps({"a": {"b": value} if labels.field == "a.b" else value})
    members[f"dog/2.{extension}"] = document.encode() if extension == "json" else b"0"
    if content is not None:
        members[f"dog/1.{extension}"] = content
    native.shards["one.tar"] = members
    index = pushdown.index("s3://photos/one.tar")
    options: dict[str, Any] = {"labels": labels, "batch_size": 2}
    data = Reader(index, "decode", **options, on_error="report")
    (batch,) = data
    y: Any = batch.y
    assert [numbers(batch.valid), len(y)] == [[False, True], 2]
    assert y[0] == (None if isinstance(y, list) else 0)
    (error,) = batch.errors
    assert (error.key, error.member, error.code, error.row) == ("one.tar", "dog/1.jpg", "InvalidLabel", 0)
    assert error.message.startswith(message)
    assert (data.stats.samples, data.stats.errors) == (1, 1)
    skipping = Reader(index, "decode", **options, on_error="skip")
    (batch,) = skipping
    assert (batch.members, len(batch.y or [])) == (["dog/2.jpg"], 1)
    assert skipping.stats.errors == 1
    with pytest.raises(
        SampleError, match=r"sample `one\.tar member dog/1\.jpg` at position 0 failed: InvalidLabel"
    ):
        list(Reader(index, "decode", **options))
    with pytest.raises(SampleError, match="InvalidLabel"), Reader(index, "decode", **options) as taking:
        taking.take([1, 0])


def test_a_bad_column_is_an_error_of_its_sample_and_a_missing_one_is_none(native: Any) -> None:
    native.shards["one.tar"] = {"1.jpg": b"", "2.jpg": b"", "3.jpg": b"", "1.txt": b"a", "2.txt": b"\xff"}
    data = Reader(
        pushdown.index("s3://photos/one.tar"),
        "decode",
        columns={"txt": "text"},
        batch_size=3,
        on_error="report",
    )
    (batch,) = data
    assert batch.columns["txt"] == ["a", None, None]
    assert numbers(batch.valid) == [True, False, True]
    assert [(error.code, error.member) for error in batch.errors] == [("InvalidColumn", "2.jpg")]


def test_the_order_of_shards_is_part_of_the_spec_and_of_the_state(path: Path, native: Any) -> None:
    data = reader(path, sampling=Sampling(order="shards", buffer=8), seed=7)
    assert sorted(indices(data)) == list(range(12))
    assert native.opened[-1]["order"] == {"shards": {"buffer": 8}}
    state = json.loads(json.dumps(data.state_dict()))
    assert state["order"] == "shards 8"
    reader(path, sampling=Sampling(order="shards", buffer=8), seed=7).load_state_dict(state)
    with pytest.raises(StateError, match=r"expected the order shards 9, found shards 8: `order` or `buffer`"):
        reader(path, sampling=Sampling(order="shards", buffer=9), seed=7).load_state_dict(state)
    with pytest.raises(StateError, match="expected the order global, found shards 8"):
        reader(path, seed=7).load_state_dict(state)
    plain = reader(path, seed=7)
    assert "order" not in plain.state_dict()
    options = Options.of({}).applied_to(SourceKind.OBJECTS)
    spec = json.loads(ReaderSpec(options=options, pipeline="decode", epoch=0).to_json())
    assert (spec["order"], spec.get("buffer")) == ("global", None)
    with pytest.raises(ConfigError, match="invalid buffer"):
        reader(path, sampling=Sampling(order="shards", buffer=0))
    with pytest.raises(ConfigError, match="invalid order: expected one of global, shards"):
        reader(path, sampling=Sampling(order="random"))


def test_a_reader_of_shards_pickles_without_its_index(path: Path, native: Any) -> None:
    classes = [f"class {number}" for number in range(1000)]
    data = reader(path, labels=Column("cls", classes=classes), columns={"json": "json"}, seed=7)
    expected = [(batch.members, numbers(batch.y), batch.columns) for batch in data]
    path.unlink()
    pickled = pickle.dumps(data)
    assert len(pickled) < 4096
    copy = pickle.loads(pickled)
    copy.set_epoch(0)
    assert [(batch.members, numbers(batch.y), batch.columns) for batch in copy] == expected
    assert copy.classes == classes
