"""What the samples of a source are, and the names that readers of one kind had."""

from __future__ import annotations

from typing import Any

import pytest

import pushdown
from pushdown import Column, ConfigError, Parquet, Plan, Reader, Sampling, ShardIndex, Worker
from pushdown._kinds import choose_kind
from pushdown._settings import SourceKind
from pushdown.options import Options
from readers import URL

SHARDS = "s3://photos/train-{0..4}.tar"
BY_SHARDS = Sampling(order="shards")


@pytest.fixture(autouse=True)
def _shards(native: Any) -> None:
    native.shards["train-0.tar"] = {"1.jpg": b"photo", "1.cls": b"1"}


def kind(source: Any, pipeline: str = "decode", **options: Any) -> SourceKind:
    return choose_kind(source, pipeline, Options.of(options))


def test_each_source_has_its_kind() -> None:
    rows: tuple[Any, ...] = (Parquet(["s3://photos/a"]), "s3://photos/a.parquet", "s3://photos/*.parquet", ["s3://photos/a.parquet"])
    for source in rows:
        assert kind(source) is SourceKind.ROWS
        assert kind(source, index="train.parquet") is SourceKind.ROWS
    for source in (SHARDS, [SHARDS], "s3://photos/0.tar.gz", "s3://photos/0.zip"):
        assert kind(source) is kind(source, sampling=BY_SHARDS) is kind(source, sampling=Sampling(order="global")) is SourceKind.SHARDS
        assert kind(source, index="train.parquet") is SourceKind.OBJECTS
    for source in (URL, [URL]):
        assert kind(source, sampling=BY_SHARDS) is SourceKind.SHARDS
        assert kind(source) is kind(source, index="train.parquet", sampling=BY_SHARDS) is SourceKind.OBJECTS
    index = pushdown.index("s3://photos/train-0.tar")
    objects = pushdown.list(URL)
    for other in (index, index.samples(), objects, [], ["s3://photos/0.tar", "s3://photos/1.jpg"], 5):
        assert kind(other) is SourceKind.OBJECTS
    for other in (index, objects):
        assert kind(other, sampling=BY_SHARDS) is SourceKind.OBJECTS


def test_a_pipeline_that_reads_tables_reads_whole_objects() -> None:
    for source in ("s3://photos/a.parquet", ["s3://photos/a.parquet"]):
        assert kind(source, "select(columns=[a])") is kind(source, "sql('select 1')") is SourceKind.OBJECTS
    assert kind(Parquet("s3://photos/"), "select(columns=[a])") is SourceKind.ROWS


def test_one_reader_reads_each_kind() -> None:
    assert repr(Reader(URL, "decode", labels="dir")).startswith("Reader(20 objects of s3://photos/train/, ")
    for options in ({"sampling": BY_SHARDS}, {"labels": Column("cls"), "mode": "plain"}):
        assert repr(Reader(SHARDS, "decode", **options)).startswith("Reader(5 shards of s3://photos, ")  # type: ignore[arg-type]
    rows = Reader(Parquet(["s3://photos/a.parquet"]), "decode", labels="label")
    assert repr(rows).startswith("Reader(1 objects of s3://photos/, column 'image', ")
    assert (rows.classes, rows.plan, rows.mode) == ([], None, "auto")
    with pytest.raises(ConfigError, match="no Parquet objects match"):
        Reader("s3://photos/a.parquet", "decode")
    with pytest.raises(ConfigError, match="expected a pipeline, found None"):
        Reader(Parquet(["s3://photos/a.parquet"]))


