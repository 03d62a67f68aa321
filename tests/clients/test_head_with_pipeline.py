"""HEAD with a pipeline returns the ETag. It has a length only in re-sign mode: otherwise its signature permits no GET."""

import http.client
import urllib.parse

import pytest
from botocore.exceptions import ClientError

from pipelines import SHORT, with_parameter, with_pipeline
from test_objects import status_and_code


@pytest.fixture
def target(s3, bucket, photos):
    s3.upload_file(str(photos / "jpeg_large.jpg"), bucket, "photo.jpg")
    return {"Bucket": bucket, "Key": "photo.jpg"}


def test_head_returns_the_etag_of_the_get(store, s3, target):
    client = store.client()
    with_pipeline(client, SHORT)
    head, got = client.head_object(**target), client.get_object(**target)
    assert head["ETag"] == got["ETag"] != s3.head_object(**target)["ETag"]
    head_headers, get_headers = (answer["ResponseMetadata"]["HTTPHeaders"] for answer in (head, got))
    assert head_headers["x-pushdown-source-etag"] == s3.head_object(**target)["ETag"]
    length = get_headers["content-length"] if store.name == "resign" else None
    assert head_headers.get("content-length") == length


def test_a_matching_etag_is_304(store, target):
    client = store.client()
    with_pipeline(client, SHORT)
    etag = client.head_object(**target)["ETag"]
    for operation in (client.head_object, client.get_object):
        with pytest.raises(ClientError) as error:
            operation(**target, IfNoneMatch=etag)
        assert status_and_code(error)[0] == 304


def test_an_invalid_pipeline_is_refused(store, target):
    client = store.client()
    with_pipeline(client, "dekode")
    with pytest.raises(ClientError) as error:
        client.head_object(**target)
    assert status_and_code(error)[0] == 400


def test_head_has_no_body(store, target):
    """boto3 does not detect a body: it would be read as the next answer on the connection."""
    client = store.client()
    with_parameter(client, SHORT)
    link = urllib.parse.urlsplit(client.generate_presigned_url("head_object", Params=target))
    connection = http.client.HTTPConnection(link.netloc, timeout=20)
    for _ in range(2):
        connection.request("HEAD", f"{link.path}?{link.query}")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
    connection.close()
