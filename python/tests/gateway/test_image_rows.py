"""Images in a column, as Hugging Face stores them: batches like those of loose objects."""

from __future__ import annotations

import http.client
import http.server
import io
import json
import os
import pathlib
import pickle
import threading
import time
import urllib.request
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pushdown
from pushdown import Plan, Sampling, Store
from pushdown._kinds import choose_kind
from pushdown._settings import SourceKind
from pushdown.options import Options

PHOTOS = pathlib.Path(__file__).resolve().parents[3] / "testkit/fixtures/photos"
INNER = "decode | resize(24, 20) | to_float | normalize(imagenet)"
RANDOM = "decode | random_resized_crop(20) | flip_h | to_float"
FILES = ("jpeg_420.jpg", "jpeg_444.jpg", "jpeg_grey.jpg", "jpeg_large.jpg", "png_rgb.png", "png_palette.png", "png_grey.png")


@pytest.fixture(scope="module")
def images(world: Any) -> list[bytes]:
    """The images of all rows in their order, which are also loose objects `loose/NN`."""
    images = [(PHOTOS / name).read_bytes() for name in FILES] * 3
    world.s3.create_bucket(Bucket="columns")
    for part in range(3):
        rows = range(part * len(FILES), (part + 1) * len(FILES))
        table = pa.table(
            {
                "image": [{"bytes": images[row], "path": f"{row}.img"} for row in rows],
                "label": [row % 5 for row in rows],
                "caption": [f"row {row}" for row in rows],
            }
        )
        body = io.BytesIO()
        pq.write_table(table, body, row_group_size=3)
        world.put("columns", f"data/train-{part}.parquet", body.getvalue())
    world.put("columns", "data/README.md", b"no data")
    for row, image in enumerate(images):
        world.put("columns", f"loose/{row:02}", image)
    return images


@pytest.fixture
def settings(endpoint: str) -> dict[str, Any]:
    return {"store": Store(endpoint=endpoint), "batch_size": 4, "seed": 7}


def values(batches: Any) -> dict[int, tuple[bytes, object]]:
    """Pixels and label of each row, by its number in the data set."""
    found: dict[int, tuple[bytes, object]] = {}
    for batch in batches:
        x, y = np.asarray(batch.x), batch.y
        labels = [None] * len(x) if y is None else y if isinstance(y, list) else np.asarray(y).tolist()
        for row, index in enumerate(np.asarray(batch.index).tolist()):
            assert index not in found
            found[index] = x[row].tobytes(), labels[row]
    return found


@pytest.mark.parametrize("mode", ["auto", "pushdown", "plain"])
def test_rows_equal_loose_objects(images: list[bytes], settings: dict[str, Any], mode: Any) -> None:
    sampling = Sampling(tail="short")
    with pushdown.Reader("s3://columns/loose/", INNER, mode="plain", sampling=sampling, **settings) as reader:
        loose = {index: pixels for index, (pixels, _) in values(reader).items()}
    settings |= {"labels": "label", "mode": mode, "sampling": sampling}
    with pushdown.Reader("s3://columns/data/*.parquet", INNER, **settings) as rows:
        found = values(rows)
        assert (len(rows), rows.samples, rows.tail_counts) == (6, len(images), (0, 0))
    assert {index: pixels for index, (pixels, _) in found.items()} == loose
    assert {index: label for index, (_, label) in found.items()} == {row: row % 5 for row in range(len(images))}


def test_a_batch_is_like_that_of_objects(images: list[bytes], settings: dict[str, Any]) -> None:
    data = pushdown.Parquet("s3://columns/data/", where="label <> 3")
    with pushdown.Reader(data, "decode | resize(8, 8)", labels="caption", **settings) as rows:
        batches = list(rows)
    first = batches[0]
    assert (first.x.shape, first.x.dtype) == ((4, 8, 8, 3), "u8")
    assert first.y == [f"row {index}" for index in np.asarray(first.index).tolist()]
    assert all(key.startswith("data/train-") for key in first.keys)
    positions = [position for batch in batches for position in np.asarray(batch.position).tolist()]
    assert positions == list(range(sum(row % 5 != 3 for row in range(len(images)))))


def test_random_steps_draw_by_row_and_resume_in_another_world(images: list[bytes], settings: dict[str, Any]) -> None:
    def reader(**options: Any) -> pushdown.Reader:
        of_all = {**settings, "sampling": Sampling(tail="short"), **options}
        return pushdown.Reader("s3://columns/data/train-?.parquet", RANDOM, **of_all)

    with reader(plan=Plan(split="full")) as rows:
        whole = values(rows)
        assert rows.epoch == 1
        later = values(rows)
    assert set(whole) == set(later) == set(range(len(images)))
    assert whole != later, "each epoch draws anew"
    read: dict[int, tuple[bytes, object]] = {}
    states = []
    for rank in range(2):
        with reader(sampling=Sampling(tail="short", rank=rank, world=2), batch_size=3) as rows:
            read |= values([next(iter(rows))])
            states.append(json.loads(json.dumps(rows.state_dict())))
    assert states[0] == states[1]
    for rank in range(3):
        sampling = Sampling(tail="short", rank=rank, world=3)
        with pickle.loads(pickle.dumps(reader(sampling=sampling, plan=Plan(split=0)))) as rows:
            rows.load_state_dict(states[0])
            rest = values(rows)
            assert not set(rest) & set(read)
            read |= rest
    assert read == whole


def test_a_pipeline_as_json_reads_tables() -> None:
    for pipeline in ('[{"step": "select", "columns": ["label"]}]', "select(columns=[label])"):
        assert choose_kind("s3://columns/a.parquet", pipeline, Options.of({})) is SourceKind.OBJECTS
    assert choose_kind("s3://columns/a.parquet", INNER, Options.of({})) is SourceKind.ROWS


