"""Whole data sets: parts that other programs and readers read, warm caches, and calls that are stopped."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import numpy as np
import polars
import pytest
from conftest import photos
from PIL import Image

import pushdown
from pushdown import (
    BadSample,
    Column,
    ConfigError,
    JobProgress,
    NotAGatewayError,
    Plan,
    RefusedError,
    Sampling,
    Store,
)
from stores import ACCESS, SECRET, start_gateway

BUCKET, SOURCE = "whole", "s3://whole/train/"
RESIZED = "decode | resize(24, 20)"
PIPELINE = f"{RESIZED} | encode(png)"
CLASSES = ["cat", "dog"]
PART_SAMPLES = 4
FORMATS = ["wds", "parquet"]


class Sample(NamedTuple):
    pixels: bytes
    label: int

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.pixels).hexdigest()


def is_bad(key: str) -> bool:
    return key.endswith("bad.jpg")


@pytest.fixture(scope="module")
def keys(world: Any) -> list[str]:
    """Photos of two classes in the order of their keys; one of them is no photo."""
    world.s3.create_bucket(Bucket=BUCKET)
    world.s3.create_bucket(Bucket="parts")
    keys = []
    for number, photo in enumerate(photos()[:13]):
        key = f"train/{CLASSES[number % 3 // 2]}/{number:02}{photo.suffix}"
        world.put(BUCKET, key, photo.read_bytes())
        keys.append(key)
    world.put(BUCKET, "train/cat/bad.jpg", b"no photo")
    return sorted([*keys, "train/cat/bad.jpg"])


@pytest.fixture(scope="module")
def store(world: Any) -> Store:
    return Store(endpoint=world.endpoint)


@pytest.fixture(scope="module")
def expected(keys: list[str], store: Store) -> list[Sample]:
    """Pixels and labels as a reader of the source has them, without a gateway."""
    urls = [f"s3://{BUCKET}/{key}" for key in keys if not is_bad(key)]
    with pushdown.Reader(urls, RESIZED, store=store, labels="dir", mode="plain") as reader:
        assert reader.classes == CLASSES
        return read(reader)


def read(reader: pushdown.Reader) -> list[Sample]:
    """Pixels and labels of all samples in their order."""
    return [
        Sample(pixels.tobytes(), int(label))
        for batch in reader
        for pixels, label in zip(np.asarray(batch.x), np.asarray(batch.y), strict=True)
    ]


def objects_under(world: Any, prefix: str) -> dict[str, bytes]:
    """The objects of the bucket `parts` under a prefix, by their names."""
    listed = world.s3.list_objects_v2(Bucket="parts", Prefix=prefix).get("Contents", [])
    bodies = {entry["Key"]: world.s3.get_object(Bucket="parts", Key=entry["Key"])["Body"].read() for entry in listed}
    return {key.removeprefix(prefix): body for key, body in bodies.items()}


@pytest.fixture(scope="module")
def made(keys: list[str], store: Store) -> dict[str, pushdown.Materialized]:
    """The data set in both formats, at `s3://parts/FORMAT/`."""
    return {format: materialize(store, format, format) for format in FORMATS}


def materialize(store: Store, format: Any, target: str, **options: Any) -> pushdown.Materialized:
    settings = {"labels": "dir", "store": store, "samples_per_part": PART_SAMPLES, **options}
    return pushdown.materialize(SOURCE, PIPELINE, f"s3://parts/{target}/", format=format, **settings)


@pytest.fixture
def copies(world: Any, made: object, tmp_path: pathlib.Path) -> pathlib.Path:
    """Local copies of the parts, in a folder for each format."""
    for format in FORMATS:
        (tmp_path / format).mkdir()
        for name, body in objects_under(world, f"{format}/part-").items():
            (tmp_path / format / f"part-{name}").write_bytes(body)
    return tmp_path


@pytest.mark.parametrize("format", FORMATS)
def test_the_report_counts_parts_and_names_bad_samples(
    made: dict[str, pushdown.Materialized], keys: list[str], world: Any, store: Store, format: str
) -> None:
    done = made[format]
    parts = -(-len(keys) // PART_SAMPLES)
    assert (done.samples, done.parts, done.parts_written) == (len(keys) - 1, parts, parts)
    objects = objects_under(world, f"{format}/")
    assert {"_recipe.json", "_manifest.json"} < set(objects)
    assert done.bytes == sum(len(body) for name, body in objects.items() if name.startswith("part-"))
    (bad,) = done.errors
    assert (bad.name, bad.code, done.vanished) == ("cat/bad.jpg", "UndecodableObject", [])
    assert done.seconds > 0
    again = materialize(store, format, format)
    assert (again.parts_written, again.samples, again.errors) == (0, done.samples, [bad])
    assert objects_under(world, f"{format}/") == objects


def test_shards_are_a_source_of_readers(
    made: object, store: Store, expected: list[Sample], tmp_path: pathlib.Path
) -> None:
    labels, options = Column("cls"), {"store": store, "batch_size": 5}
    whole = Sampling(order="shards")
    with pushdown.Reader("s3://parts/wds/", "decode", labels=labels, sampling=whole, **options) as reader:
        assert read(reader) == expected
    index = pushdown.index("s3://parts/wds/", path=tmp_path / "wds.parquet", store=store)
    for mode in ("plain", "pushdown", "auto"):
        with pushdown.Reader(index, "decode", labels=labels, mode=mode, sampling=Sampling(tail="short"), **options) as reader:
            assert read(reader) == expected


@pytest.mark.parametrize("mode", ["plain", "pushdown", "auto"])
def test_parquet_is_a_source_of_readers(made: object, store: Store, expected: list[Sample], mode: Any) -> None:
    options: dict[str, Any] = {"store": store, "batch_size": 5, "sampling": Sampling(tail="short"), "mode": mode}
    with pushdown.Reader("s3://parts/parquet/part-*.parquet", "decode", labels="label", **options) as reader:
        assert read(reader) == expected


def decoded(image: bytes) -> bytes:
    return np.asarray(Image.open(io.BytesIO(image)).convert("RGB")).tobytes()


def lines(program: str, *arguments: object) -> list[str]:
    """What a program prints. This process has a folder `torch` of tests in its path, which other packages take for PyTorch."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    # Nothing is fetched.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(arguments[0])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_webdataset_reads_the_shards(copies: pathlib.Path, expected: list[Sample], keys: list[str]) -> None:
    program = """
        import hashlib, io, pathlib, sys, numpy, webdataset
        from PIL import Image
        urls = sorted(map(str, pathlib.Path(sys.argv[1], "wds").iterdir()))
        for sample in webdataset.WebDataset(urls, shardshuffle=False):
            image = Image.open(io.BytesIO(sample["png"])).convert("RGB")
            print(sample["__key__"], int(sample["cls"]), hashlib.sha256(numpy.asarray(image).tobytes()).hexdigest())
    """
    names = [key.removeprefix("train/").partition(".")[0] for key in keys if not is_bad(key)]
    samples = zip(names, expected, strict=True)
    assert lines(program, copies) == [f"{name} {sample.label} {sample.digest}" for name, sample in samples]


