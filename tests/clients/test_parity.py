"""boto3: the gateway answers like the store, also when the store refuses a request or lacks a feature."""

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

# Fields that differ between two answers, and headers that concern one hop. Garage gives each upload a version.
VOLATILE = {
    "connection", "date", "hostid", "last-modified", "lastmodified", "requestid", "versionid", "x-amz-id-2", "x-amz-request-id",
    "x-amz-version-id",
}  # fmt: skip


def result_of_call(client, call: Callable) -> object:
    """The answer or error of a call, without the fields that differ between calls."""
    try:
        return without_volatile(call(client))
    except ClientError as error:
        return {"error": without_volatile(error.response)}


def without_volatile(answer: object) -> object:
    if isinstance(answer, dict):
        kept = {name: value for name, value in answer.items() if name.lower() not in VOLATILE}
        if kept.get("content-type") == "application/xml":
            # Trailing zeros of a fraction of a second are omitted, so the length varies.
            kept.pop("content-length", None)
        return {name: value.read() if name == "Body" else without_volatile(value) for name, value in kept.items()}
    if isinstance(answer, list):
        return [without_volatile(entry) for entry in answer]
    return answer


def assert_equal_answers(store, call: Callable) -> object:
    """Sends a call to the store and through the gateway, and asserts equal answers."""
    direct, through = result_of_call(store.direct(), call), result_of_call(store.client(), call)
    assert through == direct
    return through


@pytest.fixture(scope="module")
def target(store):
    """A bucket with one object. The calls only read it."""
    client = store.direct()
    client.create_bucket(Bucket="parity")
    body = bytes(index % 251 for index in range(100_000))
    client.put_object(Bucket="parity", Key="Zürich/a +b.bin", Body=body, ContentType="text/x-test", Metadata={"label": "7"})
    yield {"Bucket": "parity", "Key": "Zürich/a +b.bin"}
    for entry in client.list_objects_v2(Bucket="parity")["Contents"]:
        client.delete_object(Bucket="parity", Key=entry["Key"])
    client.delete_bucket(Bucket="parity")


READS = {
    "get": {},
    "get a range": {"Range": "bytes=5-9"},
    "get the end": {"Range": "bytes=-9"},
    "get beyond the end": {"Range": "bytes=100000-"},
    "get a malformed range": {"Range": "bytes=9-5"},
    "get if it matches": {"IfMatch": '"no"'},
    "get if it changed": {"IfModifiedSince": "Sat, 01 Jan 2050 00:00:00 GMT"},
    "get if it did not change": {"IfUnmodifiedSince": "Sat, 01 Jan 2000 00:00:00 GMT"},
    "get the first part": {"PartNumber": 1},
    "get with the checksum": {"ChecksumMode": "ENABLED"},
    "get as another type": {"ResponseContentType": "text/plain", "ResponseContentDisposition": 'attachment; filename="ü"'},
    "get a missing version": {"VersionId": "no-such-version"},
}  # fmt: skip


@pytest.mark.parametrize("options", READS.values(), ids=READS)
@pytest.mark.parametrize("operation", ["get_object", "head_object"])
def test_reading_an_object(store, target, operation, options):
    assert_equal_answers(store, lambda client: getattr(client, operation)(**target, **options))


@pytest.mark.parametrize(
    "operation",
    ["get_object_acl", "get_object_attributes", "get_object_tagging", "get_object_retention", "get_object_legal_hold"],
)
def test_sub_resources_of_an_object(store, target, operation):
    attributes = {"ObjectAttributes": ["ETag", "ObjectSize"]} if operation == "get_object_attributes" else {}
    assert_equal_answers(store, lambda client: getattr(client, operation)(**target, **attributes))


@pytest.mark.parametrize(
    "operation",
    [
        "get_bucket_acl", "get_bucket_cors", "get_bucket_encryption", "get_bucket_lifecycle_configuration",
        "get_bucket_location", "get_bucket_logging", "get_bucket_policy", "get_bucket_replication",
        "get_bucket_tagging", "get_bucket_versioning", "get_bucket_website", "get_public_access_block", "head_bucket",
        "list_multipart_uploads", "list_object_versions", "list_objects", "list_objects_v2",
    ],
)  # fmt: skip
def test_buckets(store, target, operation):
    assert_equal_answers(store, lambda client: getattr(client, operation)(Bucket=target["Bucket"]))
    assert_equal_answers(store, lambda client: getattr(client, operation)(Bucket="no-such-bucket-here"))


@pytest.mark.parametrize(
    "options",
    [{"Delimiter": "/"}, {"Prefix": "Zürich/"}, {"EncodingType": "url"}, {"MaxKeys": 0}, {"FetchOwner": True}],
    ids=str,
)
def test_listing_options(store, target, options):
    assert_equal_answers(store, lambda client: client.list_objects_v2(Bucket=target["Bucket"], **options))
    if "FetchOwner" not in options:
        assert_equal_answers(store, lambda client: client.list_objects(Bucket=target["Bucket"], **options))


def test_writing(store, target):
    """Idempotent calls, since each runs twice."""
    bucket, source = target["Bucket"], dict(target)
    for call in (
        lambda client: client.put_object(Bucket=bucket, Key="twice", Body=b"body", Metadata={"origin": "a  b"}),
        lambda client: client.put_object(Bucket=bucket, Key="twice", Body=b"body", ContentMD5="bm90IGEgZGlnZXN0IQ=="),
        lambda client: client.put_object(Bucket=bucket, Key="twice", Body=b"body", ChecksumSHA256="bm9uZQ=="),
        lambda client: client.put_object(Bucket=bucket, Key="twice", Body=b"body", IfNoneMatch="*"),
        lambda client: client.copy_object(Bucket=bucket, Key="copy", CopySource=source),
        lambda client: client.copy_object(Bucket=bucket, Key="copy", CopySource=source, CopySourceIfNoneMatch="*"),
        lambda client: client.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "none"}),
        lambda client: client.put_object_acl(**target, ACL="private"),
        lambda client: client.upload_part(Bucket=bucket, Key="twice", UploadId="none", PartNumber=1, Body=b"part"),
        lambda client: client.complete_multipart_upload(Bucket=bucket, Key="twice", UploadId="none"),
        lambda client: client.create_bucket(Bucket=bucket),
        lambda client: client.delete_object(Bucket=bucket, Key="not there"),
        lambda client: client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "not there"}], "Quiet": True}),
    ):
        assert_equal_answers(store, call)
