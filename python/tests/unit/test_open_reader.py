"""The reader that `pushdown.torch` opens for a source. Its module needs no PyTorch, and is imported without it here."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

import pytest

import pushdown
from pushdown import Column, ConfigError, Parquet, Plan, Reader, RowReader, Sampling, ShardReader
from readers import URL

SHARDS = "s3://photos/train-{0..4}.tar"
BY_SHARDS = Sampling(order="shards")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, native: Any) -> Any:
    package = ModuleType("pushdown.torch")
    package.__path__ = [os.path.join(os.path.dirname(pushdown.__file__), "torch")]
    monkeypatch.setitem(sys.modules, "pushdown.torch", package)
    module = importlib.import_module("pushdown.torch._reader")
    monkeypatch.delitem(sys.modules, "pushdown.torch._reader")
    native.shards["train-0.tar"] = {"1.jpg": b"photo", "1.cls": b"1"}
    return module


def test_each_source_has_its_reader(opened: Any) -> None:
    assert type(opened.open_reader(URL, "decode", {"labels": "dir"})) is Reader
    assert type(opened.open_reader(["s3://photos/0.tar"], "decode", {"sampling": BY_SHARDS})) is ShardReader
    labelled = {"sampling": BY_SHARDS, "labels": Column("cls"), "mode": "plain"}
    assert type(opened.open_reader(SHARDS, "decode", labelled)) is ShardReader
    assert type(opened.open_sample_reader(SHARDS, "decode", labelled)) is ShardReader
    for source in (Parquet(["s3://photos/a.parquet"]), "s3://photos/a.parquet"):
        if isinstance(source, str):
            with pytest.raises(ConfigError, match="no Parquet objects match"):
                opened.open_reader(source, "decode", {})
        else:
            assert type(opened.open_reader(source, "decode", {"labels": "label"})) is RowReader
    with pytest.raises(ConfigError, match="expected a pipeline, found None"):
        opened.open_reader(Parquet(["s3://photos/a.parquet"]), None, {})


def test_what_does_not_apply_is_refused_by_the_reader(opened: Any) -> None:
    for source, options, refused in (
        (SHARDS, {"sampling": Sampling(order="shards", tail="pad")}, 'tail="pad" does not apply to shards without an index'),
        (SHARDS, {"sampling": BY_SHARDS, "labels": "dir"}, 'labels="dir" does not apply to shards without an index'),
        (Parquet(["s3://photos/a"]), {"plan": Plan(epochs=3)}, "epochs=3 does not apply to rows of Parquet objects"),
        (URL, {"sampling": BY_SHARDS, "index": None}, "no shards under"),
        (URL, {"sampling": {"order": "shards"}}, r"invalid sampling: expected pushdown\.Sampling, found dict"),
    ):
        with pytest.raises(pushdown.Error, match=refused):
            opened.open_reader(source, "decode", options)
    with pytest.raises(TypeError, match=r"order is now part of sampling=: pushdown\.Sampling\(order=\.\.\)"):
        opened.open_reader(SHARDS, "decode", {"order": "shards"})