def test_datasets_reads_images_and_names_of_classes(copies: pathlib.Path, expected: list[Sample]) -> None:
    program = """
        import hashlib, pathlib, sys, datasets, numpy
        files = sorted(map(str, pathlib.Path(sys.argv[1], "parquet").iterdir()))
        rows = datasets.load_dataset("parquet", data_files=files, split="train")
        print(*rows.features["label"].names)
        for row in rows:
            print(row["label"], hashlib.sha256(numpy.asarray(row["image"].convert("RGB")).tobytes()).hexdigest())
    """
    found = lines(program, copies)
    assert found == [" ".join(CLASSES), *(f"{sample.label} {sample.digest}" for sample in expected)]


def test_duckdb_and_polars_read_the_rows(copies: pathlib.Path, expected: list[Sample], keys: list[str]) -> None:
    pattern = copies / "parquet" / "*.parquet"
    query = f"select key, label, image.bytes from read_parquet('{pattern}') order by key"
    found = duckdb.connect().execute(query).fetchall()
    names = [key.removeprefix("train/") for key in keys if not is_bad(key)]
    assert [key for key, _, _ in found] == names
    assert [Sample(decoded(image), label) for _, label, image in found] == expected
    rows = polars.read_parquet(pattern).sort("key")
    assert rows["key"].to_list() == names
    images = rows["image"].struct.field("bytes").to_list()
    assert [Sample(decoded(image), label) for image, label in zip(images, rows["label"], strict=True)] == expected


