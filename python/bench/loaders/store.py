"""One gateway with its embedded store, and the photos in it: as objects, as tar shards, and in a folder of this machine."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import programs
from e2e.data import DERIVED, originals, slug
from PIL import Image

from .task import Task, layout

BUCKET, PHOTOS, SHARDS, TINY = "bench", "train/", "shards/", "tiny/"
# Photos of 8 x 8 pixels: to decode them takes next to nothing.
TINY_COUNT, TINY_SIDE = 256, 8
SHARD_SCRIPT = programs.ROOT / "bench/e2e/peers/shards.py"


class NotStarted(Exception):
    """The gateway did not start."""


@contextmanager
def gateway(folder: Path) -> Iterator[str]:
    """Runs a gateway on free ports over an empty store in `folder`. Yields its URL."""
    ready = folder / "ready.json"
    command = [programs.BINARIES / "pushdown-gateway", "serve", "--store", folder / "store"]
    command += ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ready-file", ready]
    keys = {
        "PUSHDOWN_ACCESS_KEY": programs.KEYS["AWS_ACCESS_KEY_ID"],
        "PUSHDOWN_SECRET_KEY": programs.KEYS["AWS_SECRET_ACCESS_KEY"],
    }
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | keys)
    try:
        deadline = time.monotonic() + 60
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotStarted(f"the gateway did not start:\n{(folder / 'gateway.log').read_text()[-2000:]}")
            time.sleep(0.05)
        yield f"http://{json.loads(ready.read_text())['listen']}"
    finally:
        programs.end(process)


def prepare(endpoint: str, folder: Path, photos: str, samples: int, batch_size: int) -> Task:
    """Uploads `samples` photos of a set, which repeat if it has fewer, and returns what to read."""
    names = layout(samples)
    local = local_folder(photos, names)
    client = programs.s3(endpoint, max_pool_connections=8)
    client.create_bucket(Bucket=BUCKET)
    put = lambda key, body: client.put_object(Bucket=BUCKET, Key=key, Body=body)
    tiny = tiny_photo()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: put(f"{PHOTOS}{name}", (local / name).read_bytes()), names))
        list(pool.map(lambda name: put(f"{TINY}{name}", tiny), layout(TINY_COUNT)))
    target = ["--endpoint", endpoint, "--bucket", BUCKET, "--prefix", SHARDS]
    command: list[Any] = [sys.executable, SHARD_SCRIPT, local, *target]
    subprocess.run(command, check=True, env=os.environ | programs.KEYS, stdout=subprocess.DEVNULL)
    return Task(
        endpoint=endpoint,
        bucket=BUCKET,
        prefix=PHOTOS,
        shards=SHARDS,
        folder=str(local),
        scratch=str(folder),
        classes=tuple(sorted({name.split("/")[0] for name in names})),
        samples=samples,
        batch_size=batch_size,
        cores=len(os.sched_getaffinity(0)),
    )


def tiny_keys() -> list[str]:
    """The keys of the tiny photos."""
    return [f"{TINY}{name}" for name in layout(TINY_COUNT)]


def tiny_photo() -> bytes:
    """A photo of 8 x 8 pixels as PNG."""
    encoded = io.BytesIO()
    Image.new("RGB", (TINY_SIDE, TINY_SIDE), "gray").save(encoded, "PNG")
    return encoded.getvalue()


def local_folder(photos: str, names: list[str]) -> Path:
    """Links to the photos of a set under these names, in a folder of the local disk."""
    folder = DERIVED / f"{slug(photos)}-classes-{len(names)}"
    for name, photo in zip(names, itertools.cycle(originals(photos))):
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            # A link into a repository that has moved is broken.
            link.unlink(missing_ok=True)
            link.symlink_to(photo.resolve())
    return folder
