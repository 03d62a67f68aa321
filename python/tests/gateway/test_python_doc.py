"""docs/PYTHON.md and docs/SHARDS.md: their Python code runs against a real gateway.

In the place of `pushdown.torch.Loader`, which needs PyTorch, stands its reader.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import ROOT, photos

import pushdown
import shards
from stores import ACCESS, SECRET, start_gateway

PIPELINE = "decode | random_resized_crop(32) | flip_h | to_float | normalize(imagenet)"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A gateway that serves what the pages read, and one in front of the same store that has a result cache."""
    folder = tmp_path_factory.mktemp("python-doc")
    bodies = [photo.read_bytes() for photo in photos()[:8]]
    members: dict[str, bytes] = {}
    for number, body in enumerate(bodies):
        members |= {
            f"{number:04}.jpg": body,
            f"{number:04}.cls": str(number % 2).encode(),
            f"{number:04}.json": b"{}",
        }
    halves = [dict(list(members.items())[:12]), dict(list(members.items())[12:])]
    files = {f"photos/train/{'cat' if n % 2 else 'dog'}/{n}.jpg": body for n, body in enumerate(bodies)}
    files["photos/train.csv"] = b"path,label\ntrain/cat/1.jpg,1\ntrain/dog/2.jpg,0\n"
    for number, half in enumerate(halves):
        tar = shards.tar_of(half, "ustar")
        files |= {
            f"photos/train-{number:06}.tar": tar,
            f"photos/train-{number:06}.tar.gz": shards.compress(tar, ".gz"),
        }
    sales = pyarrow.table({"user": ["a", "b", "c"], "price": [1.5, 3.5, 4.5]})
    images = pyarrow.table(
        {"image": bodies, "jpg": bodies, "label": list(range(8)), "caption": [str(n) for n in range(8)]}
    )
    for key, table in (("tables/sales", sales), ("photos/imagenet/train-0", images)):
        body = io.BytesIO()
        pyarrow.parquet.write_table(table, body)
        files[f"{key}.parquet"] = body.getvalue()
    for key, content in files.items():
        path = folder / "store" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "store/photos-small").mkdir()
    settings = {"store": folder / "store", "access_key": ACCESS, "secret_key": SECRET}
    with contextlib.ExitStack() as running:
        gateway, found = start_gateway(folder / "gateway", **settings)
        running.callback(gateway.stop)
        upstream = f"http://{found['store']}"
        caching, behind = start_gateway(folder / "caching", upstream=upstream, cache_memory="64MiB")
        running.callback(caching.stop)
        yield f"http://{found['listen']}", f"http://{behind['listen']}"


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module `pushdown.torch` that imports no PyTorch."""
    package: Any = ModuleType("pushdown.torch")
    monkeypatch.setitem(sys.modules, "pushdown.torch", package)
    monkeypatch.setattr(pushdown, "torch", package, raising=False)
    package.Loader = pushdown.Reader


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("page", ["PYTHON.md", "SHARDS.md"])
def test_the_code_of_the_page_runs(
    page: str, addresses: tuple[str, str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, caching = addresses
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "numpy": numpy,
        "polars": polars,
        "pyarrow": pyarrow,
        "pushdown": pushdown,
        "pt": getattr(pushdown, "torch"),  # noqa: B009
        "source": "s3://photos/train/",
        "pipeline": PIPELINE,
        "urls": ["s3://photos/train/cat/1.jpg", "s3://photos/train/dog/2.jpg"],
        "step": lambda *values: None,
    }
    run = 0
    for code in blocks(page):
        if "torch.utils.data" in code or "pushdown.ray" in code:
            # It needs PyTorch or Ray: python/tests/torch and python/tests/ray test what it shows.
            continue
        adapted = code.replace("http://127.0.0.1:9900", address).replace("{000000..000999}", "{000000..000001}")
        # `explain` measures steps, which do not run where a result cache has their values.
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", caching if "pushdown.warm(" in code else address)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(adapted, page, "exec", dont_inherit=True), names)
        if "reader" in names:
            names["state"] = names["reader"].state_dict()
            names["states"] = [names["state"]]
        run += 1
    assert run >= {"PYTHON.md": 12, "SHARDS.md": 2}[page]
    for opened in ("reader", "loader", "rows"):
        if opened in names:
            names[opened].close()
