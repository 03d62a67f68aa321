"""Members of shards as samples: values, columns, labels, order, resume, and shards that change."""

from __future__ import annotations

import dataclasses
import json
import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Sampling, Store
from samples import PIPELINE, Sample, samples, samples_of
from shards import CLASSES, FOLDER, files_of, put_shards, tar_of

BUCKET = "shards"
RESIZED = "decode | resize(32, 32) | to_float"
SHARDS = 3


@pytest.fixture(scope="module")
def files(world: Any) -> dict[str, bytes]:
    """The members of all shards, which are loose objects as well."""
    world.s3.create_bucket(Bucket=BUCKET)
    files = files_of(world.s3, FOLDER)
    for name, content in files.items():
        world.put(BUCKET, f"loose/{name}", content)
    return files


@pytest.fixture(scope="module")
def pattern(world: Any, files: dict[str, bytes]) -> str:
    return put_shards(world.s3, BUCKET, "sets/train-", files, "ustar", SHARDS)


@pytest.fixture(scope="module")
def index(endpoint: str, pattern: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "train.parquet"
    pushdown.index(pattern, path=path, store=Store(endpoint=endpoint))
    return path


@pytest.fixture(scope="module")
def settings(endpoint: str, index: Path) -> dict[str, Any]:
    labels = pushdown.Column("cls")
    return {
        "store": Store(endpoint=endpoint),
        "index": index,
        "batch_size": 4,
        "labels": labels,
        "seed": 7,
        "sampling": Sampling(tail="short"),
    }


@pytest.fixture(scope="module")
def loose(endpoint: str, files: dict[str, bytes]) -> dict[str, bytes]:
    """The pixels of the loose objects, by the name of the member."""
    keys = [f"s3://{BUCKET}/loose/{name}" for name in files if name.endswith((".jpg", ".png"))]
    with pushdown.Reader(keys, RESIZED, store=Store(endpoint=endpoint), batch_size=4) as reader:
        return {
            key.removeprefix("loose/"): pixels.tobytes()
            for batch in reader
            for key, pixels in zip(batch.keys, np.asarray(batch.x), strict=True)
        }


@pytest.mark.parametrize("mode", ["pushdown", "plain", "auto"])
@pytest.mark.parametrize("format", ["ustar", "gnu", "pax", "zip"])
def test_members_have_the_values_of_loose_objects(
    world: Any, files: dict[str, bytes], loose: dict[str, bytes], format: str, mode: Any
) -> None:
    pattern = put_shards(world.s3, BUCKET, f"{format}-{mode}-", files, format, SHARDS)
    index = pushdown.index(pattern, store=Store(endpoint=world.endpoint))
    assert len(index) == len(files)
    with pushdown.Reader(
        index, RESIZED, store=Store(endpoint=world.endpoint), batch_size=4, seed=7, sampling=Sampling(tail="short"), mode=mode
    ) as reader:
        found = {
            member: pixels.tobytes()
            for batch in reader
            for member, pixels in zip(batch.members, np.asarray(batch.x), strict=True)
        }
    assert found == loose


def test_get_reads_one_member(
    world: Any, index: Path, files: dict[str, bytes], loose: dict[str, bytes]
) -> None:
    """Through the gateway, and from the plain store."""
    objects = pushdown.ShardIndex.load(index).members
    places = {objects.member(number): objects.key(number) for number in range(len(objects))}
    name = next(iter(loose))
    url = f"s3://{BUCKET}/{places[name]}"
    lookups: list[dict[str, Any]] = [{}, {"index": index}]
    for endpoint in (world.endpoint, world.upstream):
        for lookup in lookups:
            settings = {"member": name, "store": Store(endpoint=endpoint), **lookup}
            assert np.asarray(pushdown.get(url, RESIZED, **settings)).tobytes() == loose[name]
            assert pushdown.get(url, **settings) == files[name]
        with pytest.raises(pushdown.ConfigError, match=r"found no member `no\.jpg`"):
            pushdown.get(url, member="no.jpg", store=Store(endpoint=endpoint))


def test_columns_are_the_members_of_a_base_name(
    settings: dict[str, Any], pattern: str, files: dict[str, bytes]
) -> None:
    kinds = {"cls": "text", "json": "json"}
    with pushdown.Reader(pattern, RESIZED, columns=kinds, **settings) as reader:
        batches = list(reader)
    for batch in batches:
        for row, member in enumerate(batch.members):
            assert member is not None
            base = member.rpartition(".")[0]
            assert batch.columns["cls"][row] == files[f"{base}.cls"].decode(), "nothing is stripped"
            assert batch.columns["json"][row] == json.loads(files[f"{base}.json"])
            assert np.asarray(batch.y)[row] == int(files[f"{base}.cls"])
            assert batch.keys[row].startswith("sets/train-")
    assert sum(len(batch) for batch in batches) == len(files) // 3


def test_one_dict_has_the_pipeline_and_the_columns(
    world: Any, endpoint: str, files: dict[str, bytes]
) -> None:
    """Names with several dots: the extension begins at the first one."""
    jpegs = {name: content for name, content in files.items() if name.endswith(".jpg")}
    members = {}
    for number, content in enumerate(jpegs.values()):
        members |= {f"a.b/{number}.seg.png": str(number).encode(), f"a.b/{number}.JPG": content}
    world.put(BUCKET, "dots-0.tar", tar_of(members, "gnu"))
    columns: dict[str, Any] = {"jpg": RESIZED, "seg.png": "int"}
    index = pushdown.index(f"s3://{BUCKET}/dots-0.tar", store=Store(endpoint=endpoint))
    with pushdown.Reader(index, columns=columns, store=Store(endpoint=endpoint), batch_size=len(jpegs)) as reader:
        (batch,) = reader
    assert np.asarray(batch.columns["seg.png"]).tolist() == list(range(len(jpegs)))
    assert np.asarray(batch.x).shape == (len(jpegs), 3, 32, 32)


@pytest.mark.parametrize(
    "labels",
    [
        pushdown.Column("cls"),
        pushdown.Column("json", "label", parse="text", classes=CLASSES),
        "dir",
        r"/(\w+)/\d+\.\w+$",
    ],
    ids=["cls", "json", "dir", "pattern"],
)
@pytest.mark.parametrize("mode", ["pushdown", "plain"])
def test_labels_are_those_of_folders(settings: dict[str, Any], pattern: str, labels: Any, mode: Any) -> None:
    with pushdown.Reader(pattern, RESIZED, **{**settings, "labels": labels, "mode": mode}) as reader:
        for batch in reader:
            names = [str(member).split("/")[-2] for member in batch.members]
            assert [CLASSES[label] for label in np.asarray(batch.y)] == names
        assert reader.classes in ([], CLASSES)


def test_a_bad_label_and_a_bad_photo_are_errors_by_name(
    world: Any, endpoint: str, files: dict[str, bytes]
) -> None:
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
    index = pushdown.index(f"s3://{BUCKET}/bad-0.tar", store=Store(endpoint=endpoint))
    options: dict[str, Any] = {"store": Store(endpoint=endpoint), "batch_size": 3, "labels": pushdown.Column("cls")}
    with pushdown.Reader(index, RESIZED, **options, on_error="report") as reader:
        (batch,) = reader
        assert (reader.stats.samples, reader.stats.errors) == (1, 2)
    assert np.asarray(batch.valid).tolist() == [False, False, True]
    assert np.asarray(batch.y).tolist() == [0, 0, 3]
    assert not np.asarray(batch.x)[:2].any()
    assert [(error.member, error.code) for error in batch.errors] == [
        ("1.jpg", "InvalidLabel"),
        ("2.jpg", "UndecodableObject"),
    ]
    with (
        pytest.raises(pushdown.SampleError, match=r"bad-0\.tar member 1\.jpg"),
        pushdown.Reader(index, RESIZED, **options) as reader,
    ):
        list(reader)


@pytest.mark.parametrize("mode", ["pushdown", "plain"])
def test_a_replaced_shard_is_an_error_of_its_samples(
    world: Any, endpoint: str, files: dict[str, bytes], mode: Any
) -> None:
    pattern = put_shards(world.s3, BUCKET, f"replaced-{mode}-", files, "ustar", 2)
    index = pushdown.index(pattern, store=Store(endpoint=endpoint))
    world.put(BUCKET, f"replaced-{mode}-001.tar", tar_of(files, "ustar"))
    options: dict[str, Any] = {
        "store": Store(endpoint=endpoint),
        "batch_size": 4,
        "seed": 7,
        "sampling": Sampling(tail="short"),
        "mode": mode,
    }
    with pushdown.Reader(index, RESIZED, **options, on_error="report") as reader:
        batches = list(reader)
    failed = {error.member: error.code for batch in batches for error in batch.errors}
    replaced = index.select(pattern.replace("{000..001}", "001")).samples()
    assert failed == dict.fromkeys(replaced.paths(), "ShardReplaced")
    assert sum(int(np.asarray(batch.valid).sum()) for batch in batches) == len(files) // 3 - len(replaced)


@pytest.fixture(scope="module", params=["global", "shards"])
def ordered(request: pytest.FixtureRequest, settings: dict[str, Any]) -> dict[str, Any]:
    buffer = {"buffer": 6} if request.param == "shards" else {}
    return {**settings, "sampling": Sampling(tail="short", order=request.param, **buffer)}


@pytest.fixture(scope="module")
def expected(ordered: dict[str, Any], pattern: str) -> list[Sample]:
    with pushdown.Reader(pattern, PIPELINE, **ordered) as reader:
        return samples(reader)


@pytest.mark.parametrize("mode", ["pushdown", "plain"])
def test_augmented_pixels_are_the_same_in_every_mode(
    ordered: dict[str, Any], pattern: str, expected: list[Sample], mode: Any
) -> None:
    with pushdown.Reader(pattern, PIPELINE, **ordered, mode=mode) as reader:
        assert samples(reader) == expected


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_any_world_reads_the_same_samples(
    ordered: dict[str, Any], pattern: str, expected: list[Sample], ranks: int
) -> None:
    read = []
    for rank in range(ranks):
        sampling = dataclasses.replace(ordered["sampling"], rank=rank, world=ranks)
        with pushdown.Reader(pattern, PIPELINE, **{**ordered, "sampling": sampling}) as reader:
            read += samples(reader)
    assert sorted(read) == expected


@pytest.mark.parametrize("seed", range(3))
def test_a_run_resumes_in_any_world(
    ordered: dict[str, Any], pattern: str, expected: list[Sample], seed: int
) -> None:
    draw = random.Random(seed)
    state: dict[str, Any] | None = None
    read: list[Sample] = []
    while state is None or state["epoch"] == 0:
        world, batch_size, stop = draw.choice([1, 2, 3]), draw.choice([1, 3, 5]), draw.randint(1, 3)
        states = []
        for rank in range(world):
            sampling = dataclasses.replace(ordered["sampling"], rank=rank, world=world)
            options = {**ordered, "batch_size": batch_size, "sampling": sampling}
            with pushdown.Reader(pattern, PIPELINE, **options) as reader:
                if state is not None:
                    reader.load_state_dict(json.loads(json.dumps(state)))
                for _, batch in zip(range(stop), reader, strict=False):
                    read += samples_of(batch)
                states.append(reader.state_dict())
        assert all(other == states[0] for other in states)
        state = states[0]
        assert len(json.dumps(state)) < 300
    assert sorted(read) == expected


def test_the_order_of_shards_reads_one_shard_after_the_other(settings: dict[str, Any], pattern: str) -> None:
    orders = []
    sampling = Sampling(tail="short", order="shards", buffer=1)
    with pushdown.Reader(pattern, RESIZED, **{**settings, "sampling": sampling}) as reader:
        for _ in range(8):
            keys = [key for batch in reader for key in batch.keys]
            orders.append(list(dict.fromkeys(keys)))
            assert keys == [key for shard in orders[-1] for key in keys if key == shard]
    assert len({tuple(order) for order in orders}) > 1, "each epoch shuffles the shards"


def read_all(reader: pushdown.Reader, worker: int) -> list[Sample]:
    with reader:
        return [sample for batch in reader.iterate(pushdown.Worker(worker, 2)) for sample in samples_of(batch)]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_readers_of_shards_work_in_other_processes(
    ordered: dict[str, Any], pattern: str, expected: list[Sample], method: str
) -> None:
    reader = pushdown.Reader(pattern, PIPELINE, **ordered)
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as processes:
        parts = [processes.submit(read_all, reader, worker) for worker in range(2)]
        assert sorted(sample for part in parts for sample in part.result(timeout=60)) == expected


def test_an_index_is_a_table(
    endpoint: str, index: Path, pattern: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    loaded = pushdown.ShardIndex.load(index)
    table = pa.table(loaded)
    sizes = dict(zip(table["member"].to_pylist(), table["size"].to_pylist(), strict=True))
    assert sizes == {name: len(content) for name, content in files.items()}
    assert len(pq.read_table(index)) == len(files), "the file is one, too"
    samples = pushdown.list(pattern, index=loaded, columns=["cls"], store=Store(endpoint=endpoint))
    samples.save(tmp_path / "samples.arrow")
    again = pushdown.Objects.load(tmp_path / "samples.arrow")
    assert (again.digest, again.columns, len(again)) == (samples.digest, ["cls"], len(files) // 3)
    assert pushdown.list(pattern, columns=["cls"], store=Store(endpoint=endpoint)).digest == samples.digest
    everything = pushdown.index(f"s3://{BUCKET}/sets/", store=Store(endpoint=endpoint)).select(pattern)
    assert everything.members.digest == loaded.members.digest


def test_shards_are_refused_by_name(world: Any, endpoint: str, pattern: str) -> None:
    with pytest.raises(pushdown.ConfigError, match="run `pushdown index 's3://shards/sets/train-"):
        pushdown.explain(pattern, RESIZED, store=Store(endpoint=endpoint))
    with pytest.raises(pushdown.Error, match=r"none\.tar"):
        pushdown.index(f"s3://{BUCKET}/none.tar", store=Store(endpoint=endpoint))
    world.put(BUCKET, "broken.tar", b"no tar" * 1000)
    with pytest.raises(pushdown.Error, match=r"broken\.tar"):
        pushdown.index(f"s3://{BUCKET}/broken.tar", store=Store(endpoint=endpoint))
    with pytest.raises(pushdown.ConfigError, match=r"expected a key that ends in \.tar or \.zip"):
        pushdown.index(f"s3://{BUCKET}/loose.txt", store=Store(endpoint=endpoint))
