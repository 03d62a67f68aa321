"""Access control: the store decides, for plain requests and requests with a pipeline."""

import urllib.error
import urllib.request

import botocore
import pytest
from botocore.exceptions import ClientError

from pipelines import SHORT, with_pipeline
from test_objects import status_and_code


@pytest.fixture
def key(s3, bucket, photos):
    s3.upload_file(str(photos / "jpeg_large.jpg"), bucket, "photo.jpg")
    return "photo.jpg"


@pytest.mark.parametrize("pipeline", [None, SHORT], ids=["plain", "pipeline"])
@pytest.mark.parametrize(
    ("credentials", "code"),
    [
        ({"aws_secret_access_key": "wrong"}, "SignatureDoesNotMatch"),
        ({"aws_access_key_id": "unknown"}, "InvalidAccessKeyId"),
    ],
    ids=["wrong secret", "unknown key"],
)
def test_wrong_credentials_are_refused(store, bucket, key, credentials, code, pipeline):
    client = store.client(**credentials)
    with_pipeline(client, pipeline)
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=bucket, Key=key)
    assert status_and_code(error)[0] == 403
    if store.name == "seaweedfs":
        assert status_and_code(error)[1] == code


@pytest.mark.parametrize("pipeline", [None, SHORT], ids=["plain", "pipeline"])
def test_an_anonymous_caller_is_refused(store, bucket, key, pipeline):
    client = store.client(config={"signature_version": botocore.UNSIGNED})
    with_pipeline(client, pipeline)
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=bucket, Key=key)
    assert status_and_code(error)[0] == 403


def test_an_expired_link_is_refused(store, s3, bucket, key):
    client = store.client()
    link = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=-1)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(link)
    assert error.value.code in (400, 403)


@pytest.mark.parametrize("pipeline", [None, SHORT], ids=["plain", "pipeline"])
def test_missing_objects_and_buckets_are_404(store, bucket, pipeline):
    client = store.client()
    with_pipeline(client, pipeline)
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=bucket, Key="missing")
    assert status_and_code(error) == (404, "NoSuchKey")
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket="no-such-bucket-here", Key="missing")
    assert status_and_code(error)[0] == 404
