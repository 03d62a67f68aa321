"""Sources of rows: which keys a pattern names, the pipeline over the rows, and labels of a column."""

from __future__ import annotations

import json
import pathlib
import pickle
from array import array

import pytest

import pushdown
from pushdown import Parquet, Pipeline
from pushdown._kinds.rows import ColumnLabels, over_rows
from pushdown._native import Tensor
from pushdown.parquet import _pattern, is_parquet_url, reads_tables


@pytest.mark.parametrize(
    ("key", "matching", "others"),
    [
        ("data/train-*.parquet", ["data/train-0.parquet", "data/train-.parquet"], ["data/train-a/b.parquet", "data/test-0.parquet"]),
        ("data/?.parquet", ["data/1.parquet"], ["data/12.parquet", "data/1xparquet", "data/x/1.parquet"]),
        ("data/", ["data/a.parquet", "data/b/c.parquet", "data/two\nlines.parquet"], ["data/readme.md", "other/a.parquet"]),
        ("data/a+b.parquet", ["data/a+b.parquet"], ["data/aab.parquet", "data/a+b.parquet.bak"]),
        ("", ["a.parquet"], ["a.csv"]),
    ],
)
def test_a_pattern_matches_within_a_folder(key: str, matching: list[str], others: list[str]) -> None:
    pattern = _pattern(key)
    assert [other for other in matching if not pattern.fullmatch(other)] == []
    assert [other for other in others if pattern.fullmatch(other)] == []


def test_a_url_of_parquet_ends_so() -> None:
    assert all(map(is_parquet_url, ("s3://b/data/*.parquet", ["s3://b/a.parquet"])))
    assert not any(map(is_parquet_url, ("s3://b/data/", "s3://b/a.jpg", [], ["s3://b/a.parquet", "s3://b/a.jpg"], Parquet("s3://b/a.parquet"))))


def test_a_pipeline_that_reads_tables_begins_with_a_step_that_makes_one_of_an_object() -> None:
    steps = json.loads((pathlib.Path(__file__).parent / "data/steps.json").read_text())
    reading = {step["name"] for step in steps if (step["input"], step["output"]) == ("Bytes", "Table")}
    assert reading == {step["name"] for step in steps if reads_tables(f" {step['name']}(..)")}
    assert reads_tables(Pipeline("select(columns=[a])")) and reads_tables("sql('select 1') | each(a: decode)")
    assert not any(map(reads_tables, ("decode", "selected", Pipeline("decode"), None)))


def test_the_pipeline_reads_the_columns_and_runs_over_the_images() -> None:
    inner = Pipeline("decode")
    assert str(over_rows(Parquet("s3://b/"), inner, "label")) == (
        'select(columns=[image, label], row_number="pushdown row number") | each(column=image, pipeline=decode)'
    )
    text = str(over_rows(Parquet("s3://b/", column="a b", where="n < 3"), inner, None))
    assert text.startswith('select(columns=["a b"], where="n < 3", ')
    assert text.endswith('each(column="a b", pipeline=decode)')


def test_labels_follow_the_rows_that_are_left() -> None:
    indices = Tensor("i64", [3], array("q", [70, 5, 9]))
    whole = ColumnLabels(indices, [7, 0, 2]).batch([9, 70], ["k", "k"])
    assert list(memoryview(whole)) == [2, 7]
    assert ColumnLabels(indices, ["cat", "dog", None]).batch([5, 9], ["k", "k"]) == ["dog", None]


def test_a_reader_of_many_files_pickles_small() -> None:
    files = [f"s3://photos/data/{n}.parquet" for n in range(1000)]
    assert len(pickle.dumps(pushdown.Reader(files, "decode", seed=1))) < 4096


def test_arguments_that_do_not_apply_to_rows_are_refused() -> None:
    for arguments, message in (
        ({"sampling": pushdown.Sampling(tail="pad")}, 'tail="pad" does not apply .*: expected "short", "even" or "drop"'),
        ({"labels": {"a": 1}}, r"labels=\{'a': 1\} does not apply to rows of Parquet objects: expected the name of a column"),
        ({"max_errors": 3}, "invalid max_errors"),
    ):
        with pytest.raises(pushdown.ConfigError, match=message):
            pushdown.Reader("s3://photos/*.parquet", "decode", **arguments)
