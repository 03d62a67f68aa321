"""Labels: every kind of `labels=`, classes, missing labels, batches."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import native_double
from pushdown.errors import ConfigError, SampleError
from pushdown.labels import Labels, Sidecar, resolve
from pushdown.manifest import Manifest

KEYS = ["train/dog/1.jpg", "train/cat/2.jpg", "train/dog/x/3.jpg"]


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    native_double.install(monkeypatch)


def labels_of(labels: Any, keys: Sequence[str] = KEYS, prefix: str = "train/", **options: Any) -> Labels:
    resolved = resolve(labels, native_double.Objects(keys), prefix, **options)  # type: ignore[arg-type]
    assert resolved is not None
    return resolved


def values(labels: Labels, indices: Sequence[int] = (0, 1, 2)) -> list[Any]:
    batch = labels.batch(indices, [KEYS[index] for index in indices])
    assert isinstance(batch, (list, native_double.Tensor))
    return list(batch)


def is_tensor(labels: Labels) -> bool:
    return isinstance(labels.batch([0], KEYS[:1]), native_double.Tensor)


def test_no_labels() -> None:
    assert resolve(None, native_double.Objects(KEYS), "") is None  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ["train/", "train"])
def test_dir_is_the_first_folder_after_the_prefix(prefix: str) -> None:
    labels = labels_of("dir", prefix=prefix)
    assert labels.classes == ("cat", "dog")
    assert is_tensor(labels)
    assert values(labels) == [1, 0, 1]
    assert values(labels, [2, 1, 1]) == [1, 0, 0]


def test_dir_names_an_object_without_a_folder() -> None:
    labels = labels_of("dir", [*KEYS, "train/readme.txt", "train/other.txt"])
    with pytest.raises(
        ConfigError, match=r"expected all objects in folders of classes, .*found `train/readme.txt`"
    ):
        labels.batch([0], KEYS[:1])


def test_dir_at_a_million_keys_does_not_loop_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1_000_000
    objects = native_double.Objects(KEYS)
    numbers = array("q", [0, 1]) * (count // 2)
    monkeypatch.setattr(objects, "folders", lambda prefix: (["a", "b"], numbers))
    monkeypatch.setattr(objects, "paths", lambda: pytest.fail("the keys were listed"))
    labels = resolve("dir", objects, "")  # type: ignore[arg-type]
    assert labels is not None
    lines = 0

    def count_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count_line

    before = sys.gettrace()
    sys.settrace(count_line)
    try:
        classes = labels.classes
    finally:
        sys.settrace(before)
    assert classes == ("a", "b")
    assert 0 < lines < 1000
    assert list(labels.batch([count - 1], [""])) == [1]


@pytest.mark.parametrize("pattern", [r"/(\w+)/[^/]*$", re.compile(r"/(\w+)/[^/]*$")])
def test_a_pattern_gives_classes(pattern: Any) -> None:
    labels = labels_of(pattern)
    assert labels.classes == ("cat", "dog", "x")
    assert is_tensor(labels)
    assert values(labels) == [1, 0, 2]


@pytest.mark.parametrize("pattern", [r"(\d)\.png", r"(?:jpg|(png))$"])
def test_a_pattern_without_a_match_names_the_key(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"no label for `train/dog/1.jpg`: expected a match of"):
        _ = labels_of(pattern).classes


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("folder", "with 0 groups"),
        ("(a)(b)", "with 2 groups"),
        ("(", "is no regular expression"),
        (re.compile(b"(a)"), "with a pattern of bytes"),
    ],
)
def test_a_pattern_needs_one_group(pattern: Any, found: str) -> None:
    with pytest.raises(ConfigError, match=found) as caught:
        labels_of(pattern)
    assert 'expected "dir", a regular expression with one group, a function' in str(caught.value)


def test_a_function_of_the_key_gives_integers_or_objects() -> None:
    assert is_tensor(labels_of(len))
    assert values(labels_of(len)) == [15, 15, 17]
    assert values(labels_of(str.upper)) == [key.upper() for key in KEYS]
    assert labels_of(len).classes is None
    boxes = labels_of(lambda key: (len(key), 0.5))
    assert values(boxes, [2]) == [(17, 0.5)]


def test_a_function_is_called_once_per_key_and_not_before_use() -> None:
    calls: list[str] = []
    labels = labels_of(lambda key: calls.append(key) or 1)
    assert calls == []
    values(labels)
    values(labels)
    assert calls == KEYS


def test_a_function_that_fails_or_gives_none_names_the_key() -> None:
    with pytest.raises(ConfigError, match=r"no label for `train/cat/2.jpg`"):
        values(labels_of(lambda key: None if "cat" in key else 1))
    with pytest.raises(ZeroDivisionError) as caught:
        values(labels_of(lambda key: 1 // 0))
    assert caught.value.__notes__ == ["in the function of `labels`, for the key `train/dog/1.jpg`"]


def test_a_dict_by_key_or_by_its_part_after_the_prefix() -> None:
    mapping = {"train/dog/1.jpg": 5, "cat/2.jpg": 6, "dog/x/3.jpg": 0}
    assert values(labels_of(mapping)) == [5, 6, 0]
    assert values(labels_of(mapping, prefix="train")) == [5, 6, 0]
    assert is_tensor(labels_of(mapping))
    assert values(labels_of(dict.fromkeys(KEYS, "a"))) == ["a", "a", "a"]
    with pytest.raises(ConfigError, match=r"no label for `train/cat/2.jpg`"):
        values(labels_of(mapping, prefix=""))


@pytest.mark.parametrize("sequence", [[3, 4, 5], (3, 4, 5), array("b", [3, 4, 5]), range(3, 6)])
def test_a_sequence_by_index(sequence: Any) -> None:
    labels = labels_of(sequence)
    assert is_tensor(labels)
    assert values(labels, [2, 0]) == [5, 3]


def test_sequences_of_other_values_stay_lists() -> None:
    assert values(labels_of(["a", "b", "c"]), [2, 0]) == ["c", "a"]
    assert values(labels_of([0.5, 1, 2])) == [0.5, 1, 2]
    assert values(labels_of([2**63, 1, 2])) == [2**63, 1, 2]


def test_arrays_of_numpy_and_tensors_by_index() -> None:
    tensor = native_double.Tensor("i64", [3], [7, 8, 9])
    assert values(labels_of(tensor)) == [7, 8, 9]
    numpy = pytest.importorskip("numpy")
    assert is_tensor(labels_of(numpy.array([3, 4, 5], "uint8")))
    assert values(labels_of(numpy.array([[1, 2], [3, 4], [5, 6]])), [1]) == [[3, 4]]


def test_a_sequence_of_another_length_fails_at_once() -> None:
    with pytest.raises(ConfigError, match="expected one label for each of 3 objects, found 2"):
        labels_of([1, 2])


@pytest.mark.parametrize(
    ("labels", "found"), [(3, "int"), ({1, 2, 3}, "set"), (b"dir", "bytes"), (iter(KEYS), "list_iterator")]
)
def test_other_types_are_errors_that_list_what_is_possible(labels: Any, found: str) -> None:
    with pytest.raises(ConfigError, match=f"a Sidecar or a Column, found {found}"):
        labels_of(labels)


class Store:
    """Objects in memory; counts calls."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects, self.calls = objects, 0

    def read(self, keys: Sequence[str]) -> list[bytes]:
        self.calls += 1
        return [self.objects[key] for key in keys]


