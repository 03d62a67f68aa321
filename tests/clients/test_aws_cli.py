"""aws-cli: common commands."""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request

import pytest


@pytest.fixture
def aws(store):
    """Runs an `aws` command against the gateway and returns its output."""

    def run(*arguments: object, stdin: bytes = b"", expect_failure: bool = False) -> str:
        program = pathlib.Path(sys.executable).with_name("aws")
        # Run with this Python, since the folder of its programs is not in PATH.
        command = [sys.executable, str(program), "--endpoint-url", store.endpoint, *map(str, arguments)]
        ended = subprocess.run(command, input=stdin, capture_output=True, env=os.environ, timeout=120, check=False)
        assert (ended.returncode != 0) == expect_failure, ended.stderr.decode()
        return (ended.stderr if expect_failure else ended.stdout).decode()

    return run


def test_copies_to_and_from_a_bucket(aws, bucket, photos, tmp_path):
    photo = photos / "jpeg_large.jpg"
    aws("s3", "cp", photo, f"s3://{bucket}/a folder/cat ü.jpg", "--no-progress")
    assert "cat ü.jpg" in aws("s3", "ls", f"s3://{bucket}/a folder/")
    aws("s3", "cp", f"s3://{bucket}/a folder/cat ü.jpg", tmp_path / "back.jpg", "--no-progress")
    assert (tmp_path / "back.jpg").read_bytes() == photo.read_bytes()
    aws("s3", "mv", f"s3://{bucket}/a folder/cat ü.jpg", f"s3://{bucket}/moved.jpg")
    aws("s3", "rm", f"s3://{bucket}/moved.jpg")
    assert aws("s3", "ls", f"s3://{bucket}/", "--recursive") == ""


def test_a_multipart_upload(aws, bucket, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(os.urandom(20 << 20))
    aws("s3", "cp", large, f"s3://{bucket}/large.bin", "--no-progress")
    head = json.loads(aws("s3api", "head-object", "--bucket", bucket, "--key", "large.bin"))
    assert head["ContentLength"] == 20 << 20
    assert "-" in head["ETag"], "aws-cli uploads from 8 MiB on in parts"
    aws("s3", "cp", f"s3://{bucket}/large.bin", tmp_path / "back.bin", "--no-progress")
    assert (tmp_path / "back.bin").read_bytes() == large.read_bytes()


def test_a_pipe(aws, bucket):
    aws("s3", "cp", "-", f"s3://{bucket}/piped.txt", stdin=b"through a pipe")
    assert aws("s3", "cp", f"s3://{bucket}/piped.txt", "-") == "through a pipe"


def test_synchronising_folders(aws, bucket, photos, tmp_path):
    selected = sorted(photos.glob("gif_*"))
    aws("s3", "sync", photos, f"s3://{bucket}/photos", "--exclude", "*", "--include", "gif_*", "--no-progress")
    again = aws("s3", "sync", photos, f"s3://{bucket}/photos", "--exclude", "*", "--include", "gif_*", "--no-progress")
    assert again == "", "expected nothing to synchronise"
    aws("s3", "sync", f"s3://{bucket}/photos", tmp_path, "--no-progress")
    assert [path.name for path in sorted(tmp_path.iterdir())] == [path.name for path in selected]
    aws("s3", "rm", f"s3://{bucket}/photos", "--recursive")
    assert aws("s3", "ls", f"s3://{bucket}/", "--recursive") == ""


def test_s3api_commands(aws, bucket, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(b"0123456789")
    put = json.loads(
        aws("s3api", "put-object", "--bucket", bucket, "--key", "k", "--body", body, "--metadata", "label=7")
    )
    listed = json.loads(aws("s3api", "list-objects-v2", "--bucket", bucket))["Contents"]
    assert [(entry["Key"], entry["Size"]) for entry in listed] == [("k", 10)]
    got = json.loads(
        aws("s3api", "get-object", "--bucket", bucket, "--key", "k", "--range", "bytes=2-5", tmp_path / "part")
    )
    assert (got["ContentRange"], got["ETag"], got["Metadata"]) == ("bytes 2-5/10", put["ETag"], {"label": "7"})
    assert (tmp_path / "part").read_bytes() == b"2345"
    assert "404" in aws("s3api", "head-object", "--bucket", bucket, "--key", "missing", expect_failure=True)


@pytest.mark.store_lacks("garage", "verifies version 4 only, and aws-cli presigns with version 2")
@pytest.mark.resign_differs("verifies version 4 only, and aws-cli presigns with version 2")
def test_a_presigned_link(aws, bucket):
    aws("s3", "cp", "-", f"s3://{bucket}/k", stdin=b"linked")
    link = aws("s3", "presign", f"s3://{bucket}/k").strip()
    with urllib.request.urlopen(link) as answer:
        assert answer.read() == b"linked"


def test_buckets_are_created_and_removed(aws):
    aws("s3", "mb", "s3://made-by-aws-cli")
    assert "made-by-aws-cli" in aws("s3", "ls")
    aws("s3", "rb", "s3://made-by-aws-cli")
    assert "made-by-aws-cli" not in aws("s3", "ls")
