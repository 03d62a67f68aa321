"""Data loaders of PyTorch deliver the same tensors from each layout at rest: those of Pillow, resized and cropped.

A loader runs in the first Python of `.venv-e2e*` that has its packages; without one the test is skipped.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import programs
import pytest
from PIL import Image

pytest.importorskip("trustme", reason="stores.py needs it")
pytest.importorskip("psutil", reason="it is in .venv-e2e")
pytest.importorskip("pyarrow", reason="it is in .venv-e2e")

from .. import arms, layout_data  # noqa: E402
from ..data import StoredData  # noqa: E402
from ..kinds import layouts  # noqa: E402
from ..layout_data import DataSet  # noqa: E402
from ..scenario import LAYOUTS, Scenario  # noqa: E402
from .test_peers import ACCESS, REGION, SECRET, photos, python_with, start_seaweedfs  # noqa: E402, F401

COUNT, SHORT, CROP = 70, 48, 32
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
PIPELINE = f"decode | resize(short={SHORT}) | center_crop({CROP}) | to_float | normalize(imagenet)"
NEEDS = {"webdataset-pil": ["torchvision", "webdataset"], "datasets": ["torchvision", "datasets", "s3fs"], "plain": []}
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


class Tiers:
    """A store, and commands with its keys."""

    def __init__(self, endpoint: str, client: object) -> None:
        self.stack = SimpleNamespace(store=endpoint, client=client, upload=self.upload, gateway="http://127.0.0.1:9")

    def upload(self, files: dict[str, Path]) -> None:
        for key, file in files.items():
            self.stack.client.upload_file(str(file), layout_data.BUCKET, key)

    @staticmethod
    def run(command: list) -> dict:
        ended = subprocess.run([*map(str, command)], env=os.environ | KEYS, check=True, capture_output=True, text=True)
        return json.loads(ended.stdout)


@pytest.fixture(name="tiers", scope="module")
def tiers_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiers]:
    """SeaweedFS with an empty bucket."""
    if not (programs.ROOT / ".venv/bin/weed").exists():
        pytest.skip("`scripts/setup.sh test` installs SeaweedFS")
    weed, address = start_seaweedfs(tmp_path_factory.mktemp("store") / "weed")
    try:
        client = programs.s3(f"http://{address}", KEYS)
        client.create_bucket(Bucket=layout_data.BUCKET)
        yield Tiers(f"http://{address}", client)
    finally:
        weed.stop()


def stored(layout: str, tiers: Tiers, photos: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:  # noqa: F811
    """The photos in a layout."""
    monkeypatch.setattr("e2e.data.PHOTOS", photos.parent)
    monkeypatch.setattr("e2e.data.DERIVED", folder)
    monkeypatch.setattr(programs, "KEYS", KEYS)
    return layout_data.UPLOAD[layout](photos.name, COUNT, StoredData(tiers.stack), tiers, folder)


def expected_mean(photos: Path) -> float:  # noqa: F811
    """The mean of all normalised values by Pillow: the whole photo, resized and then cropped."""
    means = []
    for path in sorted(photos.iterdir()):
        image = Image.open(path).convert("RGB")
        width, height = image.size
        size = (SHORT, int(SHORT * height / width)) if width <= height else (int(SHORT * width / height), SHORT)
        left, top = (round((side - CROP) / 2) for side in size)
        square = image.resize(size, Image.Resampling.BILINEAR).crop((left, top, left + CROP, top + CROP))
        means.append(((np.asarray(square) / 255 - MEAN) / STD).mean())
    return float(np.mean([means[number % len(means)] for number in range(COUNT)]))


@pytest.mark.parametrize(
    ("name", "layout"), [*((name, layout) for name, (_, layout) in layouts.PEERS.items()), *(("plain", layout) for layout in LAYOUTS)]
)
def test_a_loader_delivers_the_tensors_of_pillow_in_each_epoch(
    name: str, layout: str, tiers: Tiers, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    python = Path(python_with(["numpy", "boto3", "torch", *NEEDS[name]]))
    if name == "plain" and not arms.NATIVE_MODULE.exists():
        pytest.skip(f"{arms.NATIVE_MODULE} is not built")
    monkeypatch.setattr(layouts, "VENV", python.parent.parent)
    scenario = Scenario(
        "s", "", "layouts", False, pipeline=PIPELINE, samples=COUNT, batch_size=16, layouts=(layout,), arms=(name,)
    )
    data_set = stored(layout, tiers, photos, tmp_path, monkeypatch)
    environment = os.environ | KEYS | {"NATIVE": str(arms.NATIVE_MODULE), "HF_HOME": str(tmp_path), "HF_UPDATE_DOWNLOAD_COUNTS": "0"}
    ended = subprocess.run(
        [*map(str, layouts.command(name, scenario, data_set, tiers))], input="check\nread\nread\n", env=environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    epochs = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(each["samples"], each["labels"], each["errors"]) for each in epochs] == [(COUNT, sum(layout_data.labels(COUNT)), 0)] * 3
    assert epochs[0]["value_mean"] == pytest.approx(expected_mean(photos), abs=layouts.MAX_MEAN_DIFFERENCE / 2)
    assert epochs[1]["value_mean"] is None and epochs[0]["settings"]
