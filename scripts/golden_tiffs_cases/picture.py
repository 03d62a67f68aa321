"""The picture of all files, in several forms."""

import numpy as np

HEIGHT, WIDTH = 18, 21


def rgb() -> np.ndarray:
    """Smooth, with a line of one colour and a few outstanding pixels."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    red, green, blue = x * 12 + 3, y * 14 + 2, (x * y * 7 + 40) % 256
    picture = np.stack([red, green, blue], axis=-1).astype(np.uint8)
    picture[5] = [200, 30, 90]
    picture[9, ::4] = [255, 255, 255]
    picture[10, 1::4] = 0
    return picture


def levels(bits: int) -> np.ndarray:
    """[HEIGHT, WIDTH] over the range of `bits` bits, including the smallest and the largest value."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.uint64)
    most = (1 << bits) - 1
    value = ((x * 977 + y * 3571 + x * y * 131) * most // 65521) % (most + 1)
    value[0, :2] = [0, most]
    return value.astype(np.uint8 if bits <= 8 else np.uint16)


def runs() -> np.ndarray:
    """[HEIGHT, WIDTH * 5] of 0 and 1 in long and short runs, with rows of one colour."""
    y, x = np.mgrid[:HEIGHT, : WIDTH * 5]
    value = ((x // (y % 7 + 1)) % 2).astype(np.uint8)
    value[3], value[4], value[8, 10:80] = 0, 1, 1
    value[12:14] = x[0] % 3 == 0
    return value
