"""Each peer delivers every sample once, and all deliver the same values: bit for bit with the same decoder.

A peer runs in the Python of the tests or in one of `.venv-e2e*`: the first that has its packages.
"""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[3]
PEERS = ROOT / "bench/e2e/peers"
sys.path.insert(0, str(ROOT / "tests/clients"))
pytest.importorskip("trustme", reason="stores.py needs it")

from process import Process, free_ports  # noqa: E402
from stores import ACCESS, REGION, SECRET, Store, start_seaweedfs  # noqa: E402

PYTHONS = [sys.executable, *map(str, sorted(ROOT.glob(".venv-e2e*/bin/python")))]
COMMON = ["boto3", "numpy", "PIL", "urllib3"]
NEEDS = {
    "files": COMMON,
    "boto3": COMMON,
    "urllib3": COMMON,
    "s3torchconnector": [*COMMON, "torch", "s3torchconnector"],
    "webdataset": [*COMMON, "webdataset"],
    "tfdata": [*COMMON, "tensorflow"],
}
DECODERS = {"pillow": ["PIL"], "opencv": ["cv2", "PIL"], "torchvision": ["torchvision"]}
FIELDS = {
    "arm", "settings", "samples", "errors", "epoch_seconds", "first_batch_seconds", "batch_wait_p50_seconds",
    "batch_wait_p99_seconds", "stall_seconds", "cpu_seconds", "value_bytes", "peak_bytes",
}  # fmt: skip
BUCKET, PHOTOS, SHARDS, EPOCHS, COUNT = "peers", "photos/", "shards/", 2, 20
PIXELS, SIDE = "pixels:48:32", 32


@functools.cache
def has(python: str, modules: tuple[str, ...]) -> bool:
    """Whether all modules can be found. This is faster than importing them."""
    find = f"import importlib.util as u; raise SystemExit(not all(u.find_spec(m) for m in {modules!r}))"
    return subprocess.run([python, "-c", find], check=False, capture_output=True).returncode == 0


def python_with(modules: list[str]) -> str:
    """The first Python with these modules."""
    for python in PYTHONS:
        if has(python, tuple(modules)):
            return python
    pytest.skip(f"no Python has all of {', '.join(modules)}")


