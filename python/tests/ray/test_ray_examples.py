"""The examples in examples/ray run as their pages say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("ray.data", reason="Ray is not installed")

import ray.data

import pushdown
from pushdown._onnx import provide_onnx_runtime
from stores import start_gateway

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples/ray"
MODEL = "efficientnet_lite0"


@pytest.fixture(scope="module")
def models(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a gateway beside the store, with a model."""
    folder = tmp_path_factory.mktemp("models")
    for suffix in ("onnx", "json"):
        (folder / f"{MODEL}.{suffix}").symlink_to(ROOT / f".cache/models/{MODEL}.{suffix}")
    provide_onnx_runtime()
    process, addresses = start_gateway(folder / "gateway", allow_store=world.upstream, models=folder)
    yield f"http://{addresses['listen']}"
    process.stop()


def run(world: Any, script: str, *arguments: object) -> str:
    """Runs an example, which starts its own Ray. Returns its output."""
    environment = os.environ | {"AWS_ENDPOINT_URL_S3": world.upstream, "RAY_TMPDIR": "/tmp"}
    command = [sys.executable, EXAMPLES / script, "--data", "s3://photos/train/", *arguments]
    done = subprocess.run(list(map(str, command)), env=environment, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def test_features(cluster, world, models, tmp_path):
    sys.path.insert(0, str(EXAMPLES))
    import features

    assert "wrote" in run(world, "features.py", "--out", tmp_path, "--gateway", models)
    rows = ray.data.read_parquet(str(tmp_path)).take_all()
    store = pushdown.Store(endpoint=world.upstream)
    keys = pushdown.list("s3://photos/train/", store=store).keys()
    assert sorted(row["key"] for row in rows) == sorted(keys)
    assert {row["y"] for row in rows} == {0, 1} and {row["error"] for row in rows} == {None}
    expected = pushdown.get_many([f"s3://photos/{row['key']}" for row in rows], features.PIPELINE, store=store, gateway=models)
    for row, value in zip(rows, expected, strict=True):
        # Several samples may run through the model at once.
        assert np.allclose(row["x"], np.asarray(value), rtol=0.01, atol=0.01)


def test_training_goes_on_after_a_kill(world, tmp_path):
    printed = run(
        world, "train.py", "--storage", tmp_path, "--workers", 2, "--epochs", 2, "--batch-size", 4, "--kill-after", 3
    )
    assert "resumes on 2 workers at epoch 0, sample" in printed
    assert "trained until epoch 1: loss" in printed
