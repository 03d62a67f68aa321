"""A data set of Ray Data has the samples of a `Reader`, each once, in any number of tasks."""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray.data", reason="Ray is not installed")
sys.path.insert(0, str(Path(__file__).parents[1]))

import pushdown
import pushdown.ray
from pushdown import ConfigError, Sampling, Store
from pushdown.ray import _blocks, _cluster_pickle
from shards import FOLDER, files_of, put_shards
from stores import SECRET, start_gateway

RANDOM = "decode | random_resized_crop(32) | flip_h | to_float"
VARIABLE = "decode | resize(short=40)"
ENCODED = "decode | resize(short=40) | encode(png)"

Rows = dict[Any, tuple[bytes, object]]


def content(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(np.asarray(value).shape).encode() + np.asarray(value).tobytes()


def of_reader(source: Any, pipeline: Any, **options: Any) -> Rows:
    """Value and label of each sample of a reader in the order of the list, by key and member or index."""
    rows: Rows = {}
    for batch in pushdown.Reader(source, pipeline, **options, shuffle=False, sampling=Sampling(tail="short")):
        labels = [None] * len(batch) if batch.y is None else list(batch.y if isinstance(batch.y, list) else memoryview(batch.y))
        index = memoryview(batch.index)
        for row, (key, member, value) in enumerate(zip(batch.keys, batch.members, batch.values, strict=True)):
            rows[key, member or index[row]] = content(value), labels[row]
    return rows


def of_ray(ds: Any) -> Rows:
    """The same of a data set of Ray, in which each sample is once."""
    rows: Rows = {}
    for row in ds.iter_rows():
        name = row["key"], row.get("member") or row["index"]
        assert name not in rows
        rows[name] = content(row["x"]), row.get("y")
    return rows


@pytest.mark.parametrize("tasks", [1, 3, 100])
@pytest.mark.parametrize("pipeline", [RANDOM, VARIABLE, ENCODED])
def test_objects(cluster, source, options, pipeline, tasks):
    ds = pushdown.ray.read(source, pipeline, override_num_blocks=tasks, **options)
    expected = of_reader(source, pipeline, **options)
    assert of_ray(ds) == expected
    assert ds.count() == len(expected)


@pytest.fixture(scope="session")
def pattern(world) -> str:
    world.s3.create_bucket(Bucket="ray-shards")
    return put_shards(world.s3, "ray-shards", "sets/train-", files_of(world.s3, FOLDER), "ustar", 5)


@pytest.mark.parametrize("has_index", [True, False])
def test_members_of_shards(cluster, pattern, options, has_index, tmp_path):
    options = {**options, "labels": pushdown.Column("cls"), "columns": {"jpg": RANDOM, "json": "json"}}
    if has_index:
        options["index"] = tmp_path / "index.parquet"
        pushdown.index(pattern, options["index"], store=options["store"])
    ds = pushdown.ray.read(pattern, override_num_blocks=3, **options)
    expected = of_reader(pattern, None, **options)
    assert of_ray(ds) == expected and len(expected) > 10
    assert {row["json"]["label"] for row in ds.take_all()} == {"exif", "other"}
    assert ("index" in ds.schema().names) == has_index


@pytest.fixture(scope="session")
def rows(world) -> str:
    """Three objects of seven rows in row groups of three."""
    world.s3.create_bucket(Bucket="ray-rows")
    images = [entry["Key"] for entry in world.s3.list_objects_v2(Bucket="photos", Prefix="train/")["Contents"]]
    for part in range(3):
        bodies = [world.s3.get_object(Bucket="photos", Key=images[part + row])["Body"].read() for row in range(7)]
        table = pa.table({"image": [{"bytes": body, "path": None} for body in bodies], "label": range(part, part + 7)})
        body = io.BytesIO()
        pq.write_table(table, body, row_group_size=3)
        world.put("ray-rows", f"data/train-{part}.parquet", body.getvalue())
    return "s3://ray-rows/data/train-*.parquet"


@pytest.mark.parametrize("tasks", [1, 2, 4, 100])
@pytest.mark.parametrize("where", [None, "label > 4"])
def test_rows(cluster, rows, options, where, tasks):
    options = {**options, "labels": "label"}
    parquet = pushdown.Parquet(rows, where=where)
    ds = pushdown.ray.read(parquet, RANDOM, override_num_blocks=tasks, **options)
    expected = of_reader(parquet, RANDOM, **options)
    assert of_ray(ds) == expected
    assert len(expected) == (21 if where is None else 9) == ds.count()
    if where is None:
        # Row groups are not divided.
        tasks_of_rows = [task.metadata.num_rows for task in datasource(ds).get_read_tasks(tasks)]
        assert sum(tasks_of_rows) == 21 and len(tasks_of_rows) == min(tasks, 9)


def datasource(ds: Any) -> Any:
    return ds._logical_plan.dag.datasource


def test_counts_and_bytes_are_known_before_a_task_runs(cluster, source, options):
    ds = pushdown.ray.read(source, RANDOM, **options)
    samples = len(of_reader(source, RANDOM, **options))
    tasks = datasource(ds).get_read_tasks(4)
    assert sum(task.metadata.num_rows for task in tasks) == samples
    assert sum(task.metadata.size_bytes for task in tasks) == samples * 3 * 32 * 32 * 4 == datasource(ds).estimate_inmemory_data_size()
    skipping = pushdown.ray.read(source, RANDOM, on_error="skip", **options)
    assert datasource(skipping).get_read_tasks(1)[0].metadata.num_rows is None


def test_blocks_are_equal_each_time(cluster, source, options):
    """So that a block that is lost can be made again."""
    task = datasource(pushdown.ray.read(source, RANDOM, **options)).get_read_tasks(3)[1]
    again = pickle.loads(pickle.dumps(_pickled_bytes(task)))
    first, second = list(task()), list(task())
    assert len(first) > 1 and all(one.equals(other) for one, other in zip(first, second, strict=True))
    assert again


def _pickled_bytes(task: Any) -> bytes:
    """What a task pickles, apart from references to the object store."""
    pickled = task.read_fn.args[0]
    assert isinstance(pickled, _cluster_pickle.ClusterPickle)
    return pickled._pickled


def test_tasks_have_no_credentials(cluster, source, options):
    explicit = {**options, "store": Store(endpoint=options["store"].endpoint, credentials=("AKID", SECRET))}
    for call in (pushdown.ray.read, pushdown.ray.loader):
        with pytest.raises(ConfigError, match="in the environment of its workers"):
            call(source, RANDOM, **explicit)
    [task] = datasource(pushdown.ray.read(source, RANDOM, **options)).get_read_tasks(1)
    assert SECRET.encode() not in _pickled_bytes(task)


def test_the_list_is_stored_once(cluster, source, options, tmp_path, monkeypatch):
    tasks = datasource(pushdown.ray.read(source, RANDOM, **options)).get_read_tasks(8)
    assert len({id(task.read_fn.args[0]) for task in tasks}) == 1
    pickled = tasks[0].read_fn.args[0]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert len(pickled.open().objects) > 10
    assert list(tmp_path.iterdir()) == []
    [name] = pickled._files
    assert name.endswith(".objects") and b"train/other" not in _pickled_bytes(tasks[0])


def test_blocks_have_the_memory_of_batches(source, options):
    layout = _blocks.Layout(np.dtype("f4"), (3, 32, 32), has_members=False, has_indices=True, has_errors=False, leaves_out=False)
    batch = next(iter(pushdown.Reader(source, RANDOM, **options)))
    column = _blocks.to_block(batch, layout)["x"].chunk(0)
    addresses = {buffer.address for buffer in column.storage.buffers() if buffer is not None}
    assert batch.x.data_ptr in addresses


def test_bad_samples(cluster, world, options):
    world.s3.create_bucket(Bucket="ray-bad")
    [photo, *_] = world.s3.list_objects_v2(Bucket="photos", Prefix="train/")["Contents"]
    good = world.s3.get_object(Bucket="photos", Key=photo["Key"])["Body"].read()
    for name, body in {"a/1.jpg": good, "a/2.jpg": b"no photo", "b/3.jpg": good, "b/4.jpg": b""}.items():
        world.put("ray-bad", name, body)
    for pipeline, nothing in ((RANDOM, np.zeros((3, 32, 32), "f4")), (VARIABLE, np.zeros((0, 0, 0), "u1")), (ENCODED, None)):
        reported = pushdown.ray.read("s3://ray-bad/", pipeline, on_error="report", **options).take_all()
        errors = {row["key"]: row["error"] for row in reported}
        assert errors["a/1.jpg"] is None and errors["b/3.jpg"] is None
        assert errors["a/2.jpg"].startswith("UndecodableObject: ")
        for row in reported:
            if row["error"] is not None:
                assert row["x"] is None if nothing is None else np.array_equal(row["x"], nothing)
        skipped = pushdown.ray.read("s3://ray-bad/", pipeline, on_error="skip", **options)
        assert sorted(row["key"] for row in skipped.take_all()) == ["a/1.jpg", "b/3.jpg"]
        with pytest.raises(Exception, match=r"(?s)sample `a/2.jpg`.*UndecodableObject|sample `b/4.jpg`"):
            pushdown.ray.read("s3://ray-bad/", pipeline, **options).materialize()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"sampling": Sampling(rank=0, world=2)}, "ds.streaming_split"),
        ({"sampling": Sampling(limit=3)}, "ds.limit"),
        ({"sampling": Sampling(tail="even")}, '"short"'),
        ({"max_errors": 3, "on_error": "skip"}, "do not count together"),
    ],
)
def test_what_tasks_cannot_do_is_refused(source, options, given, expected):
    with pytest.raises(ConfigError, match=expected):
        pushdown.ray.read(source, RANDOM, **options, **given)
    with pytest.raises(ConfigError, match="have no bf16"):
        pushdown.ray.read(source, "decode | resize(8, 8) | to_float | cast(bf16)", **options)
    with pytest.raises(ConfigError, match="read_parquet"):
        pushdown.ray.read(pushdown.list(source, store=options["store"]), "select(columns=[a])", store=options["store"])


