"""Tests of the Python layer: a double takes the place of the native readers."""

from __future__ import annotations

import copyreg
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

UNIT = Path(__file__).parent
sys.path[:0] = [str(UNIT), str(UNIT.parents[1] / "python")]
import reader_double
import shard_double
import shard_reader_double
import store_double
import whole_double

NAMES = {
    **dict.fromkeys(("Batch", "ErrorPolicy", "Objects", "Reader", "Tensor"), reader_double),
    **dict.fromkeys(("Store", "Table", "TableBatch", "TableReader", "__version__"), store_double),
    **dict.fromkeys(("ShardReader", "ShardsRead"), shard_reader_double),
    **dict.fromkeys(("ShardIndex", "expand_braces", "is_shard"), shard_double),
    **dict.fromkeys(("check_json", "escape", "parse_pipeline", "run_command", "steps_json"), store_double),
    **dict.fromkeys(("materialize_json", "warm_json"), whole_double),
}
DOUBLES = {name: getattr(double, name) for name, double in NAMES.items()}


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The double with a bucket of 20 photos in two folders. After each test nothing may be open."""
    module = importlib.import_module("pushdown._native")
    objects = importlib.import_module("pushdown.objects")
    for name, double in DOUBLES.items():
        monkeypatch.setattr(module, name, double)
    copyreg.pickle(reader_double.Objects, objects._reduce)
    reader_double.reset()
    whole_double.jobs.clear()
    reader_double.buckets["photos"] = [
        f"train/{folder}/{n:02}.jpg" for folder in ("cat", "dog") for n in range(10)
    ]
    yield reader_double
    assert reader_double.live == []


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
