"""Collects files and their expected pixels."""

import io

import numpy as np
from PIL import Image


def pillow(file: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


class Store:
    """Files by name, and their expected pixels [height, width, 3]."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.expected: dict[str, np.ndarray] = {}

    def add(self, name: str, file: bytes, expected: np.ndarray | None = None) -> None:
        """`expected` overrides Pillow's pixels, for files that it does not read or reads differently."""
        assert name not in self.files, name
        self.files[name] = file
        self.expected[name] = pillow(file) if expected is None else expected.astype(np.uint8)


def grey(levels: np.ndarray) -> np.ndarray:
    """Levels [height, width] as RGB."""
    return np.repeat(np.asarray(levels)[..., None], 3, axis=2)
