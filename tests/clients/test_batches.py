"""Batch requests from Python: signatures by botocore, rows by pyarrow."""

import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pytest
import urllib3
from PIL import Image

from pipelines import SHORT, assert_within, reference
from stores import REAL_STORES

NAMES = ["jpeg_large.jpg", "jpeg_grey.jpg", "png_rgb.png", "webp_lossless.webp"]


@pytest.fixture
def keys(s3, bucket, photos):
    """Sixteen objects; the sixth is not a photo."""
    keys = {f"Zürich/{index:02} +%2F.jpg": photos / NAMES[index % len(NAMES)] for index in range(16)}
    for key, path in keys.items():
        s3.upload_file(str(path), bucket, key)
    s3.put_object(Bucket=bucket, Key=list(keys)[5], Body=b"no photo")
    return keys


def presigned(s3, bucket, keys) -> tuple[str, list[dict]]:
    """The signing parameters shared by all samples, and the path and signature of each sample."""
    while True:
        samples, shared = [], set()
        for key in keys:
            link = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key})
            path, query = link.removeprefix(s3.meta.endpoint_url).split("?")
            presign, signature = query.split("&X-Amz-Signature=")
            samples.append({"path": path, "signature": signature})
            shared.add(presign)
        # A signature contains its time in seconds, which has to be equal for all samples.
        if len(shared) == 1:
            return shared.pop(), samples


def post(store, request: dict, **headers: str) -> urllib3.BaseHTTPResponse:
    body = json.dumps(request).encode()
    if headers.get("content-encoding") == "gzip":
        body = gzip.compress(body)
    url = f"{store.endpoint}/_pushdown/v1/batch"
    return urllib3.request("POST", url, body=body, headers=headers, preload_content=False, retries=False)


def read_batches(answer: urllib3.BaseHTTPResponse) -> list[pa.RecordBatch]:
    assert answer.status == 200, answer.read()
    return list(pa.ipc.open_stream(answer.read()))


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_rows_become_arrays_and_a_bad_sample_fails_alone(store, s3, bucket, keys, encoding):
    presign, samples = presigned(s3, bucket, keys)
    answer = post(
        store,
        {"pipeline": f"{SHORT}", "presign": presign, "samples": samples},
        **{"content-encoding": encoding} if encoding == "gzip" else {},
    )
    batches = read_batches(answer)
    assert [row for batch in batches for row in batch["row"].to_pylist()] == list(range(16))
    good = [batch for batch in batches if batch["error"].null_count == len(batch)]
    (bad,) = (batch for batch in batches if batch["error"].null_count < len(batch))
    assert bad["row"].to_pylist() == [5], "a record batch has either good rows or failed rows"
    assert bad["error"][0].as_py().startswith("UndecodableObject")
    paths = list(keys.values())
    for batch in good:
        column = batch["value"]
        assert isinstance(column.type, pa.FixedShapeTensorType)
        pixels = column.to_numpy_ndarray()
        assert not pixels.flags.owndata, "good rows convert without a copy"
        for row, found in zip(batch["row"].to_pylist(), pixels, strict=True):
            assert_within(found, reference(paths[row]))
        assert set(batch["stage"].to_pylist()) == {3}


def test_encoded_photos_are_binary_values(store, s3, bucket, keys):
    presign, samples = presigned(s3, bucket, list(keys)[:3])
    request = {"pipeline": f"{SHORT} | encode(png)", "presign": presign, "samples": samples}
    for batch in read_batches(post(store, request)):
        for row, value in zip(batch["row"].to_pylist(), batch["value"].to_pylist(), strict=True):
            found = np.asarray(Image.open(io.BytesIO(value)))
            assert_within(found, reference(list(keys.values())[row]))


def test_mixed_splits_describe_each_value(store, s3, bucket, keys):
    presign, samples = presigned(s3, bucket, list(keys)[:4])
    for index, split in enumerate([0, 1, 3, "smallest"]):
        samples[index]["split"] = split
    request = {"pipeline": SHORT, "presign": presign, "samples": samples, "order": "any"}
    rows = {row["row"]: row for batch in read_batches(post(store, request)) for row in batch.to_pylist()}
    paths = list(keys.values())
    assert rows[0]["value"]["data"] == paths[0].read_bytes()
    whole = rows[1]["value"]
    assert whole["dtype"] == "u8"
    pixels = np.frombuffer(whole["data"], np.uint8).reshape(whole["shape"])
    assert np.array_equal(pixels, np.asarray(Image.open(paths[1]).convert("RGB")))
    small = rows[2]["value"]
    assert_within(np.frombuffer(small["data"], np.uint8).reshape(small["shape"]), reference(paths[2]))
    assert len(rows[3]["value"]["data"]) <= paths[3].stat().st_size


def test_a_wrong_signature_fails_its_own_row(store, s3, bucket, keys):
    presign, samples = presigned(s3, bucket, list(keys)[:3])
    samples[1]["signature"] = "0" * 64
    rows = {
        row["row"]: row
        for batch in read_batches(post(store, {"pipeline": SHORT, "presign": presign, "samples": samples}))
        for row in batch.select(["row", "error"]).to_pylist()
    }
    assert [rows[row]["error"] is None for row in range(3)] == [True, False, True]
    # Ceph and Garage answer so to each presigned request that they refuse.
    assert ("AccessDenied" if store.name in REAL_STORES else "SignatureDoesNotMatch") in rows[1]["error"]


@pytest.mark.resign_differs("refuses a batch without a valid signature as a whole")
def test_a_signature_for_another_bucket_is_refused(store, s3, bucket, keys):
    presign, samples = presigned(s3, bucket, list(keys)[:1])
    samples[0]["path"] = samples[0]["path"].replace(bucket, "another-bucket")
    (batch,) = read_batches(post(store, {"pipeline": SHORT, "presign": presign, "samples": samples}))
    assert batch["error"][0].as_py() is not None
    assert batch["value"].null_count == 1


@pytest.mark.resign_differs("refuses strangers before it reads their request")
def test_an_invalid_request_fails_as_a_whole(store, s3, bucket, keys):
    presign, samples = presigned(s3, bucket, list(keys)[:1])
    good = {"pipeline": SHORT, "presign": presign, "samples": samples}
    for fault in ({"pipeline": "decode | x"}, {"samples": []}, {"presign": "acl"}, {"unknown": 1}):
        answer = post(store, good | fault)
        assert (answer.status, b"<Error>" in answer.read()) == (400, True), fault
