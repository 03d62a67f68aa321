"""Archives of many programs: the members, contents and samples that Python's tarfile, GNU tar, bsdtar and WebDataset find in them."""

from __future__ import annotations

import importlib
import io
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pushdown
from archives import Archive, tars, zips
from pushdown import Sampling, Store

BUCKET = "archives"
TARS = {archive.name: archive for archive in tars()}
ZIPS = {archive.name: archive for archive in zips()}


@pytest.fixture(scope="module")
def stored(world: Any) -> str:
    """The URL of the folder with all archives."""
    world.s3.create_bucket(Bucket=BUCKET)
    for suffix, archives in ((".tar", TARS), (".zip", ZIPS)):
        for archive in archives.values():
            world.put(BUCKET, f"{archive.name}{suffix}", archive.body)
    return f"s3://{BUCKET}/"


def regular(archive: Archive) -> list[tuple[bytes, bytes]]:
    """Names and contents of the regular files that tarfile finds, in a stream as WebDataset reads it."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(archive.body), mode="r|*") as tar:
        for info in tar:
            if info.isreg():
                file = tar.extractfile(info)
                assert file is not None
                found.append((info.name.encode(errors="surrogateescape"), file.read()))
    return found


def listed(command: list[str], body: bytes) -> list[bytes]:
    """The names of the regular files in the long listing of GNU tar or bsdtar."""
    output = subprocess.run(command, input=body, capture_output=True, check=True).stdout
    # GNU tar lists the owner as one column, and a contiguous file with the letter C.
    columns = 5 if command[0] == "tar" else 8
    return [
        line.split(None, columns)[columns] for line in output.splitlines() if line.startswith((b"-", b"C"))
    ]


def samples_by_webdataset(archive: Archive) -> list[dict[str, bytes]]:
    """As `webdataset.tariterators.group_by_keys` forms them: consecutive regular files with one base name."""
    samples: list[dict[str, bytes]] = []
    for name, content in regular(archive):
        split = re.fullmatch(rb"((?:.*/|)[^.]+)[.]([^/]*)", name)
        if split is None or re.fullmatch(rb"__[^/]*__", name):
            continue
        base, extension = split.group(1).decode(errors="surrogateescape"), split.group(2).lower().decode()
        if not samples or samples[-1]["__key__"] != base.encode(errors="surrogateescape"):
            samples.append({"__key__": base.encode(errors="surrogateescape")})
        samples[-1][extension] = content
    return samples


def members(index: pushdown.ShardIndex, body: bytes) -> dict[str, bytes]:
    """The members by name, with the bytes at the places of the index."""
    rows = pa.table(index).to_pylist()
    found = {}
    for row in rows:
        start = row["offset"] + row["header_bytes"]
        found[row["member"]] = body[start : start + row["size"]]
    assert len(found) == len(rows)
    return found


def test_there_are_more_than_thirty() -> None:
    assert len(TARS) >= 30


@pytest.mark.parametrize("name", TARS)
def test_other_programs_read_them_alike(name: str) -> None:
    archive = TARS[name]
    names = [name for name, _ in regular(archive)]
    left_out = [name for name in archive.left_out if name in names]
    assert {name: content for name, content in regular(archive) if name not in left_out} == {
        name.encode(): content for name, content in archive.files.items()
    }
    quoting = ["--quoting-style=literal", "--show-transformed-names"]
    assert listed(["tar", "-P", "-tvf", "-", *quoting], archive.body) == names
    if archive.is_of_bsdtar and shutil.which("bsdtar"):
        found = listed(["bsdtar", "-tvf", "-"], archive.body)
        assert [
            re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), name) for name in found
        ] == names


@pytest.mark.parametrize("name", TARS)
def test_members_are_those_of_tarfile_but_for_what_is_left_out(endpoint: str, stored: str, name: str) -> None:
    archive = TARS[name]
    index = pushdown.index(f"{stored}{name}.tar", store=Store(endpoint=endpoint))
    found = members(index, archive.body)
    expected = [(name, content) for name, content in regular(archive) if name not in archive.left_out]
    assert [(name.encode(), content) for name, content in found.items()] == expected
    assert index.left_out == len(archive.left_out)


@pytest.mark.parametrize("name", ZIPS)
def test_members_are_those_of_zipfile(endpoint: str, stored: str, name: str) -> None:
    archive = ZIPS[name]
    with zipfile.ZipFile(io.BytesIO(archive.body)) as opened:
        expected = {info.filename: opened.read(info) for info in opened.infolist()}
    assert expected == archive.files
    index = pushdown.index(f"{stored}{name}.zip", store=Store(endpoint=endpoint))
    assert members(index, archive.body) == expected
    assert len(
        samples(
            pushdown.Reader(f"{stored}{name}.zip", "decode", index=index, columns=["cls"], store=Store(endpoint=endpoint))
        )
    ) == len([name for name in expected if name.endswith(".png")])


def samples(reader: Any) -> list[tuple[str, int, bytes | None]]:
    """Name, first pixel and class of each sample."""
    with reader:
        return [
            (member, int(pixels.flat[0]), None if label is None else bytes(label))
            for batch in reader
            for member, pixels, label in zip(
                batch.members, np.asarray(batch.x), batch.columns["cls"], strict=True
            )
        ]


@pytest.mark.parametrize("name", TARS)
def test_samples_are_those_of_webdataset_but_for_what_is_left_out(
    endpoint: str, stored: str, name: str
) -> None:
    archive = TARS[name]
    names = {name for name, _ in regular(archive)}
    left_out = {name.rpartition(b".")[0] for name in archive.left_out if name in names}
    expected = [
        (sample["__key__"].decode() + ".png", photo(sample["png"]), sample.get("cls"))
        for sample in samples_by_webdataset(archive)
        if "png" in sample and sample["__key__"] not in left_out
    ]
    url, options = f"{stored}{name}.tar", {"store": Store(endpoint=endpoint), "columns": ["cls"], "shuffle": False}
    index = pushdown.index(url, store=Store(endpoint=endpoint))
    assert samples(pushdown.Reader(url, "decode", index=index, sampling=Sampling(tail="short"), **options)) == expected
    assert samples(pushdown.Reader(url, "decode", **options)) == expected


def photo(content: bytes) -> int:
    image: Any = importlib.import_module("PIL.Image")
    return int(np.asarray(image.open(io.BytesIO(content))).flat[0])


def test_samples_of_webdataset_itself(tmp_path: Path) -> None:
    """In a process of its own, whose path has no folder of tests."""
    python = [sys.executable, "-P", "-c"]
    if subprocess.run([*python, "import webdataset"], capture_output=True).returncode != 0:
        pytest.skip("webdataset is not installed")
    for name, archive in TARS.items():
        (tmp_path / f"{name}.tar").write_bytes(archive.body)
    code = """
import pathlib, pickle, sys, webdataset
found = {path.stem: list(webdataset.WebDataset(str(path), shardshuffle=False)) for path in pathlib.Path(sys.argv[1]).iterdir()}
sys.stdout.buffer.write(pickle.dumps(found))
"""
    output = subprocess.run([*python, code, tmp_path], check=True, stdout=subprocess.PIPE).stdout
    for name, samples in pickle.loads(output).items():
        for sample in samples:
            sample["__key__"] = sample["__key__"].encode(errors="surrogateescape")
            del sample["__url__"], sample["__local_path__"]
        assert samples == samples_by_webdataset(TARS[name]), name
