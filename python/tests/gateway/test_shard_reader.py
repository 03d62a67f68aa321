"""Shards without an index: values, columns, labels, errors, and resume."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import random
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import pushdown
from pushdown import Sampling, Store
from samples import PIPELINE
from shards import CLASSES, FOLDER, files_of, put_compressed, put_shards, tar_of

BUCKET = "whole-shards"
RESIZED = "decode | resize(32, 32) | to_float"
BUFFER = 6


class Sample(NamedTuple):
    """A row as readers with and without an index have it."""

    position: int
    member: str | None
    label: int
    pixels: str


def samples_of(batch: pushdown.Batch) -> list[Sample]:
    x, y, positions = np.asarray(batch.x), np.asarray(batch.y), np.asarray(batch.position)
    return [
        Sample(int(positions[n]), member, int(y[n]), hashlib.sha256(x[n].tobytes()).hexdigest()[:16])
        for n, member in enumerate(batch.members)
    ]


def samples(batches: Iterable[pushdown.Batch]) -> list[Sample]:
    return [sample for batch in batches for sample in samples_of(batch)]


@pytest.fixture(scope="module")
def files(world: Any) -> dict[str, bytes]:
    world.s3.create_bucket(Bucket=BUCKET)
    return files_of(world.s3, FOLDER)


@pytest.fixture(scope="module")
def pattern(world: Any, files: dict[str, bytes]) -> str:
    return put_shards(world.s3, BUCKET, "sets/train-", files, "ustar", 5)


@pytest.fixture(scope="module")
def settings(endpoint: str) -> dict[str, Any]:
    return {
        "store": Store(endpoint=endpoint),
        "batch_size": 4,
        "labels": pushdown.Column("cls"),
        "seed": 7,
        "sampling": Sampling(buffer=BUFFER),
    }


@pytest.fixture(scope="module")
def index(endpoint: str, pattern: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "train.parquet"
    pushdown.index(pattern, path=path, store=Store(endpoint=endpoint))
    return path


def read_indexed(
    settings: dict[str, Any], pattern: str, index: Path, pipeline: str, epochs: int
) -> list[list[Sample]]:
    sampling = Sampling(order="shards", buffer=BUFFER, tail="short")
    options = {**settings, "index": index, "sampling": sampling}
    with pushdown.Reader(pattern, pipeline, **options) as reader:
        return [samples(reader) for _ in range(epochs)]


@pytest.fixture(scope="module")
def expected(settings: dict[str, Any], pattern: str, index: Path) -> list[Sample]:
    return read_indexed(settings, pattern, index, PIPELINE, 1)[0]


def test_a_reader_equals_an_indexed_one(settings: dict[str, Any], pattern: str, index: Path) -> None:
    first, second = read_indexed(settings, pattern, index, PIPELINE, 2)
    with pushdown.Reader(pattern, PIPELINE, **settings) as reader:
        assert samples(reader) == first
        assert (reader.epoch, reader.stats.samples, reader.stats.errors) == (1, len(first), 0)
        assert samples(reader) == second, "a complete pass goes on to the next epoch"
    prefix = f"s3://{BUCKET}/sets/"
    by_shards = dataclasses.replace(settings["sampling"], order="shards")
    with pushdown.Reader(prefix, PIPELINE, **{**settings, "sampling": by_shards}) as reader:
        assert len(reader.objects) == 5
        assert samples(reader) == first


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_shards_have_the_same_samples(
    world: Any, settings: dict[str, Any], files: dict[str, bytes], index: Path, pattern: str, suffix: str
) -> None:
    """Random steps draw by the key of the shard, which is another one."""
    (expected,) = read_indexed(settings, pattern, index, RESIZED, 1)
    copies = put_shards(world.s3, BUCKET, f"{suffix[1:]}-", files, "ustar", 5)
    with pushdown.Reader(
        put_compressed(world.s3, BUCKET, copies, suffix), RESIZED, **settings
    ) as reader:
        assert samples(reader) == expected


def test_columns_and_labels_are_the_members_of_a_base_name(
    settings: dict[str, Any], pattern: str, files: dict[str, bytes]
) -> None:
    labels = pushdown.Column("json", "label", parse="text", classes=CLASSES)
    columns: dict[str, Any] = {"cls": "int", "json": "json"}
    with pushdown.Reader(
        pattern, RESIZED, **{**settings, "labels": labels, "columns": columns}
    ) as reader:
        batches = list(reader)
        assert reader.classes == CLASSES
    for batch in batches:
        for row, member in enumerate(batch.members):
            assert member is not None
            base = member.rpartition(".")[0]
            assert np.asarray(batch.columns["cls"])[row] == int(files[f"{base}.cls"])
            assert batch.columns["json"][row] == json.loads(files[f"{base}.json"])
            assert CLASSES[np.asarray(batch.y)[row]] == base.split("/")[-2]
            assert batch.keys[row] == reader.objects.key(int(np.asarray(batch.index)[row]))
    assert sum(len(batch) for batch in batches) == len(files) // 3


def test_functions_run_after_the_pipeline(
    settings: dict[str, Any], pattern: str, expected: list[Sample]
) -> None:
    brighter = pushdown.Pipeline(PIPELINE).then(lambda value: np.asarray(value) + 1)
    with pushdown.Reader(pattern, brighter, **settings) as reader:
        batches = list(reader)
    assert min(float(np.asarray(batch.x).min()) for batch in batches) >= 1
    assert [member for batch in batches for member in batch.members] == [row.member for row in expected]


@pytest.fixture(scope="module")
def bad(world: Any, files: dict[str, bytes]) -> str:
    """A shard with a bad label, a bad photo and a good sample, and one that ends in its second photo."""
    photo = next(content for name, content in files.items() if name.endswith(".jpg"))
    members = {
        "1.jpg": photo,
        "1.cls": b"dog",
        "2.jpg": b"no photo",
        "2.cls": b"2",
        "3.jpg": photo,
        "3.cls": b"3",
    }
    world.put(BUCKET, "bad-0.tar", tar_of(members, "ustar"))
    body = tar_of({"4.jpg": photo, "4.cls": b"4", "5.jpg": photo}, "ustar")
    world.put(BUCKET, "bad-1.tar", body[: body.index(b"5.jpg\0") + 512 + len(photo) // 2])
    return f"s3://{BUCKET}/bad-{{0..1}}.tar"


def test_errors_name_member_or_shard(endpoint: str, bad: str) -> None:
    options: dict[str, Any] = {"store": Store(endpoint=endpoint), "batch_size": 2, "labels": pushdown.Column("cls")}
    with pushdown.Reader(bad, RESIZED, **options, on_error="report") as reader:
        batches = list(reader)
        assert (reader.stats.samples, reader.stats.errors) == (2, 3)
    errors = [error for batch in batches for error in batch.errors]
    assert [(error.key, error.member) for error in errors] == [
        ("bad-0.tar", "1.jpg"),
        ("bad-0.tar", "2.jpg"),
        ("bad-1.tar", None),
    ]
    assert [error.code for error in errors[:2]] == ["InvalidLabel", "UndecodableObject"]
    with pushdown.Reader(bad, RESIZED, **options, on_error="skip") as reader:
        members = [member for batch in reader for member in batch.members]
        assert members == ["3.jpg", "4.jpg"], "the first batch is left out"
    for stopping in ({}, {"on_error": "skip", "max_errors": 2}):
        with (
            pytest.raises(pushdown.SampleError, match=r"bad-[01]\.tar"),
            pushdown.Reader(bad, RESIZED, **{**options, **stopping}) as reader,
        ):
            list(reader)


@pytest.mark.parametrize("has_functions", [False, True])
@pytest.mark.parametrize("batches", range(4))
def test_a_reader_goes_on_exactly_with_its_own_state(
    settings: dict[str, Any], pattern: str, batches: int, has_functions: bool
) -> None:
    """Functions run ahead of the consumer; the state does not."""
    pipeline = pushdown.Pipeline(PIPELINE)
    options = {**settings, "sampling": Sampling(buffer=BUFFER, rank=1, world=2)}
    with pushdown.Reader(pattern, pipeline, **options) as reader:
        whole = samples(reader)
    first = pushdown.Reader(pattern, pipeline.then(np.asarray) if has_functions else pipeline, **options)
    consumed = iter(first)
    seen = samples(batch for _, batch in zip(range(batches), consumed, strict=False))
    state = json.loads(json.dumps(first.state_dict()))
    assert len(json.dumps(state)) < 1000 + 200 * BUFFER
    pickled = pickle.dumps(pushdown.Reader(pattern, pipeline, **options))
    consumed.close()
    with pushdown.Reader(pattern, pipeline, **options) as reader:
        reader.load_state_dict(state)
        assert reader.state_dict() == state
        copy = pickle.loads(pickle.dumps(reader))
        assert seen + samples(reader) == whole
        assert reader.epoch == 1
    assert len(pickled) < 4096
    assert seen + samples(copy) == whole


@pytest.mark.parametrize("seed", range(4))
def test_a_run_resumes_in_any_world(
    settings: dict[str, Any], pattern: str, expected: list[Sample], seed: int
) -> None:
    draw = random.Random(seed)
    states: list[dict[str, Any]] = []
    read: list[Sample] = []
    while not states or any(state["epoch"] == 0 for state in states):
        world, batch_size = draw.choice([1, 2, 3]), draw.choice([1, 3, 5])
        saved = []
        for rank in range(world):
            sampling = Sampling(buffer=BUFFER, rank=rank, world=world)
            options = {**settings, "batch_size": batch_size, "sampling": sampling}
            with pushdown.Reader(pattern, PIPELINE, **options) as reader:
                if states:
                    reader.load_state_dict(states)
                # Readers stop after different numbers of batches, some of them at the end of the epoch.
                stop = draw.randint(0, 4) if reader.epoch == 0 else 0
                read += samples(batch for _, batch in zip(range(stop), reader, strict=False))
                saved.append(json.loads(json.dumps(reader.state_dict())))
        states = saved
    by_member = {row.member: row._replace(position=0) for row in read}
    assert len(by_member) == len(read), "no sample twice"
    assert by_member == {row.member: row._replace(position=0) for row in expected}


def test_states_of_others_are_refused(settings: dict[str, Any], pattern: str) -> None:
    reader = pushdown.Reader(pattern, PIPELINE, **settings)
    state = reader.state_dict()
    for other, found in (
        (pushdown.Reader(pattern, PIPELINE, **{**settings, "seed": 8}), "the seed 8, found 7"),
        (pushdown.Reader(pattern, RESIZED, **settings), "the pipeline"),
        (pushdown.Reader(pattern.replace("{000", "{001"), PIPELINE, **settings), "the data set"),
    ):
        with pytest.raises(pushdown.StateError, match=found):
            other.load_state_dict(state)
    first_of_two = {**settings, "sampling": Sampling(buffer=BUFFER, rank=0, world=2)}
    reader.load_state_dict(pushdown.Reader(pattern, PIPELINE, **first_of_two).state_dict())
    with pytest.raises(pushdown.ConfigError, match="the state of rank 1 of 2 is missing"):
        iter(reader)


def test_what_does_not_apply_is_refused(settings: dict[str, Any], pattern: str) -> None:
    with pytest.raises(TypeError, match=r"no len\(\)"):
        len(pushdown.Reader(pattern, RESIZED, **settings))
    with pytest.raises(pushdown.ConfigError, match='order="global" does not apply to shards without an index: expected "shards"'):
        pushdown.Reader(pattern, RESIZED, sampling=Sampling(order="global"), store=settings["store"])
    with pytest.raises(pushdown.ConfigError, match="the directory of a zip is at its end"):
        pushdown.Reader(f"s3://{BUCKET}/train-0.zip", RESIZED, **settings)
    with pytest.raises(pushdown.ConfigError, match="named twice"):
        pushdown.Reader([f"s3://{BUCKET}/0.tar"] * 2, RESIZED, **settings)


def read_all(reader: pushdown.Reader, worker: int) -> list[Sample]:
    with reader:
        return samples(reader.iterate(pushdown.Worker(worker, 2)))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_readers_work_in_other_processes(
    settings: dict[str, Any], pattern: str, expected: list[Sample], method: str
) -> None:
    reader = pushdown.Reader(pattern, PIPELINE, **settings)
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as processes:
        parts = [processes.submit(read_all, reader, worker) for worker in range(2)]
        read = [sample for part in parts for sample in part.result(timeout=60)]
    unordered = [sorted(row._replace(position=0) for row in rows) for rows in (read, expected)]
    assert unordered[0] == unordered[1]
