"""boto3: requests for single objects."""

import base64
import hashlib
import zlib

import pytest
from botocore.exceptions import ClientError

TOO_LONG = (
    pytest.mark.store_lacks("embedded", "keeps metadata in files named after the key, of at most 255 bytes"),
    pytest.mark.store_lacks("garage", "has a database, LMDB, whose keys have at most 511 bytes"),
)

KEYS = [
    "plain.txt",
    "folder/with space.txt",
    "plus+and&amp;=.txt",
    "percent%2Fencoded%20.txt",
    "control\x17character.txt",
    "colon:comma,semicolon;.txt",
    "quotes'\"`.txt",
    "Zürich/東京/😀.txt",
    "tilde~star*(bracket)[x]!.txt",
    pytest.param("long/" + "/".join(["x" * 100] * 8), id="long", marks=TOO_LONG),
]


def status_and_code(error: pytest.ExceptionInfo[ClientError]) -> tuple[int, str]:
    response = error.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


@pytest.mark.parametrize("key", KEYS)
def test_an_object_is_read_as_it_was_put(s3, bucket, key):
    body = key.encode() * 100
    metadata = {"label": "7", "origin": "camera one"}
    put = s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="text/x-test", Metadata=metadata)
    got = s3.get_object(Bucket=bucket, Key=key)
    assert got["Body"].read() == body
    assert got["ETag"] == put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    assert got["ContentType"] == "text/x-test"
    assert got["Metadata"] == metadata
    head = s3.head_object(Bucket=bucket, Key=key)
    assert (head["ContentLength"], head["ETag"], head["Metadata"]) == (len(body), put["ETag"], metadata)
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]] == [key]
    s3.delete_object(Bucket=bucket, Key=key)
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key=key)
    assert status_and_code(error) == (404, "NoSuchKey")


def test_an_empty_object(s3, bucket):
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    got = s3.get_object(Bucket=bucket, Key="empty")
    assert (got["Body"].read(), got["ContentLength"]) == (b"", 0)


@pytest.mark.parametrize(
    ("range_header", "first", "last"),
    [("bytes=0-0", 0, 0), ("bytes=10-19", 10, 19), ("bytes=990-", 990, 999), ("bytes=-5", 995, 999),
     ("bytes=900-5000", 900, 999)],
)  # fmt: skip
def test_ranges(s3, bucket, range_header, first, last):
    body = bytes(index % 251 for index in range(1000))
    s3.put_object(Bucket=bucket, Key="k", Body=body)
    got = s3.get_object(Bucket=bucket, Key="k", Range=range_header)
    assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert got["ContentRange"] == f"bytes {first}-{last}/1000"
    assert got["Body"].read() == body[first : last + 1]


def test_a_range_beyond_the_end(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"short")
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="k", Range="bytes=100-200")
    assert status_and_code(error) == (416, "InvalidRange")


def test_conditions(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"one")["ETag"]
    assert s3.get_object(Bucket=bucket, Key="k", IfMatch=etag)["Body"].read() == b"one"
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="k", IfNoneMatch=etag)
    assert status_and_code(error)[0] == 304


@pytest.mark.store_lacks("garage", "has no error document in its 412")
def test_conditions_that_fail(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"one")
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="k", IfMatch='"00000000000000000000000000000000"')
    assert status_and_code(error) == (412, "PreconditionFailed")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"two", IfNoneMatch="*")
    assert status_and_code(error) == (412, "PreconditionFailed")


@pytest.mark.store_lacks("ceph", "knows no checksums but Content-MD5")
def test_checksums_are_forwarded(s3, bucket):
    body = b"checked" * 1000
    crc32 = base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
    put = s3.put_object(Bucket=bucket, Key="crc", Body=body)
    assert put["ChecksumCRC32"] == crc32, "boto3 sends a CRC32 by default"
    got = s3.get_object(Bucket=bucket, Key="crc", ChecksumMode="ENABLED")
    assert (got["ChecksumCRC32"], got["Body"].read()) == (crc32, body)
    sha256 = base64.b64encode(hashlib.sha256(body).digest()).decode()
    put = s3.put_object(Bucket=bucket, Key="sha", Body=body, ChecksumAlgorithm="SHA256")
    assert put["ChecksumSHA256"] == sha256


def test_a_wrong_digest_is_refused_by_the_store(s3, bucket):
    wrong = base64.b64encode(hashlib.md5(b"another").digest()).decode()
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"one", ContentMD5=wrong)
    assert status_and_code(error) == (400, "BadDigest")


def test_copy(s3, bucket):
    s3.put_object(Bucket=bucket, Key="Zürich +1.txt", Body=b"original", Metadata={"label": "3"})
    s3.copy_object(Bucket=bucket, Key="copy.txt", CopySource={"Bucket": bucket, "Key": "Zürich +1.txt"})
    got = s3.get_object(Bucket=bucket, Key="copy.txt")
    assert (got["Body"].read(), got["Metadata"]) == (b"original", {"label": "3"})


def test_deleting_many(s3, bucket):
    keys = [f"part {index}/ü" for index in range(20)]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    assert sorted(entry["Key"] for entry in answer["Deleted"]) == sorted(keys)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_listing(s3, bucket):
    keys = sorted(f"{folder}/{index:02}" for folder in ("a", "b b", "ü") for index in range(7))
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 4}))
    assert len(pages) >= 6
    assert [entry["Key"] for page in pages for entry in page["Contents"]] == keys
    folders = s3.list_objects_v2(Bucket=bucket, Delimiter="/")["CommonPrefixes"]
    assert [folder["Prefix"] for folder in folders] == ["a/", "b b/", "ü/"]
    # What s3torchconnector sends.
    for operation in (s3.list_objects, s3.list_objects_v2):
        assert [entry["Key"] for entry in operation(Bucket=bucket, Delimiter="")["Contents"]] == keys
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="b b/", StartAfter="b b/03")["Contents"]
    assert [entry["Key"] for entry in listed] == ["b b/04", "b b/05", "b b/06"]
    assert bucket in [entry["Name"] for entry in s3.list_buckets()["Buckets"]]


@pytest.mark.store_lacks("embedded", "has no tagging")
@pytest.mark.store_lacks("garage", "has no tagging")
def test_tags(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    tags = [{"Key": "split", "Value": "train"}]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": tags})
    assert s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == tags
