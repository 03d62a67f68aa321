"""Labels of pickled readers: files of JSON, whose digests are checked before they are parsed."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pushdown import Column, ConfigError, Error, _shared
from readers import reader

KEYS = [f"train/{folder}/{number:02}.jpg" for folder in ("cat", "dog") for number in range(10)]


class Attack:
    """Creates a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._mark,)


def label_file() -> Path:
    """The file of labels that was written last."""
    return Path([path for name, path in _shared._paths.items() if name.endswith(".labels")][-1])


def read(data: Any) -> list[Any]:
    return [value for batch in data for value in batch.y]


@pytest.mark.parametrize(
    "labels",
    [
        {key: number for number, key in enumerate(KEYS)},
        {key.removeprefix("train/"): key[6:9] for key in KEYS},
        list(range(20)),
        [number / 3 for number in range(20)],
        [{"age": number, "names": ["é", None, True, "\ud800"]} for number in range(20)],
    ],
    ids=["integers by key", "texts by key", "integers", "numbers", "objects"],
)
def test_labels_go_through_a_file_of_json(labels: Any) -> None:
    data = reader(labels=labels)
    pickled = pickle.dumps(data)
    assert len(pickled) < 4096
    assert len(json.loads(label_file().read_bytes())["values"]) == 20
    copy = pickle.loads(pickled)
    again = pickle.loads(pickle.dumps(copy))
    assert read(copy) == read(again) == read(data)
    assert type(next(iter(copy)).y) is type(next(iter(reader(labels=labels))).y)


@pytest.mark.parametrize("label", [(1, 2), Fraction(1, 3), {1: "a"}, float("nan")], ids=repr)
def test_labels_that_json_does_not_have_stay_in_the_pickle(label: Any) -> None:
    before = dict(_shared._paths)
    copy = pickle.loads(pickle.dumps(reader(labels=[label] * 20)))
    assert [repr(value) for value in read(copy)] == [repr(label)] * 20
    assert not [name for name in _shared._paths.keys() - before.keys() if name.endswith(".labels")]


def test_a_column_keeps_its_classes() -> None:
    column = Column("cls", None, "text", [f"class {number}" for number in range(1000)])
    data = reader()
    data._kind._labels._source = column  # type: ignore[attr-defined]
    pickled = pickle.dumps(data)
    assert len(pickled) < 4096
    assert pickle.loads(pickled)._kind._labels.column == column


def test_a_file_with_other_bytes_is_not_parsed(tmp_path: Path) -> None:
    pickled = pickle.dumps(reader(labels=list(range(20, 40))))
    path, mark = label_file(), tmp_path / "mark"
    original = path.read_bytes()
    for forged in (
        pickle.dumps(Attack(mark)),
        original.replace(b"20", b"21"),
        original + b"\n",
        b"",
    ):
        path.write_bytes(forged)
        with pytest.raises(Error, match="were replaced: expected the digest"):
            pickle.loads(pickled)
        assert not mark.exists()
    path.unlink()
    with pytest.raises(ConfigError, match="cannot read the labels of a pickled reader"):
        pickle.loads(pickled)
