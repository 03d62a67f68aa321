"""Objects that are no samples, such as `.DS_Store`, and where the endpoint is found."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import pushdown
import samples
from pushdown import Sampling, Store

HIDDEN = ["exif/.DS_Store", "Thumbs.db", "exif/desktop.ini", "._cat.jpg", "empty/"]
BUCKET = "hidden"


@pytest.fixture(scope="module")
def photos(world: Any) -> list[str]:
    """The keys of photos, among files of desktops and a folder."""
    s3 = world.s3
    s3.create_bucket(Bucket=BUCKET)
    keys = []
    for entry in s3.list_objects_v2(Bucket="photos", Prefix="train/exif/")["Contents"]:
        body = s3.get_object(Bucket="photos", Key=entry["Key"])["Body"].read()
        keys.append(entry["Key"].removeprefix("train/"))
        s3.put_object(Bucket=BUCKET, Key=keys[-1], Body=body)
    for key in HIDDEN:
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"" if key.endswith("/") else b"hidden")
    return keys


def test_hidden_objects_are_left_out_and_counted(
    photos: list[str], options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    url, endpoint = f"s3://{BUCKET}/", options["store"].endpoint
    with caplog.at_level(logging.WARNING, "pushdown"):
        assert pushdown.list(url, store=Store(endpoint=endpoint)).keys() == photos
    lines = [record.getMessage() for record in caplog.records]
    remedy = "`--include-hidden`, in code `include_hidden`, keeps them"
    assert lines == [f"{url}: left out 5 hidden objects, such as `._cat.jpg`: {remedy}"]
    everything = sorted([*photos, *HIDDEN])
    assert pushdown.list(url, store=Store(endpoint=endpoint), include_hidden=True).keys() == everything
    with pushdown.Reader(url, samples.PIPELINE, **{**options, "sampling": Sampling(tail="short")}) as reader:
        assert reader.classes == ["exif"]
        assert sorted(key for batch in reader for key in batch.keys) == photos
    sampling = Sampling(tail="short", include_hidden=True)
    settings = {**options, "labels": None, "sampling": sampling, "on_error": "report"}
    with pushdown.Reader(url, samples.PIPELINE, **settings) as reader:
        assert sum(len(batch.errors) for batch in reader) == len(HIDDEN)


def test_a_state_of_all_objects_loads_where_they_are_kept(photos: list[str], options: dict[str, Any]) -> None:
    url, settings = f"s3://{BUCKET}/", {**options, "labels": None}
    everything = {**settings, "sampling": Sampling(include_hidden=True)}
    state = pushdown.Reader(url, samples.PIPELINE, **everything).state_dict()
    with pytest.raises(pushdown.StateError, match="include_hidden"):
        pushdown.Reader(url, samples.PIPELINE, **settings).load_state_dict(state)
    pushdown.Reader(url, samples.PIPELINE, **everything).load_state_dict(state)


def test_the_endpoint_of_s3_takes_precedence(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", world.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert len(pushdown.list("s3://photos/train/")) > 0
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    # Without a configured endpoint it is that of AWS in the region, which this one does not have.
    with pytest.raises(pushdown.ConfigError, match="cannot resolve the endpoint of S3 in the region `not a region`"):
        pushdown.list("s3://photos/train/", store=Store(region="not a region"))
    assert len(pushdown.list("s3://photos/train/", store=Store(endpoint=world.endpoint))) > 0
