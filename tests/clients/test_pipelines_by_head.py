"""HEAD with a pipeline: its signature is for HEAD, so nothing is computed, but the ETag is told."""

import http.client
import urllib.parse

import pytest
from botocore.exceptions import ClientError

from pipelines import SHORT, with_parameter, with_pipeline
from test_objects import code_of


@pytest.fixture
def target(s3, bucket, photos):
    s3.upload_file(str(photos / "jpeg_large.jpg"), bucket, "photo.jpg")
    return {"Bucket": bucket, "Key": "photo.jpg"}


def test_it_tells_what_a_get_would_bring(store, s3, target):
    client = store.client()
    with_pipeline(client, SHORT)
    head, got = client.head_object(**target), client.get_object(**target)
    assert head["ETag"] == got["ETag"] != s3.head_object(**target)["ETag"]
    told, sent = (answer["ResponseMetadata"]["HTTPHeaders"] for answer in (head, got))
    assert told["x-pushdown-source-etag"] == s3.head_object(**target)["ETag"]
    assert told.get("content-length") in (None, sent["content-length"])


def test_it_spares_the_work(store, target):
    client = store.client()
    with_pipeline(client, SHORT)
    etag = client.head_object(**target)["ETag"]
    for operation in (client.head_object, client.get_object):
        with pytest.raises(ClientError) as error:
            operation(**target, IfNoneMatch=etag)
        assert code_of(error)[0] == 304


def test_a_faulty_pipeline(store, target):
    client = store.client()
    with_pipeline(client, "dekode")
    with pytest.raises(ClientError) as error:
        client.head_object(**target)
    assert code_of(error)[0] == 400


def test_no_body_follows(store, target):
    """boto3 would not notice one: the next answer on the connection would be it."""
    client = store.client()
    with_parameter(client, SHORT)
    link = urllib.parse.urlsplit(client.generate_presigned_url("head_object", Params=target))
    connection = http.client.HTTPConnection(link.netloc, timeout=20)
    for _ in range(2):
        connection.request("HEAD", f"{link.path}?{link.query}")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
    connection.close()