def test_what_does_not_apply_is_refused() -> None:
    for source, options, refused in (
        (SHARDS, {"sampling": Sampling(order="shards", tail="pad")}, 'tail="pad" does not apply to shards without an index'),
        (SHARDS, {"sampling": BY_SHARDS, "labels": "dir"}, 'labels="dir" does not apply to shards without an index'),
        (Parquet(["s3://photos/a"]), {"plan": Plan(epochs=3)}, "epochs=3 does not apply to rows of Parquet objects"),
        (URL, {"sampling": BY_SHARDS, "index": None}, "no shards under"),
        (URL, {"sampling": {"order": "shards"}}, r"invalid sampling: expected pushdown\.Sampling, found dict"),
    ):
        with pytest.raises(pushdown.Error, match=refused):
            Reader(source, "decode", **options)  # type: ignore[arg-type]
    arguments: Any = {"order": "shards"}
    with pytest.raises(TypeError, match=r"order is now part of sampling=: pushdown\.Sampling\(order=\.\.\)"):
        Reader(SHARDS, "decode", **arguments)


def test_rows_are_read_by_one_process_in_batches() -> None:
    rows = Reader(Parquet(["s3://photos/a.parquet"]), "decode")
    for use, refused in (
        (lambda: rows.take([0]), "rows of Parquet objects are read in batches only: expected an iteration, found `take`"),
        (lambda: rows.iterate(Worker(1, 2)), r"worker=Worker\(index=1, count=2\) does not apply to rows of Parquet objects: expected one worker"),
        (lambda: rows.iterate(start_batch=2), "start_batch=2 does not apply to rows of Parquet objects: expected 0, the default"),
    ):
        with pytest.raises(ConfigError, match=refused):
            use()
    assert (len(rows), rows.samples, rows.tail_counts) == (1, 10, (0, 0))
    shards = Reader(SHARDS, "decode")
    with pytest.raises(ConfigError, match=r"found `take`; with an index .*: run `pushdown index`, and pass `index`"):
        shards.take([0])
    assert next(iter(shards)).keys and shards.mode == "plain"
    shards.close()


def test_names_that_are_gone_say_what_to_write() -> None:
    for name, advice in (
        ("RowReader", r"write pushdown\.Reader\(\.\.\), with the same source and options; a prefix is pushdown\.Parquet\(prefix\)"),
        ("ShardReader", r'a prefix has sampling=pushdown\.Sampling\(order="shards"\)'),
        ("RowIterator", r"write pushdown\.ReaderIterator"),
    ):
        message = rf"^pushdown\.{name} is gone: .*{advice}"
        with pytest.raises(AttributeError, match=message):
            getattr(pushdown, name)
        with pytest.raises(ImportError, match=message):
            exec(f"from pushdown import {name}")
        assert not hasattr(pushdown, name) and name not in dir(pushdown)
    with pytest.raises(AttributeError, match=r"^module 'pushdown' has no attribute 'nonsense'$"):
        getattr(pushdown, "nonsense")  # noqa: B009
    with pytest.raises(ImportError, match="cannot import name 'nonsense' from 'pushdown'"):
        exec("from pushdown import nonsense")
    assert isinstance(pushdown.index("s3://photos/train-0.tar"), ShardIndex)


STATES: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (URL, {"position": 8}, {}),
    (SHARDS, {}, {"columns": "images and no others", "shards_read": {"place": {"world": 1, "rank": 0, "every": 1, "turn": 0}, "begin": [[0, 0]], "read": 0}}),
    (Parquet(["s3://photos/a.parquet"]), {"rows_read": [[2, 8]]}, {}),
]


@pytest.mark.parametrize(("source", "where", "others"), STATES, ids=["objects", "shards", "rows"])
def test_states_have_the_members_of_version_1(source: Any, where: dict[str, Any], others: dict[str, Any]) -> None:
    """Those of readers of one kind load: only digests name what they belong to."""
    reader = Reader(source, "decode", seed=7)
    digests = {"objects": reader.objects.digest, "pipeline": reader.pipeline.digest}
    state = {"version": 1, "seed": 7, "epoch": 3, **where, **digests, **others}
    reader.load_state_dict(state)
    assert reader.state_dict() == state
    assert reader.epoch == 3