def test_arrays_are_values_of_both_formats(keys: list[str], world: Any, store: Store) -> None:
    urls = [f"s3://{BUCKET}/{key}" for key in keys if not is_bad(key)]
    pipeline = f"{RESIZED} | to_float"
    with pushdown.Reader(urls, pipeline, store=store, mode="plain") as reader:
        expected = [pixels for batch in reader for pixels in np.array(batch.x)]
    labels = [number / 4 for number in range(len(urls))]
    for format in FORMATS:
        options: dict[str, Any] = {"format": format, "labels": labels, "store": store}
        done = pushdown.materialize(urls, pipeline, f"s3://parts/arrays-{format}/", **options)
        assert (done.samples, done.errors) == (len(urls), [])
    (part,) = (body for name, body in objects_under(world, "arrays-parquet/").items() if name.endswith(".parquet"))
    rows = polars.read_parquet(io.BytesIO(part))
    assert rows["label"].to_list() == labels
    values = [np.asarray(value).ravel() for value in rows["value"].to_list()]
    assert all(np.array_equal(*pair) for pair in zip(values, [pixels.ravel() for pixels in expected], strict=True))
    files, columns = "s3://parts/arrays-parquet/part-*.parquet", "select(columns=[value, label])"
    with pushdown.TableReader(files, columns, store=store) as table:
        batches = list(table)
    assert np.array_equal(np.concatenate([np.array(batch["value"]) for batch in batches]), np.stack(expected))
    assert np.concatenate([np.array(batch["label"]) for batch in batches]).tolist() == labels
    index = pushdown.index("s3://parts/arrays-wds/", store=store)
    samples = index.samples(column="npy", columns=["json"])
    members = [(samples.key(number), samples.member(number)) for number in range(len(samples))]
    arrays = [pushdown.get(f"s3://parts/{key}", member=member, index=index, store=store) for key, member in members]
    assert all(np.array_equal(np.load(io.BytesIO(array)), pixels) for array, pixels in zip(arrays, expected, strict=True))


@pytest.mark.parametrize("format", FORMATS)
def test_this_host_makes_the_same_bytes(made: object, world: Any, format: str) -> None:
    tasks = len(os.listdir("/proc/self/task"))
    done = materialize(Store(endpoint=world.upstream), format, f"local-{format}", local=True)
    assert done.parts_written == done.parts
    assert objects_under(world, f"local-{format}/") == objects_under(world, f"{format}/")
    deadline = time.monotonic() + 5
    while len(os.listdir("/proc/self/task")) > tasks and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) <= tasks


def test_a_gateway_beside_the_stores_makes_the_same_bytes(made: object, world: Any, both: dict[str, Any]) -> None:
    target = Store(endpoint=world.upstream, credentials=(ACCESS, SECRET))
    options = {"gateway": both["gateway"], "target_store": target}
    done = materialize(both["store"], "wds", "beside", **options)
    assert done.parts_written == done.parts
    assert objects_under(world, "beside/") == objects_under(world, "wds/")


