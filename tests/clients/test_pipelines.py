"""A GET with a pipeline, sent by clients without pushdown support."""

import io
import json
import struct
import urllib.request

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy
from botocore.exceptions import ClientError
from PIL import Image

from pipelines import SHORT, assert_within, reference, with_accept, with_parameter, with_pipeline
from test_objects import status_and_code

PHOTOS = [
    "jpeg_large.jpg",
    "jpeg_large_progressive.jpg",
    "jpeg_grey.jpg",
    "jpeg_cmyk.jpg",
    "png_rgba.png",
    "png_palette.png",
]


@pytest.fixture
def large(s3, bucket, photos):
    """Bucket, key and path of a photo with metadata."""
    path = photos / "jpeg_large.jpg"
    s3.upload_file(str(path), bucket, "Zürich/a photo.jpg", ExtraArgs={"Metadata": {"label": "42"}})
    return {"Bucket": bucket, "Key": "Zürich/a photo.jpg"}, path


@pytest.mark.parametrize("name", PHOTOS)
def test_pixels_match_pillow(store, s3, bucket, photos, name):
    s3.upload_file(str(photos / name), bucket, name)
    client = store.client()
    with_pipeline(client, SHORT)
    answer = client.get_object(Bucket=bucket, Key=name)
    pixels = np.load(io.BytesIO(answer["Body"].read()))
    assert_within(pixels, reference(photos / name))


def test_headers_describe_the_value(store, s3, large):
    target, path = large
    client = store.client()
    with_pipeline(client, SHORT)
    answer = client.get_object(**target)
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    source = s3.head_object(**target)
    assert answer["ContentType"] == "application/x-npy"
    assert answer["ETag"] != source["ETag"] == headers["x-pushdown-source-etag"]
    assert (headers["x-pushdown-stage"], headers["x-pushdown-dtype"], headers["x-pushdown-shape"]) == (
        "3",
        "u8",
        "48,48,3",
    )
    assert headers["x-pushdown-source-bytes"] == f"{path.stat().st_size}/{path.stat().st_size}"
    assert "decode" in headers["server-timing"]
    assert "x-pushdown-pipeline" in headers["vary"]
    assert "no-cache" in headers["cache-control"]
    assert not [name for name in headers if name.startswith("x-amz-checksum")]
    assert answer["Metadata"] == {"label": "42"}, "the metadata is sent with the pixels"


def test_a_matching_etag_is_304(store, large):
    target, _ = large
    client = store.client()
    with_pipeline(client, SHORT)
    etag = client.get_object(**target)["ETag"]
    with pytest.raises(ClientError) as error:
        client.get_object(**target, IfNoneMatch=etag)
    assert status_and_code(error)[0] == 304


def test_the_query_parameter_is_equivalent_to_the_header(store, large):
    target, path = large
    client = store.client()
    with_parameter(client, SHORT)
    assert_within(np.load(io.BytesIO(client.get_object(**target)["Body"].read())), reference(path))


def test_a_presigned_link_with_a_pipeline(store, large):
    target, path = large
    client = store.client()
    with_parameter(client, SHORT)
    link = client.generate_presigned_url("get_object", Params=target)
    with urllib.request.urlopen(link) as answer:
        assert_within(np.load(io.BytesIO(answer.read())), reference(path))


def test_arrow(store, large):
    target, path = large
    client = store.client()
    with_pipeline(client, SHORT)
    with_accept(client, "application/vnd.apache.arrow.stream")
    table = pa.ipc.open_stream(client.get_object(**target)["Body"].read()).read_all()
    column = table["value"].combine_chunks()
    assert isinstance(column.type, pa.FixedShapeTensorType)
    assert_within(column.to_numpy_ndarray()[0], reference(path))


def test_safetensors(store, large):
    target, path = large
    client = store.client()
    with_pipeline(client, SHORT)
    with_accept(client, "application/vnd.safetensors")
    (pixels,) = safetensors.numpy.load(client.get_object(**target)["Body"].read()).values()
    assert_within(pixels, reference(path))


def test_bf16_is_sent_as_safetensors(store, large):
    target, path = large
    client = store.client()
    with_pipeline(client, f"{SHORT} | to_float | cast(bf16)")
    answer = client.get_object(**target)
    assert answer["ContentType"] == "application/vnd.safetensors"
    body = answer["Body"].read()
    length = struct.unpack("<Q", body[:8])[0]
    (entry,) = (entry for name, entry in json.loads(body[8 : 8 + length]).items() if name != "__metadata__")
    assert (entry["dtype"], entry["shape"]) == ("BF16", [3, 48, 48])
    upper = np.frombuffer(body[8 + length :], np.uint16).astype(np.uint32) << 16
    found = upper.view(np.float32).reshape(3, 48, 48).transpose(1, 2, 0)
    assert np.abs(found - reference(path) / 255).max() < 1 / 128


