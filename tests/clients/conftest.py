"""Every test runs with a gateway in front of SeaweedFS, in forward mode and in re-sign mode.

For those of clients, this SeaweedFS is addressed and refuses as AWS does in re-sign mode. With `--full`, which `make test-full` sets, they
also run with one that does not, every test runs in front of the embedded store, too, and large files and long plans are tested. `make
test-stores` runs all in front of Ceph and Garage.
"""

import contextlib
import os
import pathlib
import sys
import urllib.request
import uuid

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from stores import (  # noqa: E402
    ACCESS,
    BACKENDS,
    REAL_STORES,
    REGION,
    ROOT,
    SECRET,
    Store,
    certificate,
    keys_file,
    session_environment,
    start_aws_front,
    start_gateway,
    start_real_store,
    start_seaweedfs,
)

# What clients do, and all that addresses, regions and credentials of the store can change.
AWS_MODULES = {
    "test_aws_cli",
    "test_batches",
    "test_file_systems",
    "test_objects",
    "test_pipelines",
    "test_reader",
    "test_uploads",
}


def pytest_addoption(parser) -> None:
    parser.addoption("--full", action="store_true", help="run every test in front of every store, and those marked as `full`")


def selected_backends() -> list[str]:
    """The stores named by `PUSHDOWN_TEST_BACKENDS`, separated by commas; by default all but the real ones."""
    known = BACKENDS + REAL_STORES
    names = os.environ.get("PUSHDOWN_TEST_BACKENDS", ",".join(BACKENDS)).split(",")
    unknown = set(names) - set(known)
    if unknown:
        raise pytest.UsageError(f"PUSHDOWN_TEST_BACKENDS: {', '.join(unknown)} is not one of {', '.join(known)}")
    return names


def pytest_report_header() -> list[str]:
    left_out = [name for name in BACKENDS + REAL_STORES if name not in selected_backends()]
    reasons = {name: "make test-stores" for name in REAL_STORES}
    return [
        f"SKIPPED: no test in front of {name}: {reasons.get(name, 'PUSHDOWN_TEST_BACKENDS leaves it out')}"
        for name in left_out
    ]


def backend(item) -> str | None:
    """The store of a test; `None` for a test without one."""
    return item.callspec.params.get("store") if hasattr(item, "callspec") else None


def is_left_to_full(item) -> bool:
    """Whether a test needs `--full`, or another store is enough without it. Stores that are named run all of their tests."""
    if item.config.getoption("full"):
        return False
    if item.get_closest_marker("full"):
        return True
    if "PUSHDOWN_TEST_BACKENDS" in os.environ:
        return False
    if item.get_closest_marker("one_store"):
        return backend(item) not in (None, "seaweedfs")
    has_aws = item.path.stem in AWS_MODULES and not item.get_closest_marker("resign_only")
    return backend(item) == "embedded" or (backend(item) == "resign" and has_aws)


def is_elsewhere(item) -> bool:
    """Whether a test does not apply to its store."""
    if item.get_closest_marker("resign_only"):
        return backend(item) != "resign"
    return backend(item) == "aws" and item.path.stem not in AWS_MODULES


def pytest_collection_modifyitems(config, items) -> None:
    """Features missing in a store or in re-sign mode are expected failures; an unexpected pass is reported."""
    left_out = [item for item in items if is_elsewhere(item) or is_left_to_full(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        for marker in item.iter_markers("store_lacks"):
            name, reason = marker.args
            if backend(item) == name:
                item.add_marker(pytest.mark.xfail(reason=f"{name} {reason}", strict=True))
        marker = item.get_closest_marker("resign_differs")
        if marker and backend(item) in ("resign", "aws"):
            item.add_marker(pytest.mark.xfail(reason=f"re-sign mode {marker.args[0]}", strict=True))


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory):
    """Hides the configuration, proxy and credentials of the user from all clients."""
    nothing = tmp_path_factory.mktemp("aws") / "none"
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name.startswith(("AWS_", "BOTO")) or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            patch.delenv(name)
    patch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    patch.setenv("AWS_DEFAULT_REGION", REGION)
    patch.setenv("AWS_CONFIG_FILE", str(nothing))
    patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nothing))
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield
    patch.undo()


@pytest.fixture(scope="session", params=selected_backends())
def store(request, environment, tmp_path_factory):
    """A store with two gateways in front of it, one of them with TLS."""
    folder = tmp_path_factory.mktemp(request.param)
    with contextlib.ExitStack() as running:
        resign, environment_of_gateways, fields = {}, None, {}
        if request.param == "embedded":
            settings = {"store": folder / "store", "access_key": ACCESS, "secret_key": SECRET}
        elif request.param in REAL_STORES:
            real_store, address, fields = start_real_store(request.param, folder / "real-store")
            running.callback(real_store.stop)
            settings = {"upstream": f"http://{address}"}
            patch = running.enter_context(pytest.MonkeyPatch.context())
            patch.setenv("AWS_ACCESS_KEY_ID", fields["keys"].access)
            patch.setenv("AWS_SECRET_ACCESS_KEY", fields["keys"].secret)
        else:
            weed, address = start_seaweedfs(folder / "weed")
            running.callback(weed.stop)
            settings = {"upstream": f"http://{address}"}
        if request.param == "resign":
            resign = {"resign_keys": keys_file(folder, "self")}
        elif request.param == "aws":
            front, urls = start_aws_front(folder / "front", address)
            running.callback(front.stop)
            settings = {"upstream": urls["url"]}
            resign = {"resign_keys": keys_file(folder, "gateway"), "resign_upstream_style": "virtual"}
            environment_of_gateways = session_environment(urls["credentials_url"])
        plain, addresses = start_gateway(folder / "plain", environment_of_gateways, **settings, **resign)
        running.callback(plain.stop)
        files = certificate(folder)
        authority = files.pop("authority")
        store_url = f"http://{addresses.get('store') or address}"
        if "PUSHDOWN_TEST_DIRECT" in os.environ:
            # Shows whether the gateway or the store causes a failure.
            yield Store(request.param, store_url, store_url, folder, store_url, **fields)
            return
        upstream = settings.get("upstream", store_url)
        tls, tls_addresses = start_gateway(
            folder / "tls", environment_of_gateways, upstream=upstream, **files, **resign
        )
        running.callback(tls.stop)
        urls = f"http://{addresses['listen']}", f"https://{tls_addresses['listen']}"
        yield Store(request.param, *urls, authority, store_url, **fields)
        with urllib.request.urlopen(f"http://{addresses['admin']}/metrics") as metrics:
            assert b"\npushdown_memory_reserved_bytes 0\n" in metrics.read(), "memory permits remain in use"


@pytest.fixture(scope="session")
def s3(store):
    return store.client()


@pytest.fixture
def bucket(store, s3):
    """A bucket for one test, emptied and removed afterwards."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    store.create_bucket(name)
    yield name
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
        for entry in page.get("Contents", []):
            s3.delete_object(Bucket=name, Key=entry["Key"])
    s3.delete_bucket(Bucket=name)


@pytest.fixture(scope="session")
def photos() -> pathlib.Path:
    return ROOT / "testkit/fixtures/photos"
