"""Reads real photos by plain GETs and pushed down, and compares the bytes on the wire. Usage: demo.py

FULL=1 prints further figures. Leaves nothing behind but one picture.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from programs import BINARIES, KEYS, ROOT, columns, end, run, run_program, s3

PHOTOS = ROOT / ".cache/photos/large"
SAMPLE = ROOT / "demo-sample.png"
PIPELINE = "decode(min_short=256) | resize(short=256) | center_crop(224)"
BUCKET = "demo"
COUNT = 40
# A slow link between store and training host, for a line of the table.
LINK_BITS_PER_SECOND = 100_000_000
FULL = os.environ.get("FULL") == "1"


def start_gateway(folder: pathlib.Path) -> tuple[subprocess.Popen, str, str]:
    """Starts a gateway with its embedded store. Returns the process, the gateway's URL and the store's URL."""
    ready = folder / "ready.json"
    settings = {
        "STORE": folder / "store",
        "ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"],
        "SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"],
        "LISTEN": "127.0.0.1:0",
        "ADMIN_LISTEN": "127.0.0.1:0",
        "READY_FILE": ready,
    }
    env = dict(os.environ) | {f"PUSHDOWN_{name}": str(value) for name, value in settings.items()}
    with (folder / "log").open("wb") as log:
        gateway = subprocess.Popen(
            [BINARIES / "pushdown-gateway", "serve"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    deadline = time.monotonic() + 20
    while not ready.exists():
        if gateway.poll() is not None or time.monotonic() > deadline:
            end(gateway)
            sys.exit(f"demo: the gateway did not start:\n{(folder / 'log').read_text()}")
        time.sleep(0.02)
    addresses = json.loads(ready.read_text())
    return gateway, f"http://{addresses['listen']}", f"http://{addresses['store']}"


def upload(endpoint: str, photos: list[pathlib.Path]) -> None:
    """Uploads the photos with boto3."""
    client = s3(endpoint)
    client.create_bucket(Bucket=BUCKET)
    for photo in photos:
        client.upload_file(str(photo), BUCKET, f"photos/{photo.name}")


def read(endpoint: str, *arguments: str) -> dict:
    """Reads all photos. Returns the figures."""
    command = ["read", f"s3://{BUCKET}/photos/", "--endpoint-url", endpoint, "--pipeline", PIPELINE, "--json"]
    return json.loads(run_program("pushdown", *command, *arguments))


def table(plain: dict, pushed: dict) -> str:
    """The figures side by side."""

    def wire_bytes(report: dict) -> int:
        return report["wire_bytes_down"] + report["wire_bytes_up"]

    figures = {
        "bytes on the wire": lambda report: f"{wire_bytes(report) / 1e6:.2f} MB",
        "time for them at 100 Mbit/s": lambda report: f"{wire_bytes(report) * 8 / LINK_BITS_PER_SECOND:.2f} s",
        "CPU time of the training host": lambda report: f"{report['cpu_seconds']:.2f} s",
    }
    if FULL:
        figures |= {
            "samples": lambda report: str(report["samples"]),
            "stored bytes": lambda report: f"{report['stored_bytes'] / 1e6:.2f} MB",
            "value bytes": lambda report: f"{report['value_bytes'] / 1e6:.2f} MB",
            "samples/s, all on this machine": lambda report: f"{report['samples_per_second']:.1f}",
        }
    return columns(
        [("", "plain GETs", "pushed down"), *((name, figure(plain), figure(pushed)) for name, figure in figures.items())]
    )


def main() -> None:
    photos = sorted(PHOTOS.glob("*.jpg"))[:COUNT]
    if not photos:
        sys.exit(f"demo: no photos in {PHOTOS}: run `make photos`")
    with tempfile.TemporaryDirectory(prefix="pushdown-demo-") as folder:
        gateway, endpoint, store = start_gateway(pathlib.Path(folder))
        try:
            upload(endpoint, photos)
            size = sum(photo.stat().st_size for photo in photos) / len(photos) / 1e6
            print(f"\ndemo: {len(photos)} photos of {size:.1f} MB on average, read for a model that takes 224 x 224 pixels\n", flush=True)
            print(table(read(store, "--plain"), read(endpoint)))
            photo = ["get", f"s3://{BUCKET}/photos/{photos[0].name}", "--pipeline", f"{PIPELINE} | encode(png)"]
            run_program("pushdown", *photo, "--endpoint-url", endpoint, "--output", SAMPLE)
            print(f"\nThe gateway ran `{PIPELINE}` next to the store, and only pixels travelled;")
            print(f"{SAMPLE.name} is one of them, of {photos[0].stat().st_size / 1e6:.1f} MB before.\n")
        finally:
            end(gateway)


if __name__ == "__main__":
    run(main)
