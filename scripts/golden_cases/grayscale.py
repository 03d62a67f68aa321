"""Pillow's grey pixels by `convert("L")`: of whole photos, of a crop, and after resizing."""

import numpy as np
from PIL import Image

from .decoding import TRUNCATED, opened
from .store import Store

PART = (20, 20, 44, 37)
# Decoded differently from Pillow; docs/SEMANTICS.md documents each.
DECODED_DIFFERENTLY = ["png_grey_16.png", "png_rgb_16.png", "tiff_grey_16.tif", "tiff_rgb_16.tif", "tiff_exif_6.tif"]


def grey(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("L"))[None]


def add(store: Store) -> None:
    for name, file in store.files.items():
        if name in TRUNCATED or name in DECODED_DIFFERENTLY:
            continue
        image = opened(file).convert("RGB")
        left, top, right, bottom = PART
        pipeline = f"decode | crop({left}, {top}, {right - left}, {bottom - top}) | grayscale"
        store.expect(name, pipeline, grey(image.crop(PART)))
    for name in "jpeg_large.jpg", "jpeg_large_grey.jpg", "jpeg_large_progressive.jpg":
        image = opened(store.files[name]).convert("RGB")
        whole = grey(image)
        assert whole.nbytes > 20_000, name
        store.expect(name, "decode | grayscale", whole)
        # Resampling alone can be one level off.
        small = grey(image.resize((28, 28), Image.Resampling.BILINEAR))
        store.expect(name, "decode | resize(28, 28) | grayscale", small, 1)
        floats = small.astype(np.float32) / 255
        store.expect(name, "decode | resize(28, 28) | grayscale | to_float", floats, 1.01 / 255)