def test_a_plain_store_makes_no_parts(keys: list[str], world: Any) -> None:
    with pytest.raises(NotAGatewayError):
        materialize(Store(endpoint=world.upstream), "wds", "nowhere")
    with pytest.raises(NotAGatewayError):
        pushdown.warm(SOURCE, RESIZED, store=Store(endpoint=world.upstream))
    assert objects_under(world, "nowhere/") == {}


def test_a_dry_run_writes_nothing(keys: list[str], world: Any, store: Store) -> None:
    options: dict[str, Any] = {"format": "wds", "labels": "dir", "store": store, "samples_per_part": 5}
    estimate = pushdown.materialize(SOURCE, PIPELINE, "s3://parts/dry/", dry_run=True, **options)
    assert (estimate.samples, estimate.samples_per_part, estimate.parts, estimate.parts_done) == (len(keys), 5, 3, 0)
    assert estimate.bytes > 0
    assert objects_under(world, "dry/") == {}


def test_progress_reaches_all_samples(keys: list[str], store: Store) -> None:
    found: list[JobProgress] = []
    threads = {threading.get_ident()}

    def observe(progress: JobProgress) -> None:
        threads.add(threading.get_ident())
        found.append(progress)

    done = materialize(store, "wds", "progress", progress=observe)
    last = found[-1]
    assert (last.samples_done, last.samples, last.parts_done, last.parts) == (len(keys), len(keys), done.parts, done.parts)
    assert last.bytes == done.bytes
    counts = [progress.samples_done for progress in found]
    assert counts == sorted(counts)
    assert len(threads) == 1, "it runs where the call was made"


def test_another_recipe_and_new_objects_are_refused(keys: list[str], world: Any, store: Store) -> None:
    source = [f"s3://{BUCKET}/{key}" for key in keys if not is_bad(key)]

    def run(urls: list[str], pipeline: str = PIPELINE, **options: Any) -> pushdown.Materialized:
        settings: dict[str, Any] = {"format": "wds", "store": store, "labels": lambda key: len(key), **options}
        return pushdown.materialize(urls, pipeline, "s3://parts/grown/", **settings)

    first = run(source[:-1])
    with pytest.raises(ConfigError, match="another recipe: expected the pipeline"):
        run(source[:-1], "decode | resize(8, 8) | encode(png)")
    with pytest.raises(ConfigError, match=r"is complete, and 1 objects are new.*append"):
        run(source)
    grown = run(source, append=True)
    assert (grown.samples, grown.parts, grown.parts_written) == (first.samples + 1, first.parts + 1, 1)
    with pytest.raises(ConfigError, match="inside of the data set"):
        pushdown.materialize(SOURCE, PIPELINE, f"{SOURCE}small/", format="wds", store=store)
    with pytest.raises(RefusedError, match="NoSuchBucket"):
        pushdown.materialize(SOURCE, PIPELINE, "s3://no-such-bucket/", format="wds", store=store)