def test_footers_are_read_once(images: list[bytes], settings: dict[str, Any], world: Any) -> None:
    def requests() -> float:
        with urllib.request.urlopen(f"{world.admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("pushdown_requests_total{"))

    counts = [requests()]
    with pushdown.Reader("s3://columns/data/*.parquet", INNER, mode="plain", **settings) as rows:
        counts.append(requests())
        for _ in range(2):
            values(rows)
            counts.append(requests())
        assert len(rows) == 6
        counts.append(requests())
    _, opened, first, second, counted = counts
    assert (first - opened) - (second - first) == 3, "the footers of three objects"
    assert counted == second


class SlowLink(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a gateway, and waits in the middle of long ranges, so that they measure the link."""

    protocol_version = "HTTP/1.1"
    gateway = ""

    def relay(self) -> None:
        connection = http.client.HTTPConnection(self.gateway)
        # The host is signed: it stays that of this server.
        connection.request(self.command, self.path, headers=dict(self.headers))
        answered = connection.getresponse()
        body = answered.read()
        connection.close()
        self.send_response_only(answered.status)
        for name, value in answered.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:1000])
        if answered.status == 206 and len(body) > 100_000:
            time.sleep(0.15)
        self.wfile.write(body[1000:])

    do_GET = do_HEAD = relay

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""


def test_the_plan_has_a_text(world: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    photo = (PHOTOS / "jpeg_large.jpg").read_bytes()
    table = pa.table({"image": [photo + os.urandom(100_000) for _ in range(24)]})
    body = io.BytesIO()
    pq.write_table(table, body, row_group_size=3, compression="none")
    world.s3.create_bucket(Bucket="long-rows")
    world.put("long-rows", "a.parquet", body.getvalue())
    monkeypatch.setattr(SlowLink, "gateway", world.endpoint.removeprefix("http://"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowLink) as link:
        threading.Thread(target=link.serve_forever, daemon=True).start()
        settings |= {"store": Store(endpoint=f"http://127.0.0.1:{link.server_address[1]}")}
        with pushdown.Reader("s3://long-rows/*.parquet", INNER, mode="auto", **settings) as rows:
            assert rows.plan is None
            while rows.plan is None and rows.epoch < 4:
                values(rows)
            plan = rows.plan
            assert plan is not None
            assert plan.startswith("plan: ") and " rows/s (plain reading: " in plan.partition("\n")[0]
            assert "\n  rows: " in plan
            assert rows.stats.bottleneck in ("the gateway's CPU", "the link", "this host's CPU")
        with pushdown.Reader("s3://long-rows/*.parquet", INNER, mode="plain", **settings) as rows:
            values(rows)
            assert rows.plan is None
        link.shutdown()


def test_images_that_fail(world: Any, settings: dict[str, Any]) -> None:
    images = [(PHOTOS / "png_rgb.png").read_bytes(), b"no photo", None, (PHOTOS / "jpeg_420.jpg").read_bytes()]
    body = io.BytesIO()
    pq.write_table(pa.table({"image": pa.array(images, pa.binary()), "label": [10, 11, 12, 13]}), body)
    world.s3.create_bucket(Bucket="damaged-images")
    world.put("damaged-images", "a.parquet", body.getvalue())

    def read(**options: Any) -> list[pushdown.Batch]:
        arguments = {**settings, "shuffle": False, "labels": "label", **options}
        with pushdown.Reader("s3://damaged-images/a.parquet", "decode | resize(8, 8)", **arguments) as rows:
            return list(rows)

    with pytest.raises(pushdown.SampleError, match="row 1: ") as raised:
        read()
    assert (raised.value.key, raised.value.row) == ("a.parquet", 1)
    (batch,) = read(on_error="report")
    assert np.asarray(batch.valid).tolist() == [True, False, False, True]
    assert not np.asarray(batch.x)[1:3].any() and np.asarray(batch.y).tolist() == [10, 11, 12, 13]
    assert [error.row for error in batch.errors] == [1, 2] and "row 2: the value is null" in str(batch.errors[1])
    (batch,) = read(on_error="skip")
    assert np.asarray(batch.y).tolist() == [10, 13] and len(batch) == 2
    with pytest.raises(pushdown.SampleError) as raised:
        read(on_error="skip", max_errors=1)
    assert raised.value.__notes__ == ["2 samples failed, more than the 1 that max_errors allows"]


def test_functions_run_on_the_values(images: list[bytes], settings: dict[str, Any]) -> None:
    pipeline = pushdown.Pipeline("decode | resize(8, 8)").then(lambda value: np.asarray(value).sum(dtype=np.int64))
    with pushdown.Reader("s3://columns/data/*.parquet", pipeline, **settings) as rows:
        sums = next(iter(rows)).values
    assert len(sums) == 4 and all(total > 0 for total in sums)


def test_wrong_files_and_columns_are_named(images: list[bytes], settings: dict[str, Any]) -> None:
    with pytest.raises(pushdown.ConfigError, match=r"no Parquet objects match s3://columns/data/\*\.pq"):
        pushdown.Reader(pushdown.Parquet("s3://columns/data/*.pq"), INNER, **settings)
    with (
        pytest.raises(pushdown.Error, match="no column `picture`"),
        pushdown.Reader(pushdown.Parquet("s3://columns/data/", column="picture"), INNER, **settings) as rows,
    ):
        next(iter(rows))
    with pushdown.Reader("s3://columns/data/*.parquet", INNER, **settings) as rows, pytest.raises(pushdown.ConfigError, match="`take`"):
        rows.take([0])
