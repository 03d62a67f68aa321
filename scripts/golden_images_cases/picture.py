"""The picture of all files, and its encoding by Pillow."""

import io

import numpy as np
from PIL import Image

# Multiples of neither 8 bits nor JPEG's blocks.
WIDTH, HEIGHT = 23, 17


def rgb(width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Slopes, an edge and some noise in three channels."""
    y, x = np.mgrid[:height, :width].astype(np.int64)
    noise = (x * 2654435761 + y * 40503 * 65537) >> 7 & 31
    red = x * 255 // max(width - 1, 1)
    green = y * 255 // max(height - 1, 1)
    blue = np.where((x // 5 + y // 7) % 2 == 0, 40, 210) + noise
    return np.stack([red, green, blue], axis=-1).clip(0, 255).astype(np.uint8)


def indices(colours: int, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Indices below `colours`, all of them used, in runs of several lengths."""
    y, x = np.mgrid[:height, :width]
    runs = (x // (1 + y % 7) + y * 3 + x * y // 11) % colours
    return runs.astype(np.uint8)


def palette(colours: int) -> np.ndarray:
    """Distinct colours."""
    index = np.arange(colours)
    return np.stack([index * 97 % 256, index * 31 % 256 ^ 0x55, 255 - index % 256], axis=-1).astype(np.uint8)


def alpha(width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """From clear to opaque."""
    return np.linspace(0, 255, width * height).reshape(height, width).astype(np.uint8)


def saved(pixels: np.ndarray | Image.Image, form: str, **options) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