def run(script: str, python: str, *arguments: object) -> dict:
    """Runs a script. Returns the JSON of its only line."""
    environment = dict(os.environ, AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION=REGION)
    command = [python, str(PEERS / script), *map(str, arguments)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    return json.loads(line)


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> pathlib.Path:
    """JPEGs in portrait and landscape format."""
    folder, random = tmp_path_factory.mktemp("photos"), np.random.default_rng(5)
    for number in range(COUNT):
        size = (7, 9) if number % 2 else (12, 8)
        noise = Image.fromarray(random.integers(0, 256, (*size, 3), np.uint8))
        noise.resize((size[1] * 11 + number, size[0] * 10), Image.Resampling.BICUBIC).save(folder / f"{number:02}.jpg")
    return folder


@pytest.fixture(scope="module")
def store(photos, tmp_path_factory) -> Iterator[str]:
    """SeaweedFS with the photos, as one object each and as shards."""
    weed, address = start_seaweedfs(tmp_path_factory.mktemp("store") / "weed")
    try:
        endpoint = f"http://{address}"
        client = Store("", endpoint, "", pathlib.Path()).client()
        client.create_bucket(Bucket=BUCKET)
        for path in photos.iterdir():
            client.upload_file(str(path), BUCKET, f"{PHOTOS}{path.name}")
        to = ["--endpoint", endpoint, "--bucket", BUCKET, "--prefix", SHARDS, "--samples", 6]
        assert run("shards.py", python_with(COMMON), photos, *to)["shards"] == 4
        yield endpoint
    finally:
        weed.stop()


def two_ports() -> int:
    """The first of two adjacent free ports."""
    while True:
        (port,) = free_ports(1)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
            return port


@contextlib.contextmanager
def tfdata_server(endpoint: str, work: str, decoder: str, folder: pathlib.Path) -> Iterator[str]:
    """Runs the service next to the store. Yields the URL of its dispatcher."""
    port, ready = two_ports(), folder / "ready"
    python = python_with(NEEDS["tfdata"] + DECODERS[decoder])
    options = {"endpoint": endpoint, "bucket": BUCKET, "prefix": PHOTOS, "work": work, "decoder": decoder}
    options |= {"batch-size": 8, "port": port, "ready-file": ready}
    command = [python, str(PEERS / "tfdata_server.py"), *(f"--{name}={value}" for name, value in options.items())]
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
    server = Process(command, folder / "log", dict(os.environ) | keys)
    try:
        server.wait_until("the tf.data service is ready", ready.exists)
        yield f"grpc://127.0.0.1:{port}"
    finally:
        server.stop()


def load(source: str, store: str, photos: pathlib.Path, folder: pathlib.Path, work: str, decoder: str = "pillow") -> tuple:
    """Runs a peer for two epochs. Returns its figures and its values by name."""
    python = python_with(NEEDS[source] + (DECODERS[decoder] if source != "tfdata" else []))
    prefix = {"files": photos, "webdataset": SHARDS}.get(source, PHOTOS)
    options = {"bucket": BUCKET, "prefix": prefix, "work": work, "batch-size": 8, "epochs": EPOCHS, "decoder": decoder}
    options |= {"step-ms": 1, "values": folder / "values.npz"}
    with contextlib.ExitStack() as running:
        if source == "tfdata":
            options["endpoint"] = running.enter_context(tfdata_server(store, work, decoder, folder))
        else:
            options["endpoint"] = store
        figures = run("loader.py", python, source, *(f"--{name}={value}" for name, value in options.items()))
    with np.load(folder / "values.npz") as values:
        return figures, dict(values)


def digest(values: dict) -> str:
    """The digest of all values in the order of their names."""
    of = hashlib.sha256()
    for name in sorted(values):
        of.update(name.encode() + values[name].tobytes())
    return of.hexdigest()


def check(figures: dict, source: str) -> None:
    """Checks that the figures are complete and plausible."""
    assert set(figures) == FIELDS
    assert (figures["arm"], figures["samples"], figures["errors"]) == (source, EPOCHS * COUNT, 0)
    assert len(figures["epoch_seconds"]) == EPOCHS
    assert 0 < figures["first_batch_seconds"] <= figures["epoch_seconds"][0]
    assert 0 < figures["batch_wait_p50_seconds"] <= figures["batch_wait_p99_seconds"] <= figures["stall_seconds"]
    assert figures["stall_seconds"] < sum(figures["epoch_seconds"])
    assert figures["cpu_seconds"] > 0 and figures["value_bytes"] > 0 and figures["peak_bytes"] > 1 << 20
    assert figures["settings"]


@pytest.mark.parametrize("source", NEEDS)
@pytest.mark.parametrize("decoder", DECODERS)
def test_all_peers_decode_to_the_same_pixels(source, decoder, store, photos, tmp_path):
    """The reference reads one file at a time with the same decoder."""
    if source == "tfdata" and decoder == "torchvision":
        pytest.skip("torch and TensorFlow do not start in one process")
    figures, values = load(source, store, photos, tmp_path, PIXELS, decoder)
    check(figures, source)
    assert sorted(values) == sorted(path.name for path in photos.iterdir())
    assert {(value.shape, value.dtype.str) for value in values.values()} == {((SIDE, SIDE, 3), "|u1")}
    assert digest(values) == digest(load("files", store, photos, tmp_path, PIXELS, decoder)[1])


@pytest.mark.parametrize("decoder", DECODERS)
def test_decoders_differ_by_at_most_two_levels(decoder, photos, tmp_path):
    """The reference is Pillow: the whole photo, resized and then cropped."""
    _, values = load("files", "", photos, tmp_path, PIXELS, decoder)
    for path in photos.iterdir():
        image = Image.open(path)
        width, height = image.size
        size = (48, int(48 * height / width)) if width <= height else (int(48 * width / height), 48)
        left, top = (round((side - SIDE) / 2) for side in size)
        whole = image.resize(size, Image.Resampling.BILINEAR).crop((left, top, left + SIDE, top + SIDE))
        apart = np.abs(np.asarray(whole, int) - values[path.name])
        assert apart.max() <= 2 and apart.mean() < 0.2, path.name


@pytest.mark.parametrize("source", NEEDS)
def test_bytes_are_delivered_unchanged(source, store, photos, tmp_path):
    figures, values = load(source, store, photos, tmp_path, "bytes")
    check(figures, source)
    assert {name: value.tobytes() for name, value in values.items()} == {
        path.name: path.read_bytes() for path in photos.iterdir()
    }
    sizes = EPOCHS * sum(path.stat().st_size for path in photos.iterdir())
    # Tar adds a header per photo, and padding.
    assert figures["value_bytes"] > sizes if source == "webdataset" else figures["value_bytes"] == sizes


@pytest.mark.parametrize("source", ["files", "webdataset"])
def test_an_invalid_photo_is_an_error_and_the_rest_is_delivered(source, store, photos, tmp_path):
    folder, prefix = tmp_path / "photos", f"broken-{source}/"
    shutil.copytree(photos, folder)
    (folder / "05.jpg").write_bytes(b"no photo")
    to = ["--endpoint", store, "--bucket", BUCKET, "--prefix", prefix]
    python = python_with(NEEDS[source])
    run("shards.py", python, folder, *to)
    read = [*to[:-1], folder if source == "files" else prefix, "--work", PIXELS, "--decoder", "pillow"]
    figures = run("loader.py", python, source, *read)
    assert (figures["samples"], figures["errors"]) == (COUNT - 1, 1)


def test_a_model_computes_features_of_the_pixels(store, photos, tmp_path):
    models = ROOT / ".cache/models"
    if not (models / "efficientnet_lite0.onnx").exists():
        pytest.skip("`scripts/models.sh efficientnet_lite0` has not created the model")
    values = tmp_path / "values.npz"
    options = ["--prefix", photos, "--work", "lite0", "--models", models, "--decoder", "pillow", "--values", values]
    figures = run("loader.py", python_with([*COMMON, "onnx", "onnxruntime"]), "files", *options)
    assert (figures["samples"], figures["errors"]) == (COUNT, 0)
    with np.load(values) as features:
        assert {(features[name].shape, features[name].dtype.str) for name in features} == {((1280,), "<f2")}
