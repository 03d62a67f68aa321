"""JPEGs of every sampling that libjpeg-turbo reads, and truncated ones."""

import io
import subprocess

import numpy as np
from PIL import Image

from . import picture
from .store import Store

# Several blocks in each direction for every sampling, and a multiple of no block.
SIZE = (101, 61)

SAMPLINGS = [
    "1x1", "2x1", "1x2", "2x2", "4x1", "1x4", "4x2", "2x4", "3x1", "1x3", "3x2", "2x3",
    "2x1,2x1,2x1", "1x2,1x2,1x2", "3x1,3x1,3x1", "1x3,1x3,1x3",
    "2x2,2x1,2x1", "2x2,1x2,1x2", "4x1,2x1,2x1", "1x4,1x2,1x2",
    "4x1,1x1,2x1", "2x2,1x1,2x1", "2x2,2x1,1x2", "2x1,1x1,2x1",
    "1x1,2x1,2x1", "1x1,1x2,1x2", "1x1,2x2,2x2", "1x2,2x1,2x1", "2x1,1x2,1x2", "1x1,4x1,4x1",
]


def cjpeg(*options: str) -> bytes:
    pixels = picture.rgb(*SIZE)
    source = b"P6 %d %d 255\n" % SIZE + pixels.tobytes()
    return subprocess.run(["cjpeg", "-quality", "40", *options], input=source, capture_output=True, check=True).stdout


def _samplings(store: Store) -> None:
    for sampling in SAMPLINGS:
        # Omitted components are 1x1.
        name = "jpeg_" + sampling.replace(",", "_")
        store.add(f"{name}.jpg", cjpeg("-sample", sampling), is_read=True)
        store.add(f"{name}_progressive.jpg", cjpeg("-sample", sampling, "-progressive"), is_read=True)
    for sampling in "1x1", "2x2", "4x1":
        store.add(f"jpeg_grey_{sampling}.jpg", cjpeg("-grayscale", "-sample", sampling), is_read=True)
        store.add(f"jpeg_rgb_{sampling}.jpg", cjpeg("-rgb", "-sample", sampling), is_read=True)
        store.add(f"jpeg_restart_{sampling}.jpg", cjpeg("-sample", sampling, "-restart", "3B"), is_read=True)
        store.add(f"jpeg_arithmetic_{sampling}.jpg", cjpeg("-sample", sampling, "-arithmetic"), is_read=True)


def _four_inks(store: Store) -> None:
    image = Image.fromarray(picture.rgb(*SIZE)).convert("CMYK")
    for sampling in "4:4:4", "4:2:2", "4:2:0":
        for progressive in False, True:
            cmyk = picture.saved(image, "JPEG", quality=40, subsampling=sampling, progressive=progressive)
            transform = cmyk.index(b"Adobe") + 11
            name = sampling.replace(":", "") + ("_progressive" if progressive else "")
            store.add(f"jpeg_cmyk_{name}.jpg", cmyk, is_read=True)
            store.add(f"jpeg_ycck_{name}.jpg", cmyk[:transform] + b"\2" + cmyk[transform + 1 :], is_read=True)


def _ends(store: Store) -> None:
    whole = {
        "420": cjpeg("-sample", "2x2"),
        "444": cjpeg("-sample", "1x1"),
        "grey": cjpeg("-grayscale"),
        "restart": cjpeg("-sample", "2x1", "-restart", "3B"),
    }
    for name, file in whole.items():
        pixels = np.asarray(Image.open(io.BytesIO(file)))
        for zeros in 8, 100, 5000:
            padded = file[:-2] + bytes(zeros)
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(padded))), pixels)
            store.add(f"jpeg_{name}_zeros_{zeros}.jpg", padded, is_read=True)
        store.add(f"jpeg_{name}_no_end.jpg", file[:-2], is_read=False)
        # Half of a download in a file of zeros. Zeros are valid codes, if there are enough of them and no restart marker is
        # expected.
        half = file[: len(file) * 3 // 4]
        store.add(f"jpeg_{name}_half_few_zeros.jpg", half + bytes(20), is_read=False)
        store.add(f"jpeg_{name}_half_zeros.jpg", half + bytes(3000), is_read=name != "restart")
    progressive = cjpeg("-progressive")
    store.add("jpeg_progressive_zeros.jpg", progressive[:-2] + bytes(100), is_read=False)


def add(store: Store) -> None:
    for part in _samplings, _four_inks, _ends:
        part(store)
