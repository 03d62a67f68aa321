"""`pushdown read` with all steps at the gateway, with all on this host, and as the planner chooses."""

import json
import subprocess

import pytest

from pipelines import SHORT
from stores import gateway_binary

NAMES = ["jpeg_large.jpg", "jpeg_grey.jpg", "png_rgb.png", "webp_lossless.webp"]


@pytest.fixture
def prefix(s3, bucket, photos):
    """A prefix with a photo in each of several formats."""
    for index, name in enumerate(NAMES):
        s3.upload_file(str(photos / name), bucket, f"photos/{index} ü/{name}")
    return f"s3://{bucket}/photos/"


@pytest.mark.parametrize(
    ("options", "stages"),
    [(["--split", "full"], {"3": 8}), (["--plain"], {"0": 8}), (["--auto"], None)],
    ids=["pushdown", "plain", "auto"],
)
def test_every_epoch_has_all_samples(store, prefix, options, stages):
    # Built together with the gateway.
    program = gateway_binary().with_name("pushdown")
    command = [str(program), "read", prefix, "--endpoint-url", store.endpoint, "--pipeline", SHORT, *options]
    ended = subprocess.run([*command, "--epochs", "2", "--json"], capture_output=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    report = json.loads(ended.stdout)
    assert (report["samples"], report["errors"]) == (8, 0)
    assert stages is None or report["stages"] == stages
