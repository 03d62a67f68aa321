"""An account with permissions on one bucket: no pipeline returns a byte of another bucket."""

import io

import numpy as np
import pytest
from botocore.exceptions import ClientError

from pipelines import SHORT, assert_within, reference, with_pipeline
from stores import LIMITED_BUCKET
from test_batches import post, presigned, read_batches
from test_objects import status_and_code


@pytest.fixture
def limited(store):
    """A client of the limited account."""
    if store.name == "embedded":
        pytest.skip("the embedded store has one account")
    return store.limited_client()


@pytest.fixture
def key(s3, bucket, photos):
    s3.upload_file(str(photos / "jpeg_large.jpg"), bucket, "photo.jpg")
    return "photo.jpg"


def test_an_account_reads_its_own_bucket(limited, photos):
    limited.create_bucket(Bucket=LIMITED_BUCKET)
    limited.upload_file(str(photos / "jpeg_large.jpg"), LIMITED_BUCKET, "photo.jpg")
    with_pipeline(limited, SHORT)
    answer = limited.get_object(Bucket=LIMITED_BUCKET, Key="photo.jpg")
    assert_within(np.load(io.BytesIO(answer["Body"].read())), reference(photos / "jpeg_large.jpg"))
    limited.delete_object(Bucket=LIMITED_BUCKET, Key="photo.jpg")
    limited.delete_bucket(Bucket=LIMITED_BUCKET)


@pytest.mark.parametrize("operation", ["get_object", "head_object"])
@pytest.mark.parametrize("pipeline", [None, SHORT], ids=["plain", "pipeline"])
def test_another_bucket_is_refused(store, limited, bucket, key, operation, pipeline):
    with_pipeline(limited, pipeline)
    with pytest.raises(ClientError) as error:
        getattr(limited, operation)(Bucket=bucket, Key=key)
    assert status_and_code(error)[0] == 403


def test_a_result_of_another_account_is_refused(store, s3, limited, bucket, key):
    owner = store.client()
    with_pipeline(owner, SHORT)
    etag = owner.get_object(Bucket=bucket, Key=key)["ETag"]
    with_pipeline(limited, SHORT)
    with pytest.raises(ClientError) as error:
        limited.get_object(Bucket=bucket, Key=key, IfNoneMatch=etag)
    assert status_and_code(error)[0] == 403, "a 304 would reveal that the object did not change"


def test_a_batch_row_of_another_bucket_is_refused(store, s3, limited, bucket, key):
    presign, samples = presigned(limited, bucket, [key])
    (batch,) = read_batches(post(store, {"pipeline": SHORT, "presign": presign, "samples": samples}))
    assert "AccessDenied" in batch["error"][0].as_py()
    assert batch["value"].null_count == 1
