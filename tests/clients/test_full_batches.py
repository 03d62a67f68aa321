"""Batches of the size that training uses, and errors that appear only at this size."""

import datetime
import io
import urllib.error
import urllib.request

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from pipelines import SHORT, assert_within, with_parameter
from test_batches import post, presigned, read_batches

BAD = 97
AUGMENTED = "decode | random_resized_crop(32) | flip_h"


@pytest.fixture(scope="module")
def photos_in_store(store):
    """256 photos of different colours, one of them undecodable; yields bucket, keys and colours."""
    s3, bucket = store.client(), "full-batches"
    s3.create_bucket(Bucket=bucket)
    colours = [(index, 255 - index, index // 2) for index in range(256)]
    keys = [f"train/{index:03}.png" for index in range(256)]
    for index, (key, colour) in enumerate(zip(keys, colours, strict=True)):
        file = io.BytesIO()
        Image.new("RGB", (80 + index % 7, 64 + index % 5), colour).save(file, "PNG")
        s3.put_object(Bucket=bucket, Key=key, Body=b"no photo" if index == BAD else file.getvalue())
    yield bucket, keys, colours
    for key in keys:
        s3.delete_object(Bucket=bucket, Key=key)
    s3.delete_bucket(Bucket=bucket)


@pytest.mark.parametrize("order", ["request", "any"])
def test_a_batch_of_256_samples_with_a_bad_one(store, s3, photos_in_store, order):
    bucket, keys, colours = photos_in_store
    presign, samples = presigned(s3, bucket, keys)
    batches = read_batches(post(store, {"pipeline": SHORT, "presign": presign, "samples": samples, "order": order}))
    rows = [row for batch in batches for row in batch["row"].to_pylist()]
    assert sorted(rows) == list(range(256)), "every sample exactly once"
    if order == "request":
        assert rows == list(range(256))
    for batch in batches:
        if batch["error"].null_count < len(batch):
            assert batch["row"].to_pylist() == [BAD]
            assert batch["error"][0].as_py().startswith("UndecodableObject")
            continue
        for row, pixels in zip(batch["row"].to_pylist(), batch["value"].to_numpy_ndarray(), strict=True):
            assert_within(pixels, np.broadcast_to(np.uint8(colours[row]), (48, 48, 3)))


def test_on_error_fail_ends_the_answer(store, s3, photos_in_store):
    bucket, keys, _ = photos_in_store
    presign, samples = presigned(s3, bucket, keys)
    request = {"pipeline": SHORT, "presign": presign, "samples": samples, "on_error": "fail"}
    with pytest.raises(Exception, match="(?i)incomplete|ended|broken|reset|422"):  # noqa: B017, PT011
        read_batches(post(store, request))


def test_random_steps_require_a_seed_and_an_epoch(store, s3, photos_in_store):
    bucket, keys, _ = photos_in_store
    presign, samples = presigned(s3, bucket, keys[:4])
    request = {"pipeline": AUGMENTED, "presign": presign, "samples": samples}
    for given in ({}, {"seed": 7}, {"epoch": 0}):
        answer = post(store, request | given)
        assert answer.status == 400, given
        assert b"<Code>InvalidPipeline</Code>" in answer.read()
    first, again = (pa.Table.from_batches(read_batches(post(store, request | {"seed": 7, "epoch": 0}))) for _ in range(2))
    # Only the CPU time may differ.
    assert min(first["seconds"].to_pylist()) > 0
    assert first.drop_columns(["seconds"]).equals(again.drop_columns(["seconds"]))


@pytest.mark.resign_differs("refuses a batch without a valid signature as a whole")
def test_expired_links_are_refused(store, s3, photos_in_store):
    bucket, keys, _ = photos_in_store
    client = store.client()
    with_parameter(client, SHORT)
    link = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": keys[0]}, ExpiresIn=1)
    presign, samples = presigned(s3, bucket, keys[:1])
    signed = presign.split("X-Amz-Date=")[1][:16]
    moment = datetime.datetime.strptime(signed, "%Y%m%dT%H%M%SZ")
    long_ago = (moment - datetime.timedelta(days=8)).strftime("%Y%m%dT%H%M%SZ")
    old = presign.replace(signed, long_ago).replace(signed[:8], long_ago[:8])
    (batch,) = read_batches(post(store, {"pipeline": SHORT, "presign": old, "samples": samples}))
    assert batch["error"][0].as_py() is not None
    assert batch["value"].null_count == 1
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(link.replace(signed, long_ago).replace(signed[:8], long_ago[:8]))
    # Garage says that the request is invalid.
    assert error.value.code == (400 if store.name == "garage" else 403)
