"""Who may, and who may not: the store decides, plain and pushed down."""

import urllib.error
import urllib.request

import botocore
import pytest
from botocore.exceptions import ClientError

from pipelines import SHORT, with_pipeline
from test_objects import code_of


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
def test_wrong_credentials(store, bucket, key, credentials, code, pipeline):
    client = store.client(**credentials)
    with_pipeline(client, pipeline)
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=bucket, Key=key)
    assert code_of(error)[0] == 403
    if store.name == "seaweedfs":
        assert code_of(error)[1] == code


@pytest.mark.parametrize("pipeline", [None, SHORT], ids=["plain", "pipeline"])
def test_an_anonymous_caller(store, bucket, key, pipeline):
    client = store.client(config={"signature_version": botocore.UNSIGNED})
    with_pipeline(client, pipeline)
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=bucket, Key=key)
    assert code_of(error)[0] == 403


def test_an_expired_link(store, s3, bucket, key):
    client = store.client()
    link = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=-1)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(link)
    assert error.value.code in (400, 403)


@pytest.mark.parametrize("pipeline", [None, SHORT], ids=["plain", "pipeline"])
def test_what_is_not_there(store, bucket, pipeline):
    client = store.client()
    with_pipeline(client, pipeline)
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket=bucket, Key="missing")
    assert code_of(error) == (404, "NoSuchKey")
    with pytest.raises(ClientError) as error:
        client.get_object(Bucket="no-such-bucket-here", Key="missing")
    assert code_of(error)[0] == 404
