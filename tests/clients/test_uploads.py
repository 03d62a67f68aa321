"""boto3: uploads in parts, as a stream, by a link and by a form, and downloads of them."""

import base64
import io
import os
import urllib.request
import zlib

import boto3.s3.transfer
import pytest
import urllib3

from stores import NO_TRAILERS

MIB = 1 << 20
# Over TLS boto3 sends checksums in trailers.
TRAILERS = pytest.mark.store_lacks("ceph", NO_TRAILERS)
SMALL_PARTS = boto3.s3.transfer.TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)


@pytest.fixture(scope="module")
def large() -> bytes:
    return os.urandom(12 * MIB + 17)


class Pipe(io.RawIOBase):
    """A body that can be read only once, like the output of a running program."""

    def __init__(self, content: bytes):
        self.content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        return self.content.readinto(buffer)


@pytest.mark.parametrize("tls", [pytest.param(False, id="http"), pytest.param(True, id="https", marks=TRAILERS)])
def test_managed_transfers_use_parts_and_ranges(store, bucket, large, tls):
    client = store.client(tls=tls)
    client.upload_fileobj(io.BytesIO(large), bucket, "large", Config=SMALL_PARTS)
    head = client.head_object(Bucket=bucket, Key="large")
    assert head["ContentLength"] == len(large)
    assert head["ETag"].endswith('-3"'), "three parts"
    back = io.BytesIO()
    client.download_fileobj(bucket, "large", back, Config=SMALL_PARTS)
    assert back.getvalue() == large


def test_a_body_that_cannot_be_read_twice(store, bucket, large):
    store.client().upload_fileobj(Pipe(large), bucket, "piped", Config=SMALL_PARTS)
    assert store.client().get_object(Bucket=bucket, Key="piped")["Body"].read() == large


@TRAILERS
@pytest.mark.store_lacks("garage", "does not answer with the checksum of the trailer")
def test_a_stream_with_a_checksum_in_the_trailer(store, bucket, large):
    """Over TLS boto3 sends aws-chunked framing with the CRC32 after the body."""
    if not store.tls_endpoint.startswith("https:"):
        pytest.skip("the store has no TLS")
    client = store.client(tls=True)
    sent = {}
    client.meta.events.register("before-send.s3.PutObject", lambda request, **_: sent.update(request.headers))
    put = client.put_object(Bucket=bucket, Key="trailer", Body=io.BytesIO(large))
    assert sent["X-Amz-Trailer"] == b"x-amz-checksum-crc32"
    assert put["ChecksumCRC32"] == base64.b64encode(zlib.crc32(large).to_bytes(4, "big")).decode()
    got = client.get_object(Bucket=bucket, Key="trailer")
    assert got["Body"].read() == large


def test_a_multipart_upload_with_a_copied_part(s3, bucket, large):
    s3.put_object(Bucket=bucket, Key="source", Body=large)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts", Metadata={"label": "9"})["UploadId"]
    target = {"Bucket": bucket, "Key": "parts", "UploadId": upload}
    first = s3.upload_part(**target, PartNumber=1, Body=large[: 5 * MIB])
    source = {"Bucket": bucket, "Key": "source"}
    copied = s3.upload_part_copy(
        **target, PartNumber=2, CopySource=source, CopySourceRange=f"bytes={5 * MIB}-{10 * MIB - 1}"
    )
    last = s3.upload_part(**target, PartNumber=3, Body=large[10 * MIB :])
    listed = {part["PartNumber"]: part["Size"] for part in s3.list_parts(**target)["Parts"]}
    assert listed == {1: 5 * MIB, 2: 5 * MIB, 3: len(large) - 10 * MIB}
    etags = [first["ETag"], copied["CopyPartResult"]["ETag"], last["ETag"]]
    parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, start=1)]
    s3.complete_multipart_upload(**target, MultipartUpload={"Parts": parts})
    got = s3.get_object(Bucket=bucket, Key="parts")
    assert (got["Body"].read(), got["Metadata"]) == (large, {"label": "9"})


def test_an_aborted_upload(s3, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="aborted")["UploadId"]
    s3.upload_part(Bucket=bucket, Key="aborted", UploadId=upload, PartNumber=1, Body=b"x")
    s3.abort_multipart_upload(Bucket=bucket, Key="aborted", UploadId=upload)
    with pytest.raises(s3.exceptions.ClientError):
        s3.upload_part(Bucket=bucket, Key="aborted", UploadId=upload, PartNumber=2, Body=b"x")


@pytest.mark.parametrize("key", ["plain.bin", "Zürich/a +b%2F.bin"])
def test_presigned_links(s3, bucket, key):
    put = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": key})
    request = urllib.request.Request(put, data=b"by a link", method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    get = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key})
    with urllib.request.urlopen(get) as answer:
        assert answer.read() == b"by a link"


@pytest.mark.resign_differs("has no uploads by forms")
def test_a_presigned_form(s3, bucket):
    form = s3.generate_presigned_post(bucket, "by-form", Conditions=[["content-length-range", 1, 100]])
    fields = dict(form["fields"]) | {"file": ("name", b"by a form")}
    answer = urllib3.request("POST", form["url"], fields=fields)
    assert answer.status in (200, 204), answer.data
    assert s3.get_object(Bucket=bucket, Key="by-form")["Body"].read() == b"by a form"
