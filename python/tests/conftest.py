"""A gateway over its embedded store, with photos in folders by class and tables."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/clients"))

from stores import ACCESS, REGION, SECRET, Store, start_gateway

PHOTOS = ROOT / "testkit/fixtures/photos"
# Damaged on purpose, or of kinds that the steps of these tests do not take.
UNSUITABLE = ("wrong_bits", "lost_restart", "one_", "cmyk", "ycck", "half", "no_end")
CLASSES = ["exif", "other"]


@dataclasses.dataclass(frozen=True)
class World:
    """A running gateway, and what is stored there."""

    endpoint: str
    admin: str
    upstream: str
    folder: pathlib.Path

    @property
    def s3(self) -> Any:
        return Store("embedded", self.endpoint, "", pathlib.Path()).client()

    def put(self, bucket: str, key: str, body: bytes) -> None:
        self.s3.put_object(Bucket=bucket, Key=key, Body=body)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run also the tests marked as `full`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("full"):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hides the configuration, proxy and credentials of the user."""
    nothing = tmp_path_factory.mktemp("aws") / "empty"
    nothing.touch()
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name.startswith(("AWS_", "BOTO", "PUSHDOWN_")) or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            patch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": str(nothing),
        "AWS_SHARED_CREDENTIALS_FILE": str(nothing),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        patch.setenv(name, value)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def world(environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A gateway in front of photos."""
    folder = tmp_path_factory.mktemp("world")
    with contextlib.ExitStack() as running:
        settings = {"store": folder / "store", "access_key": ACCESS, "secret_key": SECRET}
        gateway, addresses = start_gateway(folder / "gateway", **settings)
        running.callback(gateway.stop)
        world = World(
            f"http://{addresses['listen']}",
            f"http://{addresses['admin']}",
            f"http://{addresses['store']}",
            folder,
        )
        s3 = world.s3
        s3.create_bucket(Bucket="photos")
        for photo in photos():
            kind = "exif" if "exif" in photo.name else "other"
            s3.put_object(Bucket="photos", Key=f"train/{kind}/{photo.name}", Body=photo.read_bytes())
        yield world


def photos() -> list[pathlib.Path]:
    """The photos that every pipeline of these tests can read."""
    files = sorted([*PHOTOS.glob("*.jpg"), *PHOTOS.glob("*.png")])
    return [file for file in files if not any(name in file.name for name in UNSUITABLE)]


@pytest.fixture(scope="session")
def endpoint(world: World) -> str:
    """Address of the gateway."""
    return world.endpoint


@pytest.fixture(scope="session")
def source() -> str:
    """Address of the photos."""
    return "s3://photos/train/"


@pytest.fixture(scope="session")
def options(endpoint: str) -> dict[str, Any]:
    """Arguments of readers in all tests: four samples in a batch, shuffled, with labels."""
    import pushdown

    return {"store": pushdown.Store(endpoint=endpoint), "batch_size": 4, "labels": "dir", "seed": 7}


@pytest.fixture(scope="session")
def gateway(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a gateway without an upstream, which may fetch from the store of the photos."""
    with contextlib.ExitStack() as running:
        folder = tmp_path_factory.mktemp("beside") / "gateway"
        process, addresses = start_gateway(folder, allow_store=world.upstream)
        running.callback(process.stop)
        yield f"http://{addresses['listen']}"


@pytest.fixture(scope="session")
def both(world: World, gateway: str, options: dict[str, Any]) -> dict[str, Any]:
    """The same arguments, with the address of the store and that of the gateway beside it."""
    import pushdown

    return {**options, "store": pushdown.Store(endpoint=world.upstream), "gateway": gateway}
