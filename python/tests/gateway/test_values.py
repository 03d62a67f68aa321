"""Values: owned, writable, without copies, for NumPy, DLPack and Arrow."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from PIL import Image

import pushdown
from pushdown import Store

PHOTOS = pathlib.Path(__file__).resolve().parents[3] / "testkit/fixtures/photos"


def batch_of(options: dict[str, Any], source: str, pipeline: str) -> pushdown.Batch:
    with pushdown.Reader(source, pipeline, **options) as reader:
        return next(iter(reader))


def test_a_batch_is_one_array_that_numpy_and_dlpack_share(options: dict[str, Any], source: str) -> None:
    batch = batch_of(options, source, "decode | resize(32, 24) | to_float")
    x = batch.x
    assert (x.dtype, x.shape, x.layout) == ("f32", (4, 3, 24, 32), "chw")
    assert x.data_ptr % 64 == 0
    views = [np.asarray(x), np.asarray(memoryview(x)), np.from_dlpack(x)]
    for view in views:
        assert view.shape == x.shape and view.dtype == np.float32
        assert view.__array_interface__["data"][0] == x.data_ptr, "a copy was made"
        assert view.flags.writeable and view.flags.c_contiguous
    views[0][0, 0, 0, 0] = 7
    assert views[2][0, 0, 0, 0] == 7
    del x, batch
    assert views[2][0, 0, 0, 0] == 7, "a view keeps the memory alive"


def test_the_memory_is_that_of_the_stack(options: dict[str, Any], source: str) -> None:
    """The address does not change between the native stack and the consumer."""
    batch = batch_of(options, source, "decode | resize(32, 24)")
    stacked = batch.native.stack()
    assert stacked is not None
    assert np.asarray(stacked).ctypes.data == stacked.data_ptr
    assert np.array_equal(np.asarray(stacked), np.asarray(batch.x))


def test_a_copy_is_made_only_if_asked_for(options: dict[str, Any], source: str) -> None:
    x = batch_of(options, source, "decode | resize(32, 24)").x
    assert np.array(x, copy=None).ctypes.data == x.data_ptr
    copy = np.array(x, copy=True)
    assert copy.ctypes.data != x.data_ptr and np.array_equal(copy, np.asarray(x))
    assert np.asarray(x, dtype=np.float64).dtype == np.float64


def test_a_tensor_that_fits_no_memory_is_an_error() -> None:
    with pytest.raises(MemoryError, match="no memory for a tensor"):
        pushdown.Tensor("u8", [1 << 62])
    with pytest.raises(Exception, match="too large"):
        pushdown.Tensor("f64", [1 << 62])
    with pytest.raises(Exception, match="expected 8 bytes, found 3"):
        pushdown.Tensor("i64", [1], b"abc")
    assert np.asarray(pushdown.Tensor("f32", [0, 3])).shape == (0, 3)


def test_bfloat16_is_exact(options: dict[str, Any], source: str) -> None:
    float32 = batch_of(options, source, "decode | resize(32, 24) | to_float").x
    bfloat16 = batch_of(options, source, "decode | resize(32, 24) | to_float | cast(bf16)").x
    assert bfloat16.dtype == "bf16"
    bits = np.asarray(bfloat16)
    assert bits.dtype == np.uint16
    assert np.array_equal(bits.view(ml_dtypes.bfloat16), np.asarray(float32).astype(ml_dtypes.bfloat16))
    assert bfloat16.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(bfloat16.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(bfloat16.__dlpack__())


def test_pixels_equal_those_of_pillow(options: dict[str, Any], source: str, endpoint: str) -> None:
    name = "jpeg_444.jpg"
    value = pushdown.get(f"{source}other/{name}", "decode", store=Store(endpoint=endpoint))
    with Image.open(PHOTOS / name) as photo:
        assert np.array_equal(np.asarray(value), np.asarray(photo.convert("RGB")))


def test_values_without_a_common_shape_are_a_list(options: dict[str, Any], source: str) -> None:
    batch = batch_of(options, source, "decode")
    assert isinstance(batch.x, list) and len(batch.x) == 4
    assert {value.dtype for value in batch.x} == {"u8"}


@pytest.mark.parametrize("mode", ["auto", "pushdown", "plain"])
def test_modes_give_the_same_pixels(options: dict[str, Any], source: str, mode: str) -> None:
    options = {**options, "mode": mode}
    pipeline = "decode | random_resized_crop(32) | flip_h | to_float | normalize(imagenet)"
    x = batch_of(options, source, pipeline).x
    plain = batch_of({**options, "mode": "plain"}, source, pipeline).x
    assert np.array_equal(np.asarray(x), np.asarray(plain))


def test_importing_is_light() -> None:
    """No thread, and at most 150 modules, none of them a heavy one."""
    program = (
        "import os, sys\n"
        "before = set(sys.modules)\n"
        "import pushdown\n"
        "print(len(os.listdir('/proc/self/task')), *(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    threads, *modules = done.stdout.split()
    assert threads == "1"
    assert "pushdown" in modules
    assert not {"asyncio", "duckdb", "numpy", "pandas", "polars", "pyarrow", "torch"} & set(modules)
    assert len(modules) <= 150, sorted(modules)


def test_a_stranger_under_the_same_name_is_named(tmp_path: pathlib.Path) -> None:
    """Without the native module, as when PyPI's other `pushdown` replaced files of the package, the error says what to do."""
    package = pathlib.Path(pushdown.__file__).parent
    for file in package.glob("*.py"):
        (tmp_path / "pushdown").mkdir(exist_ok=True)
        (tmp_path / "pushdown" / file.name).write_text(file.read_text())
    done = subprocess.run(
        [sys.executable, "-c", "import pushdown"], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == 1
    assert "pip install --force-reinstall pushdown-client" in done.stderr