def test_raw_bytes(store, large):
    target, path = large
    client = store.client()
    with_pipeline(client, f"{SHORT} | to_float")
    with_accept(client, "application/octet-stream")
    answer = client.get_object(**target)
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-pushdown-dtype"] == "f32"
    shape = [int(extent) for extent in headers["x-pushdown-shape"].split(",")]
    values = np.frombuffer(answer["Body"].read(), "<f4").reshape(shape)
    assert np.abs(values - reference(path).transpose(2, 0, 1) / np.float32(255)).max() <= 1.01 / 255


def test_an_encoded_photo(store, large):
    target, path = large
    client = store.client()
    with_pipeline(client, f"{SHORT} | encode(png)")
    answer = client.get_object(**target)
    assert answer["ContentType"] == "image/png"
    assert_within(np.asarray(Image.open(io.BytesIO(answer["Body"].read()))), reference(path))


def test_a_split_stops_early(store, large):
    target, path = large
    client = store.client()
    with_pipeline(client, SHORT, split="1")
    answer = client.get_object(**target)
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-pushdown-stage"] == "1"
    pixels = np.load(io.BytesIO(answer["Body"].read()))
    assert np.array_equal(pixels, np.asarray(Image.open(path).convert("RGB")))


def test_smallest_never_sends_more_than_the_object(store, s3, bucket, photos):
    s3.upload_file(str(photos / "jpeg_420.jpg"), bucket, "small.jpg")
    client = store.client()
    with_pipeline(client, "decode | to_float", split="smallest")
    answer = client.get_object(Bucket=bucket, Key="small.jpg")
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-pushdown-stage"] == "0"
    assert answer["Body"].read() == (photos / "jpeg_420.jpg").read_bytes()


def test_random_steps_depend_on_seed_and_epoch(store, large):
    target, _ = large

    def draw(**options):
        client = store.client()
        with_pipeline(client, "decode | random_resized_crop(32) | flip_h", **options)
        return client.get_object(**target)["Body"].read()

    assert draw(seed="7", epoch="0") == draw(seed="7", epoch="0")
    assert draw(seed="7", epoch="0") != draw(seed="7", epoch="1")
    with pytest.raises(ClientError) as error:
        draw()
    assert status_and_code(error) == (400, "InvalidPipeline")


def test_an_unsigned_range_applies_to_the_result(store, large):
    target, _ = large
    client = store.client()
    with_parameter(client, SHORT)
    link = client.generate_presigned_url("get_object", Params=target)
    with urllib.request.urlopen(link) as answer:
        whole = answer.read()
    request = urllib.request.Request(link, headers={"Range": "bytes=100-199"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"] == f"bytes 100-199/{len(whole)}"
        assert answer.read() == whole[100:200]


@pytest.mark.resign_differs("can leave a signed range out")
def test_a_signed_range_is_refused(store, large):
    target, _ = large
    client = store.client()
    with_pipeline(client, SHORT)
    with pytest.raises(ClientError, match="signed") as error:
        client.get_object(**target, Range="bytes=0-9")
    assert status_and_code(error)[0] == 400


@pytest.mark.parametrize(
    ("pipeline", "position"),
    [("decode | rezise(8)", 10), ("resize(8, 8)", 1), ("decode |", 9), ("decode | resize(short=x)", 17)],
)
def test_an_invalid_pipeline_is_refused_with_the_position(store, large, pipeline, position):
    target, _ = large
    client = store.client()
    with_pipeline(client, pipeline)
    with pytest.raises(ClientError) as error:
        client.get_object(**target)
    assert status_and_code(error) == (400, "InvalidPipeline")
    assert f"at {position}: " in error.value.response["Error"]["Message"], "positions count from 1"


@pytest.mark.parametrize("name", ["jpeg_half.jpg", "no photo at all"])
def test_undecodable_objects_are_refused(store, s3, bucket, photos, name):
    path = photos / name
    s3.put_object(Bucket=bucket, Key="bad", Body=path.read_bytes() if path.exists() else name.encode())
    client = store.client()
    with_pipeline(client, SHORT)
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=bucket, Key="bad")
    assert status_and_code(error) == (422, "UndecodableObject")


def test_an_unacceptable_content_type_is_refused(store, large):
    target, _ = large
    client = store.client()
    with_pipeline(client, SHORT)
    with_accept(client, "image/png")
    with pytest.raises(ClientError) as error:
        client.get_object(**target)
    assert status_and_code(error)[0] == 406
