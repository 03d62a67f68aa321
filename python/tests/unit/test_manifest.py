"""Manifests: formats, types of CSV columns, keys and bases, labels."""

from __future__ import annotations

import importlib
import pickle
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest

import native_double
from pushdown._label_columns import values_of
from pushdown.errors import ConfigError
from pushdown.manifest import Manifest


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    native_double.install(monkeypatch)


def write(folder: Path, text: str, name: str = "m.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_csv_gives_keys_in_order_and_columns(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufeffpath,label,note\nb.jpg,1,"x, y"\n\na.jpg,0,"two\nlines"\nb.jpg,2,\n')
    rows = Manifest(path, columns=["note"], label="label", base="s3://photos/train").load()
    assert rows.bucket == "photos"
    assert rows.keys == ["train/b.jpg", "train/a.jpg", "train/b.jpg"]
    assert rows.columns["label"] == [1, 0, 2]
    assert rows.columns["note"] == ["x, y", "two\nlines", ""]
    assert rows.objects().keys() == rows.keys
    assert rows.objects().bucket == "photos"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0", "-7", "12"], [0, -7, 12]),
        (["0", "1.5", "-2e3"], [0.0, 1.5, -2000.0]),
        (["007", "8"], ["007", "8"]),
        (["1", ""], ["1", ""]),
        (["nan", "1"], ["nan", "1"]),
        (["1_0", " 1"], ["1_0", " 1"]),
        (["cat", "1"], ["cat", "1"]),
        (["1234567890123456789", "9007199254740993"], [1234567890123456789, 9007199254740993]),
        (["-9223372036854775808", "18446744073709551615"], [-(2**63), 2**64 - 1]),
        (["123456789012345678901234567890", "1"], [123456789012345678901234567890, 1]),
        (["1234567890123456789", "0.5", "4", "1e3"], [1234567890123456789, 0.5, 4.0, 1000.0]),
        (["1234567890123456789", ""], ["1234567890123456789", ""]),
        (["01234567890123456789", "1"], ["01234567890123456789", "1"]),
        (["9" * 4301, "1"], ["9" * 4301, "1"]),
        (["9" * 400, "0.5"], [int("9" * 400), 0.5]),
        (["1e999", "0.5"], ["1e999", "0.5"]),
        (["-0", "1"], [-0.0, 1.0]),
    ],
)
def test_types_of_csv_columns(tmp_path: Path, values: list[str], expected: list[Any]) -> None:
    path = write(tmp_path, "path,v\n" + "".join(f"k{row},{value}\n" for row, value in enumerate(values)))
    found = Manifest(path, columns=["v"]).load().columns["v"]
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize("name", ["m.csv", "m.tsv", "m.parquet", "m.arrow"])
def test_labels_of_any_digits_are_exact(tmp_path: Path, name: str) -> None:
    labels = [1234567890123456789, -9223372036854775808, 9007199254740993]
    if name.endswith("sv"):
        separator = "," if name == "m.csv" else "\t"
        rows = "".join(f"k{row}{separator}{label}\n" for row, label in enumerate(labels))
        write(tmp_path, f"path{separator}label\n{rows}", name)
    else:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({"path": ["k0", "k1", "k2"], "label": labels})
        if name == "m.parquet":
            importlib.import_module("pyarrow.parquet").write_table(table, tmp_path / name)
        else:
            with importlib.import_module("pyarrow.ipc").new_file(str(tmp_path / name), table.schema) as writer:
                writer.write_table(table)
    manifest = Manifest(tmp_path / name, label="label", base="s3://photos/")
    values = values_of(manifest.labels(manifest.load())).values
    assert isinstance(values, array)
    assert list(values) == labels


def test_labels_beyond_64_bits_are_a_list(tmp_path: Path) -> None:
    manifest = Manifest(write(tmp_path, f"path,label\na,{2**64 - 1}\nb,7\n"), label="label", base="s3://photos/")
    assert values_of(manifest.labels(manifest.load())).values == [2**64 - 1, 7]


def test_keys_are_text_even_if_they_are_numbers(tmp_path: Path) -> None:
    assert Manifest(write(tmp_path, "id,label\n1,2\n"), key="id").load().keys == ["1"]


def test_tsv(tmp_path: Path) -> None:
    rows = Manifest(write(tmp_path, "path\tlabel\na,b\t3\n", "M.TSV"), label="label").load()
    assert rows.keys == ["a,b"]
    assert rows.columns["label"] == [3]