@pytest.fixture(scope="module")
def caching(world: Any, keys: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A gateway with a result cache."""
    with contextlib.ExitStack() as running:
        folder = tmp_path_factory.mktemp("caching") / "gateway"
        process, addresses = start_gateway(folder, upstream=world.upstream, cache_memory="64MiB")
        running.callback(process.stop)
        yield Store(endpoint=f"http://{addresses['listen']}")


def test_a_second_call_finds_what_the_first_one_has_cached(
    caching: Store, keys: list[str], expected: list[Sample]
) -> None:
    good = len(keys) - 1
    random = f"{RESIZED} | random_crop(16, 16) | to_float"
    first = pushdown.warm(SOURCE, random, store=caching, keep="1h")
    (bad,) = first.errors
    assert isinstance(bad, BadSample)
    assert (bad.name, bad.code) == ("train/cat/bad.jpg", "UndecodableObject")
    assert (first.samples, first.cached, first.found, first.not_cached) == (len(keys), good, 0, 0)
    assert first.cached_ratio == pytest.approx(good / len(keys))
    again = pushdown.warm(SOURCE, random, store=caching, keep=3600)
    assert (again.cached, again.found) == (good, good)
    assert 0 < again.wire_bytes_down < 10_000, "no values"
    # A reader begins with these values. It lists URLs without ETags.
    urls = [f"s3://{BUCKET}/{key}" for key in keys if not is_bad(key)]
    options: dict[str, Any] = {"store": caching, "mode": "pushdown", "labels": "dir", "plan": Plan(split=2)}
    with pushdown.Reader(urls, RESIZED, **options) as reader:
        assert read(reader) == expected
        assert reader.stats.gateway_cache_hits == good
    assert pushdown.warm(urls, RESIZED, store=caching).found == good


def test_a_stage_and_members_of_shards_are_cached(
    caching: Store, made: object, keys: list[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "wds.parquet"
    pushdown.index("s3://parts/wds/", path=path, store=caching)
    options: dict[str, Any] = {"store": caching, "index": path, "column": "png", "keep": "1h"}
    warmed = pushdown.warm("s3://parts/wds/", "decode | resize(8, 8) | to_float", stage=2, **options)
    assert (warmed.cached, warmed.found, warmed.cached_ratio) == (len(keys) - 1, 0, 1.0)
    assert pushdown.warm("s3://parts/wds/", "decode | resize(8, 8)", **options).found == len(keys) - 1


def test_a_forked_child_calls_as_its_parent(caching: Store, keys: list[str], tmp_path: pathlib.Path) -> None:
    program = """
        import os, sys, pushdown
        settings = {"store": pushdown.Store(endpoint=sys.argv[2]), "progress": False, "keep": "1h"}
        samples = pushdown.warm("s3://whole/train/", "decode | resize(9, 9)", **settings).cached
        child = os.fork()
        if child == 0:
            found = pushdown.warm("s3://whole/train/", "decode | resize(9, 9)", **settings).found
            os._exit(0 if found == samples else 1)
        print(samples, os.waitpid(child, 0)[1], len(os.listdir("/proc/self/task")))
    """
    assert lines(program, tmp_path, caching.endpoint) == [f"{len(keys) - 1} 0 1"]


def test_a_gateway_without_a_cache_is_an_error(keys: list[str], store: Store) -> None:
    with pytest.raises(pushdown.Error, match="--cache-memory"):
        pushdown.warm(SOURCE, RESIZED, store=store)


STOPPED = """
    import signal, sys, pushdown
    # A shell starts jobs in the background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    is_local, endpoint, target = sys.argv[1] == "local", *sys.argv[2:]
    # Each sample takes long, so that the call is far from its end.
    pipeline = "decode | resize(700, 700) | resize(701, 701) | encode(png)"
    options = {"format": "wds", "samples_per_part": 1, "local": is_local, "store": pushdown.Store(endpoint=endpoint)}

    def say(progress):
        if progress.parts_done:
            print("started", flush=True)

    try:
        pushdown.materialize("s3://whole/train/", pipeline, target, progress=say, **options)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    done = pushdown.materialize("s3://whole/train/", pipeline, target, progress=False, **options)
    print(done.samples, 0 < done.parts_written < done.parts)
"""


@pytest.mark.parametrize("place", ["gateway", "local"])
def test_ctrl_c_ends_a_call_and_the_next_one_goes_on(world: Any, keys: list[str], place: str) -> None:
    endpoint = world.endpoint if place == "gateway" else world.upstream
    command = [sys.executable, "-c", textwrap.dedent(STOPPED), place, endpoint, f"s3://parts/stopped-{place}/"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "started\n"
            child.send_signal(signal.SIGINT)
            start = time.monotonic()
            while (line := child.stdout.readline()) == "started\n":
                pass
            seconds = time.monotonic() - start
            output, errors = child.communicate(timeout=120)
        finally:
            child.kill()
    assert (line, output, errors) == ("interrupted\n", f"{len(keys) - 1} True\n", "")
    # A second, and some for a machine that does other work.
    assert seconds < 3
