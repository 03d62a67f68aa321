"""Resizing by Pillow, and by PyTorch without antialiasing."""

import numpy as np
import torch
import torchvision.transforms.functional as vision
from PIL import Image
from torch.nn.functional import interpolate

from .decoding import opened, rgb
from .store import Store

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
# Slightly smaller, much smaller, larger, one axis each, and one pixel.
SIZES = [(60, 40), (7, 5), (120, 90), (40, 90), (97, 30), (1, 1)]
SOURCES = ["jpeg_420.jpg", "jpeg_portrait.jpg"]


def _proportional(size: tuple[int, int], argument: str, given: int) -> tuple[int, int]:
    """The size for `short=` or `long=`; the other side is truncated to whole pixels."""
    side = (min if argument == "short" else max)(size)
    width, height = (given if extent == side else int(given * extent / side) for extent in size)
    return width, height


def _sized(image: Image.Image, size: tuple[int, int], name: str) -> np.ndarray:
    # Filters that compute have a tolerance of one level; nearest only copies.
    return np.asarray(image.resize(size, FILTERS[name]))


def _plain(pixels: np.ndarray, size: tuple[int, int], mode: str) -> np.ndarray:
    planes = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float()
    sized = interpolate(planes, (size[1], size[0]), mode=mode, align_corners=False, antialias=False)
    return sized[0].round().clamp(0, 255).byte().permute(1, 2, 0).numpy()


def add(store: Store) -> None:
    for source in SOURCES:
        image = opened(store.files[source]).convert("RGB")
        for name in FILTERS:
            off = 0 if name == "nearest" else 1
            for width, height in SIZES:
                pipeline = f"decode | resize({width}, {height}, filter={name})"
                store.expect(source, pipeline, _sized(image, (width, height), name), off)
        for mode in "bilinear", "bicubic":
            for size in SIZES:
                pipeline = f"decode | resize({size[0]}, {size[1]}, filter={mode}, antialias=false)"
                store.expect(source, pipeline, _plain(rgb(store.files[source]), size, mode), 1)
    for source in [*SOURCES, "jpeg_large.jpg", "jpeg_one_row.jpg", "jpeg_one_pixel.jpg"]:
        image = opened(store.files[source]).convert("RGB")
        for argument in "short", "long":
            for given in 48, 77:
                size = _proportional(image.size, argument, given)
                if min(size) == 0 or max(size) > 500:
                    # A side of 0 is invalid, and torchvision fails on it.
                    continue
                if argument == "short":
                    planes = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)
                    shape = vision.resize(planes, [given], antialias=True).shape
                    assert (shape[2], shape[1]) == size, (shape, size)
                pipeline = f"decode | resize({argument}={given})"
                store.expect(source, pipeline, _sized(image, size, "bilinear"), 1)
    image = opened(store.files["jpeg_one_pixel.jpg"]).convert("RGB")
    for name in FILTERS:
        pipeline = f"decode | resize(5, 3, filter={name})"
        store.expect("jpeg_one_pixel.jpg", pipeline, _sized(image, (5, 3), name))
