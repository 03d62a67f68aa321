"""Records requests and answers of a gateway, for tests that later versions still read them: `docs/COMPATIBILITY.md`.

    .venv/bin/python scripts/record_answers.py target/release/pushdown-gateway pushdown/tests/golden/v0_1_0

Run it once per release, with the gateway of that release and a new folder. Files of earlier releases never change. Each batch is a
`NAME.json`, the body of the request, with the `NAME.arrow` of its answer; `get.npy` and `get.headers` are the answer to a GET.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import boto3
import botocore.config

ROOT = pathlib.Path(__file__).parent.parent
OBJECTS = {
    "a.jpg": ROOT / "testkit/fixtures/photos/jpeg_420.jpg",
    "b.png": ROOT / "testkit/fixtures/photos/png_rgb.png",
    "orders.csv": ROOT / "testkit/fixtures/tables/orders.csv",
}
"""The fields of a batch request, each in at least one file, and all types of the column `value`."""
BATCHES = {
    "fixed": {"pipeline": "decode | resize(8, 6)", "split": "full", "on_error": "row", "order": "request", "compression": "none"},
    "random": {"pipeline": "decode | resize(8, 6) | flip_h | to_float", "seed": 7, "epoch": 2, "order": "any", "compression": "lz4"},
    "quantized": {"pipeline": "decode | resize(8, 6) | to_float | quantize(int8)", "on_error": "fail"},
    "bytes": {"pipeline": "decode | resize(8, 6) | encode(png)"},
    "smallest": {"pipeline": "decode | resize(8, 6) | to_float", "split": "smallest"},
    "table": {"pipeline": "select(limit=3)", "table": {"key": True, "schema": "union"}},
}
VERSIONED = {"fixed": {"split": 1}, "bytes": {"max_bytes": 50}}
"""Fields of the first sample."""


def start(binary, folder):
    """Starts a gateway with an embedded store; returns the process and its endpoint."""
    ready = folder / "ready.json"
    flags = ["serve", f"--store={folder / 'store'}", "--access-key=recorder", "--secret-key=not-a-secret"]
    settings = {"PUSHDOWN_LISTEN": "127.0.0.1:0", "PUSHDOWN_ADMIN_LISTEN": "127.0.0.1:0", "PUSHDOWN_READY_FILE": str(ready)}
    process = subprocess.Popen([binary, *flags], env={**os.environ, **settings}, stderr=subprocess.DEVNULL)
    while not ready.exists():
        time.sleep(0.05)
    return process, f"http://{json.loads(ready.read_text())['listen']}"


def presigned(client, endpoint, keys):
    """The shared query and the samples; repeated if the signing second changed in between."""
    while True:
        queries, samples = set(), []
        for key in keys:
            link = client.generate_presigned_url("get_object", Params={"Bucket": "photos", "Key": key})
            path, query = link.removeprefix(endpoint).split("?")
            query, signature = query.split("&X-Amz-Signature=")
            queries.add(query)
            samples.append({"path": path, "signature": signature})
        if len(queries) == 1:
            return queries.pop(), samples


def post(client, endpoint, name, fields, output):
    keys = ["orders.csv"] * 2 if name == "table" else ["a.jpg", "b.png"] if name == "quantized" else ["a.jpg", "b.png", "missing.jpg"]
    query, samples = presigned(client, endpoint, keys)
    samples[0] |= VERSIONED.get(name, {})
    body = json.dumps({**fields, "presign": query, "samples": samples}, indent=1)
    request = urllib.request.Request(f"{endpoint}/_pushdown/v1/batch", body.encode())
    with urllib.request.urlopen(request) as answer:
        (output / f"{name}.arrow").write_bytes(answer.read())
    (output / f"{name}.json").write_text(body + "\n")


def get(client, endpoint, output):
    link = client.generate_presigned_url("get_object", Params={"Bucket": "photos", "Key": "a.jpg"})
    headers = {"x-pushdown-pipeline": "decode | resize(8, 6) | to_float", "x-pushdown-split": "2"}
    with urllib.request.urlopen(urllib.request.Request(link, headers=headers)) as answer:
        (output / "get.npy").write_bytes(answer.read())
        (output / "get.headers").write_text("".join(f"{name.lower()}: {value}\n" for name, value in answer.getheaders()))


def main(binary, output):
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        process, endpoint = start(binary, pathlib.Path(folder))
        try:
            config = botocore.config.Config(signature_version="s3v4", s3={"addressing_style": "path"})
            keys = {"aws_access_key_id": "recorder", "aws_secret_access_key": "not-a-secret", "region_name": "us-east-1"}
            client = boto3.client("s3", endpoint_url=endpoint, config=config, **keys)
            client.create_bucket(Bucket="photos")
            for key, path in OBJECTS.items():
                client.put_object(Bucket="photos", Key=key, Body=path.read_bytes())
            for name, fields in BATCHES.items():
                post(client, endpoint, name, fields, output)
            get(client, endpoint, output)
        finally:
            process.terminate()
            process.wait()


main(*sys.argv[1:])