def test_a_replaced_object_is_read_anew(cluster, world, rows, options):
    """By the same call in the same processes."""
    world.s3.create_bucket(Bucket="ray-replaced")
    photos = world.s3.list_objects_v2(Bucket="photos", Prefix="train/")["Contents"][:2]
    for key in (photo["Key"] for photo in photos):
        world.put("ray-replaced", "a/1.jpg", world.s3.get_object(Bucket="photos", Key=key)["Body"].read())
        found = of_ray(pushdown.ray.read("s3://ray-replaced/", VARIABLE, **options))
        assert found == of_reader("s3://ray-replaced/", VARIABLE, **options)
    whole = world.s3.get_object(Bucket="ray-rows", Key="data/train-0.parquet")["Body"].read()
    fewer = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(whole)).slice(0, 2), fewer)
    table = {**options, "labels": "label"}
    for body, count in ((fewer.getvalue(), 2), (whole, 7)):
        world.put("ray-replaced", "rows/1.parquet", body)
        found = of_ray(pushdown.ray.read("s3://ray-replaced/rows/1.parquet", VARIABLE, **table))
        assert len(found) == count and found == of_reader("s3://ray-replaced/rows/1.parquet", VARIABLE, **table)


def test_a_data_set_without_rows_is_refused(cluster, rows, options):
    with pytest.raises(ConfigError, match="expected at least one row that satisfies `where`, found none"):
        pushdown.ray.read(pushdown.Parquet(rows, where="label > 999"), RANDOM, **{**options, "labels": "label"})


