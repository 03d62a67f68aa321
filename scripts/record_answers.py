"""Records requests and answers of a gateway, for tests that later versions still read them: `docs/COMPATIBILITY.md`.

    .venv/bin/python scripts/record_answers.py target/release/pushdown-gateway pushdown/tests/golden/v0_1_0

Run it once per release, with the gateway of that release and a new folder. Files of earlier releases never change. Each batch is a
`NAME.json`, the body of the request, with the `NAME.arrow` of its answer; `get.npy` and `get.headers` are the answer to a GET. With `--stores` the requests
state their store, in the path and in the host; `STYLE.store` is the header of a GET. With `--crops` they ask for cropped JPEGs, and with
`--demand` they state the demand of their reader. With `--deliver` they ask for no values, of a gateway with a result cache. With `--parts` they ask for parts
of data sets; their answers are `NAME.ndjson`, and `part.tar` is the object.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
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


STATED = {
    "fixed": {"pipeline": "decode | resize(8, 6)", "split": "full"},
    "random": {"pipeline": "decode | resize(8, 6) | flip_h | to_float", "seed": 7, "epoch": 2},
    "table": {"pipeline": "select(limit=3)", "table": {"key": True, "schema": "union"}},
}
"""Batches for a store that they state."""

CROPPED = {
    "fixed": {"pipeline": "decode | crop(8, 8, 16, 16) | to_float"},
    "random": {"pipeline": "decode | random_resized_crop(8, scale=[0.05, 0.3]) | flip_h", "seed": 7, "epoch": 2},
}
"""Batches whose first two samples may be cropped JPEGs."""

DEMANDING = {"fixed": {"pipeline": "decode | resize(8, 6)", "demand": {"reader": "trainer-0", "cores": 3.2}}}
"""Batches that state how many cores their reader could use."""


UNDELIVERED = {"fixed": {"pipeline": "decode | resize(8, 6)", "cache": {"epochs": 1, "samples": 3}, "deliver": False, "pin": {"keep_seconds": 86400}}}
"""Batches whose values are kept in the result cache, and not sent."""


PART = {"format": "wds", "label": {"class": {"names": ["odd", "even"]}}, "labels": [0, 1], "engine": "decode=4 resample=4"}
"""A part of two photos, with a target or without one."""


class Store(http.server.BaseHTTPRequestHandler):
    """A store with the bucket `photos`, which verifies no signatures."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = OBJECTS.get(self.path.split("?")[0].removeprefix("/photos").removeprefix("/"))
        body = path.read_bytes() if path else b"<Error><Code>NoSuchKey</Code></Error>"
        self.send_response(200 if path else 404)
        if path:
            self.send_header("ETag", f'"{len(body)}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def start(binary, folder, flags):
    """Starts a gateway; returns the process and its endpoint."""
    ready = folder / "ready.json"
    settings = {"PUSHDOWN_LISTEN": "127.0.0.1:0", "PUSHDOWN_ADMIN_LISTEN": "127.0.0.1:0", "PUSHDOWN_READY_FILE": str(ready)}
    process = subprocess.Popen([binary, "serve", *flags], env={**os.environ, **settings}, stderr=subprocess.DEVNULL)
    while not ready.exists():
        time.sleep(0.05)
    return process, f"http://{json.loads(ready.read_text())['listen']}"


def presigned(client, endpoint, keys):
    """The shared query and the samples at the store's endpoint; repeated if the signing second changed in between."""
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


def post(client, endpoint, name, fields, output, store_endpoint=None, cropped=0):
    kind = name.rpartition("-")[2]
    keys = ["orders.csv"] * 2 if kind == "table" else ["a.jpg", "b.png"] if kind == "quantized" else ["a.jpg", "b.png", "missing.jpg"]
    query, samples = presigned(client, store_endpoint or endpoint, keys)
    samples[0] |= VERSIONED.get(name, {}) if not cropped else {}
    for sample in samples[:cropped]:
        sample |= {"split": 0, "form": "cropped-jpeg"}
    body = json.dumps({**fields, "presign": query, "samples": samples}, indent=1)
    request = urllib.request.Request(f"{endpoint}/_pushdown/v1/batch", body.encode())
    with urllib.request.urlopen(request) as answer:
        (output / f"{name}.arrow").write_bytes(answer.read())
    (output / f"{name}.json").write_text(body + "\n")


def post_part(client, endpoint, name, target, output):
    """Asks for a part, which is written to the key `target`, if there is one."""
    query, samples = presigned(client, endpoint, ["a.jpg", "b.png"])
    for sample, key in zip(samples, ["a.jpg", "b.png"], strict=True):
        sample["etag"] = client.head_object(Bucket="photos", Key=key)["ETag"]
    part = dict(PART)
    if target:
        link = client.generate_presigned_url("put_object", Params={"Bucket": "photos", "Key": target})
        part["target"] = dict(zip(["path", "query"], link.removeprefix(endpoint).split("?"), strict=True))
    body = json.dumps({"pipeline": "decode | resize(8, 6)", "part": part, "presign": query, "samples": samples}, indent=1)
    request = urllib.request.Request(f"{endpoint}/_pushdown/v1/batch", body.encode())
    with urllib.request.urlopen(request) as answer:
        (output / f"{name}.ndjson").write_bytes(answer.read())
    (output / f"{name}.json").write_text(body + "\n")


def get(link, name, output, headers=None, suffix="npy"):
    headers = {"x-pushdown-pipeline": "decode | resize(8, 6) | to_float", "x-pushdown-split": "2", **(headers or {})}
    with urllib.request.urlopen(urllib.request.Request(link, headers=headers)) as answer:
        (output / f"{name}.{suffix}").write_bytes(answer.read())
        (output / f"{name}.headers").write_text("".join(f"{name.lower()}: {value}\n" for name, value in answer.getheaders()))


def client_of(endpoint, style):
    config = botocore.config.Config(signature_version="s3v4", s3={"addressing_style": style})
    keys = {"aws_access_key_id": "recorder", "aws_secret_access_key": "not-a-secret", "region_name": "us-east-1"}
    return boto3.client("s3", endpoint_url=endpoint, config=config, **keys)


def link_of(client):
    return client.generate_presigned_url("get_object", Params={"Bucket": "photos", "Key": "a.jpg"})


def record_stated(binary, folder, output):
    """Records requests that state a store, which names the bucket in the path, and one that does in the host."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    authority = f"localhost:{server.server_port}"
    flags = [f"--allow-store=http://{authority},http://*.{authority}", "--allow-store-network=127.0.0.0/8,::1/128"]
    process, endpoint = start(binary, folder, flags)
    try:
        for style, host, bucket in [("path", authority, {}), ("virtual", f"photos.{authority}", {"bucket": "photos"})]:
            client, store_endpoint = client_of(f"http://{authority}", style), f"http://{host}"
            store = {"store": {"url": store_endpoint, **bucket}}
            for name, fields in STATED.items():
                post(client, endpoint, f"{style}-{name}", {**store, **fields}, output, store_endpoint)
            header = "; ".join([store_endpoint, *(f"bucket={name}" for name in bucket.values())])
            (output / f"{style}-get.store").write_text(header + "\n")
            link = link_of(client).replace(store_endpoint, endpoint)
            get(link, f"{style}-get", output, {"x-pushdown-store": header})
    finally:
        process.terminate()
        process.wait()
        server.shutdown()


def main(binary, output, *options):
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if options == ("--stores",):
            return record_stated(binary, folder, output)
        cache = ["--cache-memory=16MiB"] if options == ("--deliver",) else []
        flags = [*cache, f"--store={folder / 'store'}", "--access-key=recorder", "--secret-key=not-a-secret"]
        process, endpoint = start(binary, folder, flags)
        try:
            client = client_of(endpoint, "path")
            client.create_bucket(Bucket="photos")
            for key, path in OBJECTS.items():
                client.put_object(Bucket="photos", Key=key, Body=path.read_bytes())
            if options == ("--crops",):
                for name, fields in CROPPED.items():
                    post(client, endpoint, name, fields, output, cropped=2)
                asked = {"x-pushdown-split": "0", "x-pushdown-form": "cropped-jpeg"}
                asked["x-pushdown-pipeline"] = CROPPED["fixed"]["pipeline"]
                return get(link_of(client), "get", output, asked, suffix="jpg")
            if options == ("--parts",):
                post_part(client, endpoint, "trial", None, output)
                post_part(client, endpoint, "part", "sets/part-00000.tar", output)
                part = client.get_object(Bucket="photos", Key="sets/part-00000.tar")["Body"].read()
                (output / "part.tar").write_bytes(part)
                return
            if options in (("--demand",), ("--deliver",)):
                for name, fields in (DEMANDING if options == ("--demand",) else UNDELIVERED).items():
                    post(client, endpoint, name, fields, output)
                return
            for name, fields in BATCHES.items():
                post(client, endpoint, name, fields, output)
            get(link_of(client), "get", output)
        finally:
            process.terminate()
            process.wait()


main(*sys.argv[1:])