def test_sidecars_are_read_once_per_batch() -> None:
    store = Store({"train/dog/1.cls": b"7\n", "train/cat/2.cls": b"-1", "train/dog/x/3.cls": b"0"})
    labels = labels_of(Sidecar(".cls"), read=store.read)
    assert store.calls == 0
    assert labels.classes is None
    assert values(labels, [2, 0, 1]) == [0, 7, -1]
    assert is_tensor(labels)
    assert store.calls == 2


def test_sidecars_as_text_and_json_are_lists() -> None:
    store = Store({"train/dog/1.json": b'{"box": [1, 2]}', "train/cat/2.json": "é \n".encode()})
    assert values(labels_of(Sidecar(".json", "json"), read=store.read), [0]) == [{"box": [1, 2]}]
    assert values(labels_of(Sidecar(".json", "text"), read=store.read), [1]) == ["é"]


@pytest.mark.parametrize("parse", ["int", "json", "text"])
def test_an_invalid_sidecar_names_the_sample(parse: Any) -> None:
    store = Store({"train/dog/1.cls": b"d\xffg"})
    with pytest.raises(SampleError, match=f"expected {parse} in `train/dog/1.cls`, found 'd�g'") as caught:
        values(labels_of(Sidecar(".cls", parse), read=store.read), [0])
    assert caught.value.key == "train/dog/1.jpg"


def test_sidecar_keys_and_settings() -> None:
    assert [Sidecar(".cls").key(key) for key in ("a.b/c", "a/b.c.jpg", "x.png")] == [
        "a.b/c.cls",
        "a/b.c.cls",
        "x.cls",
    ]
    with pytest.raises(ConfigError, match="needs a store"):
        labels_of(Sidecar(".cls"))
    with pytest.raises(ConfigError, match='expected "int", "text" or "json", found \'csv\''):
        Sidecar(".cls", "csv")  # type: ignore[arg-type]


def manifest(folder: Path, rows: str, **options: Any) -> Manifest:
    (folder / "train.csv").write_text(f"path,label\n{rows}")
    return Manifest(folder / "train.csv", label="label", **options)


def test_a_manifest_with_the_same_keys_is_by_row_and_may_repeat_keys(tmp_path: Path) -> None:
    source = manifest(tmp_path, "a.jpg,1\nb.jpg,2\na.jpg,3\n", base="s3://photos/train")
    keys = ["train/a.jpg", "train/b.jpg", "train/a.jpg"]
    labels = labels_of(source, keys)
    assert is_tensor(labels)
    assert values(labels) == [1, 2, 3]


def test_a_manifest_with_other_keys_is_by_key(tmp_path: Path) -> None:
    source = manifest(tmp_path, "dog/x/3.jpg,c\ncat/2.jpg,b\ndog/1.jpg,a\nunused.jpg,d\n")
    assert values(labels_of(source)) == ["a", "b", "c"]
    with pytest.raises(ConfigError, match=r"no label for `train/new.jpg`"):
        values(labels_of(source, [*KEYS, "train/new.jpg"]))
    twice = manifest(tmp_path, "dog/1.jpg,1\ncat/2.jpg,2\ndog/1.jpg,3\n")
    with pytest.raises(ConfigError, match=r"expected one label for `dog/1.jpg`, found 1 and 3"):
        values(labels_of(twice))


def test_a_manifest_in_a_bucket_is_read_at_first_use() -> None:
    data = b"path,label\ns3://photos/train/dog/1.jpg,4\ncat/2.jpg,5\ndog/x/3.jpg,6\n"
    urls: list[str] = []
    source = Manifest("s3://lists/train.csv", label="label", base="s3://photos/train/")
    labels = labels_of(source, read_url=lambda url: urls.append(url) or data)
    assert urls == []
    assert values(labels) == [4, 5, 6]
    assert urls == ["s3://lists/train.csv"]
