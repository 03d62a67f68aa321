"""Pillow's pixels of each file."""

import io

import numpy as np
from PIL import Image, ImageOps

from .fixtures import sixteen_bit
from .store import Store

TRUNCATED = ["jpeg_no_end.jpg", "jpeg_half.jpg"]


def opened(file: bytes) -> Image.Image:
    return Image.open(io.BytesIO(file))


def rgb(file: bytes) -> np.ndarray:
    return np.asarray(opened(file).convert("RGB"))


def _rounded(deep: np.ndarray) -> np.ndarray:
    """Rounds 16 bits to 8. Pillow clips grey and truncates RGB instead."""
    return ((deep.astype(np.uint32) + 128) // 257).astype(np.uint8)


def _reduced(file: bytes, divisor: int) -> np.ndarray:
    """libjpeg's scaled decoding, through Pillow's draft mode."""
    image = opened(file)
    width, height = image.size
    image.draft(None, (width // divisor, height // divisor))
    assert image.size == (-(-width // divisor), -(-height // divisor)), (image.size, divisor)
    return np.asarray(image.convert("RGB"))


def _divisor(side: int, floor: int) -> int:
    """The largest divisor that keeps the side at `floor` or more."""
    return next((divisor for divisor in (8, 4, 2) if -(-side // divisor) >= floor), 1)


def add(store: Store) -> None:
    deep = sixteen_bit()
    expected = {
        "grey_16": _rounded(deep[..., 1:2]).repeat(3, axis=2),
        "rgb_16": _rounded(deep),
    }
    for name, file in store.files.items():
        stem = name.split("_", 1)[1].rsplit(".", 1)[0]
        if name in TRUNCATED:
            try:
                rgb(file)
            except OSError:
                store.expect_error(name, "decode")
                continue
            raise RuntimeError(f"Pillow decodes {name}")
        # Pillow always applies the orientation of a TIFF. We apply it on request, for every format.
        if name != "tiff_exif_6.tif":
            store.expect(name, "decode", expected[stem] if stem in expected else rgb(file))
        if "exif" in name:
            upright = ImageOps.exif_transpose(opened(file)).convert("RGB")
            store.expect(name, "decode(orient=exif)", np.asarray(upright))
    for name, floors in {
        "jpeg_large.jpg": [301, 300, 151, 150, 76, 75, 38, 1],
        "jpeg_large_progressive.jpg": [150, 75, 38],
        "jpeg_large_grey.jpg": [100, 50, 25],
        "jpeg_422.jpg": [33, 17, 9],
        "jpeg_444.jpg": [33, 17, 9],
        "jpeg_cmyk.jpg": [33, 17, 9],
        "jpeg_rgb.jpg": [33, 17],
        "png_rgb.png": [1],
    }.items():
        file = store.files[name]
        for side, argument in (min, "min_short"), (max, "min_long"):
            for floor in floors:
                divisor = _divisor(side(opened(file).size), floor) if name.endswith(".jpg") else 1
                store.expect(name, f"decode({argument}={floor})", _reduced(file, divisor))
    file = store.files["jpeg_exif_6.jpg"]
    upright = np.rot90(_reduced(file, 2), 3)
    store.expect("jpeg_exif_6.jpg", "decode(orient=exif, min_short=11)", upright)
