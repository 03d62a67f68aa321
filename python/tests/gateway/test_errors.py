"""What happens when samples, objects or the gateway fail."""

from __future__ import annotations

import http.server
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import pushdown
from pushdown import Store
from samples import PIPELINE

BUCKET = "damaged"


@pytest.fixture(scope="module")
def damaged(world: Any) -> str:
    """Good photos, and one object that is no photo."""
    s3 = world.s3
    s3.create_bucket(Bucket=BUCKET)
    for entry in s3.list_objects_v2(Bucket="photos", Prefix="train/exif/")["Contents"]:
        body = s3.get_object(Bucket="photos", Key=entry["Key"])["Body"].read()
        s3.put_object(Bucket=BUCKET, Key=entry["Key"].replace("train/exif/", ""), Body=body)
    s3.put_object(Bucket=BUCKET, Key="bad.jpg", Body=b"this is no photo")
    return f"s3://{BUCKET}/"


@pytest.fixture
def settings(endpoint: str) -> dict[str, Any]:
    return {"store": Store(endpoint=endpoint), "batch_size": 4, "seed": 7, "mode": "pushdown"}


def test_raise_names_the_sample(settings: dict[str, Any], damaged: str) -> None:
    with pushdown.Reader(damaged, PIPELINE, **settings) as reader, pytest.raises(pushdown.SampleError) as raised:
        list(reader)
    error = raised.value
    assert error.key == "bad.jpg" and error.code == "UndecodableObject"
    assert "bad.jpg" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.key, again.code, str(again)) == (type(error), error.key, error.code, str(error))


@pytest.mark.parametrize("mode", ["pushdown", "plain"])
def test_report_keeps_the_row(settings: dict[str, Any], damaged: str, mode: str) -> None:
    with pushdown.Reader(damaged, PIPELINE, **{**settings, "mode": mode}, on_error="report") as reader:
        batches = list(reader)
        assert sum(len(batch.keys) for batch in batches) == len(reader.objects)
        assert reader.stats.errors == 1
    (batch,) = [batch for batch in batches if batch.errors]
    row = batch.keys.index("bad.jpg")
    assert np.asarray(batch.valid).tolist() == [n != row for n in range(len(batch.keys))]
    assert not np.asarray(batch.x)[row].any(), "its values are zeros"
    assert [error.key for error in batch.errors] == ["bad.jpg"]


def test_skip_leaves_it_out_and_counts_it(settings: dict[str, Any], damaged: str) -> None:
    with pushdown.Reader(damaged, PIPELINE, **settings, on_error="skip") as reader:
        keys = [key for batch in reader for key in batch.keys]
        assert "bad.jpg" not in keys and len(keys) == len(reader.objects) - 1
        assert reader.stats.errors == 1


def test_max_errors_bounds_them(settings: dict[str, Any], damaged: str) -> None:
    with (
        pushdown.Reader(damaged, PIPELINE, **settings, on_error="report", max_errors=0) as reader,
        pytest.raises(pushdown.SampleError),
    ):
        list(reader)
    with pushdown.Reader(damaged, PIPELINE, **settings, on_error="report", max_errors=1) as reader:
        assert sum(len(batch.errors) for batch in reader) == 1


def test_an_invalid_pipeline_shows_the_place(endpoint: str, source: str) -> None:
    with pytest.raises(pushdown.PipelineError) as raised:
        pushdown.Reader(source, "decode | rezise(short=256)", store=Store(endpoint=endpoint))
    assert raised.value.position == 9
    assert str(raised.value).endswith("decode | rezise(short=256)\n           ^")
    assert pickle.loads(pickle.dumps(raised.value)).position == 9


def test_random_steps_need_a_seed(endpoint: str, source: str) -> None:
    with pytest.raises(pushdown.Error, match="seed"):
        list(pushdown.Reader(source, PIPELINE, store=Store(endpoint=endpoint)))


def test_errors_say_what_to_do(endpoint: str, source: str) -> None:
    with pytest.raises(pushdown.ConfigError, match="no objects under"):
        pushdown.Reader("s3://photos/nothing/", "decode", store=Store(endpoint=endpoint))
    with pytest.raises(pushdown.RefusedError, match="NoSuchBucket"):
        pushdown.Reader("s3://no-such-bucket/", "decode", store=Store(endpoint=endpoint))
    with pytest.raises(pushdown.RefusedError):
        pushdown.Reader(source, "decode", store=Store(endpoint=endpoint, credentials=("nobody", "secret", None)))
    retry = pushdown.Retry(attempts=1)
    with pytest.raises(pushdown.UnavailableError):
        pushdown.Reader(source, "decode", store=Store(endpoint="http://127.0.0.1:9", retry=retry))


def test_a_plain_store_is_named_as_such(world: Any, source: str) -> None:
    with (
        pushdown.Reader(source, "decode", store=Store(endpoint=world.upstream), mode="pushdown") as reader,
        pytest.raises(pushdown.NotAGatewayError),
    ):
        list(reader)


def test_auto_reads_from_a_plain_store(world: Any, source: str, options: dict[str, Any]) -> None:
    from samples import samples

    with pushdown.Reader(source, PIPELINE, **options) as reader:
        expected = samples(reader)
    with pushdown.Reader(source, PIPELINE, **{**options, "store": Store(endpoint=world.upstream)}) as reader:
        assert samples(reader) == expected
        assert reader.mode == "plain"


class Hostile(http.server.BaseHTTPRequestHandler):
    """Refuses everything, with a message that sets the title of a terminal and adds a line."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"<Error><Code>Evil&#x9B;1A</Code><Message>a&#10;b&#x1B;]0;title&#7;&#x202E;</Message></Error>"
        self.send_response(403)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""


def test_a_store_cannot_control_the_terminal() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    options: Any = {"store": Store(endpoint=endpoint, credentials=("access", "secret", None))}
    try:
        with pytest.raises(pushdown.RefusedError) as listed:
            pushdown.list("s3://photos/", **options)
        with (
            pushdown.Reader(["s3://photos/a\nb.jpg"], "decode", mode="plain", **options) as reader,
            pytest.raises(pushdown.SampleError) as read,
        ):
            list(reader)
    finally:
        server.shutdown()
        server.server_close()
    for raised in (listed, read):
        text = str(raised.value)
        assert r"Evil\u{9b}1A: " in text and r"a\nb\u{1b}]0;title\u{7}\u{202e}" in text
        assert text.isprintable()
    assert read.value.key == "a\nb.jpg" and r"a\nb.jpg" in str(read.value)