@pytest.mark.parametrize("name", ["m.parquet", "m.arrow", "m.feather", "stream.arrow"])
def test_parquet_and_arrow(tmp_path: Path, name: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"path": ["a", "b"], "label": [1, 2], "box": [[1.5], []], "unused": [0, 0]})
    if name.endswith("parquet"):
        importlib.import_module("pyarrow.parquet").write_table(table, tmp_path / name)
    elif name == "m.feather":
        importlib.import_module("pyarrow.feather").write_feather(table, str(tmp_path / name))
    else:
        ipc = importlib.import_module("pyarrow.ipc")
        make = ipc.new_stream if name.startswith("stream") else ipc.new_file
        with make(str(tmp_path / name), table.schema) as writer:
            writer.write_table(table)
    manifest = Manifest(tmp_path / name, columns=["box"], label="label", base="s3://photos/")
    rows = manifest.load()
    assert rows.keys == ["a", "b"]
    assert rows.columns == {"path": ["a", "b"], "label": [1, 2], "box": [[1.5], []]}
    with pytest.raises(
        ConfigError, match=r"no column `size` in .*: expected one of path, label, box, unused"
    ):
        Manifest(tmp_path / name, columns=["size"]).load()


@pytest.mark.parametrize("name", ["m.parquet", "m.arrow"])
def test_broken_files_and_missing_pyarrow(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "no table", name)
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ConfigError, match=r"without pyarrow: `pip install 'pushdown-client\[arrow\]'`"):
            Manifest(path).load()
    pytest.importorskip("pyarrow")
    with pytest.raises(ConfigError, match=f"cannot read the manifest .*{name}: "):
        Manifest(path).load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\na,1,2\n", "line 2 of the manifest .*m.csv: expected 2 values, found 3"),
        ('path,label\n"a,1\n', "invalid CSV in the manifest .*: unexpected end of data"),
        ("name,label\na,1\n", "no column `path` in .*: expected one of name, label"),
        ("", "no column `path`"),
        ("path,label\n,1\n", "invalid key in row 0 of .*: expected text in `path`, found ''"),
        ("path,label\ns3:///a,1\n", "invalid URL: expected s3://bucket/key"),
        ("path,label\ns3://x/a,1\ns3://y/a,1\n", "expected keys of one bucket, found x, y"),
        ("path,label\ns3://x/a,1\nb,1\n", r"expected keys of one bucket, found \(no base\), x"),
    ],
)
def test_invalid_tables(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Manifest(write(tmp_path, text), label="label").load()


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the manifest .*none.csv: No such file"):
        Manifest(tmp_path / "none.csv").load()
    with pytest.raises(
        ConfigError, match=r"expected one of .csv, .tsv, .parquet, .arrow, .feather, found `.xls`"
    ):
        Manifest("m.xls")
    with pytest.raises(ConfigError, match="without a store"):
        Manifest("s3://photos/m.csv").load()


def test_a_manifest_in_a_bucket_is_read_once_and_is_relative_to_its_folder() -> None:
    calls = []

    def read(url: str) -> bytes:
        calls.append(url)
        return b"path\na%20b.jpg\ns3://photos/other/c.jpg\n"

    manifest = Manifest("s3://photos/lists/m.csv")
    assert manifest.load(read) is manifest.load(read)
    assert manifest.load().keys == ["lists/a%20b.jpg", "other/c.jpg"]
    assert calls == ["s3://photos/lists/m.csv"]
    assert Manifest("s3://photos/m.csv").load(read).keys[0] == "a%20b.jpg"


def test_relative_keys_without_a_base_have_no_bucket(tmp_path: Path) -> None:
    rows = Manifest(write(tmp_path, "path\na\n")).load()
    assert rows.bucket is None
    with pytest.raises(ConfigError, match="needs a base: `Manifest"):
        rows.objects()


def test_labels_are_a_column_or_a_dict_per_row(tmp_path: Path) -> None:
    path = write(tmp_path, "path,label,w\na,cat,1\nb,dog,2\n")

    def labels(**options: Any) -> list[Any]:
        manifest = Manifest(path, **options)
        return manifest.labels(manifest.load())

    assert labels(label="label") == ["cat", "dog"]
    assert labels(label="label", columns=["w"]) == ["cat", "dog"]
    assert labels(columns=["w", "label"]) == [{"w": 1, "label": "cat"}, {"w": 2, "label": "dog"}]
    assert labels(columns="w") == [{"w": 1}, {"w": 2}]
    with pytest.raises(ConfigError, match="has no labels: name their column with `label=`"):
        labels()


def test_a_row_without_a_label_names_its_key(tmp_path: Path) -> None:
    manifest = Manifest(write(tmp_path, "path,label\na,cat\nb,\n"), label="label", base="s3://photos/x/")
    with pytest.raises(ConfigError, match="no label for `x/b`: expected a value in `label`"):
        manifest.labels(manifest.load())


def test_pickles_without_its_rows(tmp_path: Path) -> None:
    manifest = Manifest(
        write(tmp_path, "path,label\n" + "a,1\n" * 10_000), label="label", base="s3://photos/x/"
    )
    rows = manifest.load()
    data = pickle.dumps(manifest)
    assert len(data) < 1_000
    assert pickle.loads(data).load() == rows
