"""SIGTERM while a client keeps its connections open."""

import dataclasses
import io

import numpy as np
import pytest
from botocore.exceptions import EndpointConnectionError

from pipelines import SHORT, assert_within, reference, with_pipeline
from stores import start_gateway


def test_idle_clients_do_not_delay_the_drain(store, s3, bucket, photos, tmp_path):
    s3.upload_file(str(photos / "jpeg_large.jpg"), bucket, "photo.jpg")
    gateway, addresses = start_gateway(tmp_path / "gateway", upstream=store.upstream, drain_timeout="60s")
    try:
        client = dataclasses.replace(store, endpoint=f"http://{addresses['listen']}").client()
        with_pipeline(client, SHORT)
        pixels = np.load(io.BytesIO(client.get_object(Bucket=bucket, Key="photo.jpg")["Body"].read()))
        assert_within(pixels, reference(photos / "jpeg_large.jpg"))
        gateway.child.terminate()
        assert gateway.child.wait(20) == 0, gateway.log.read_text()
        with pytest.raises(EndpointConnectionError):
            client.get_object(Bucket=bucket, Key="photo.jpg")
    finally:
        gateway.stop()