def test_functions_and_shuffles_are_those_of_python_and_ray(cluster, source, options):
    half = pushdown.Pipeline("decode | resize(16, 16) | to_float").then(lambda x: np.asarray(x)[:, :8])
    rows = pushdown.ray.read(source, half, **options).random_shuffle(seed=3).take_all()
    assert {row["x"].shape for row in rows} == {(3, 8, 16)}


def workers() -> list[psutil.Process]:
    """The processes that run tasks of this package."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "ray::Read" in " ".join(_command(child))]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_worker_is_killed_twice(cluster, source, options):
    def slow(value: Any) -> Any:
        import time

        time.sleep(0.5)
        return np.asarray(value)

    pipeline = pushdown.Pipeline(RANDOM).then(slow)
    expected = of_reader(source, RANDOM, **options)
    ds = pushdown.ray.read(source, pipeline, override_num_blocks=12, **options)
    killed, rows = [], {}
    for number, row in enumerate(ds.iter_rows()):
        name = row["key"], row["index"]
        assert name not in rows
        rows[name] = content(row["x"]), row["y"]
        if number in (0, 8):
            for process in workers()[:1]:
                os.kill(process.pid, signal.SIGKILL)
                killed.append(process.pid)
    assert len(killed) == 2
    assert rows == expected


def test_without_its_gateway_it_ends(cluster, world, source, tmp_path):
    process, addresses = start_gateway(tmp_path / "gateway", allow_store=world.upstream)
    process.stop()
    retry = pushdown.Retry(attempts=2)
    given = {
        "store": Store(endpoint=world.upstream, retry=retry),
        "gateway": f"http://{addresses['listen']}",
        "labels": "dir",
        "seed": 7,
    }
    # It reads plainly, or says what it cannot reach.
    assert of_ray(pushdown.ray.read(source, RANDOM, **given)) == of_reader(source, RANDOM, **given)
    with pytest.raises(Exception, match=r"(?s)UnavailableError.*cannot connect|cannot connect.*UnavailableError"):
        pushdown.ray.read(source, RANDOM, mode="pushdown", **given).materialize()
