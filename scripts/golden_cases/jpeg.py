"""JPEG files by Pillow, and damaged copies of them."""

import io

import numpy as np
from PIL import Image


def encode(image: Image.Image, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 85, "subsampling": "4:2:0", **options})
    return out.getvalue()


def scan_start(file: bytes) -> int:
    """The start of the entropy-coded data of the first scan."""
    marker = file.index(b"\xff\xda")
    return marker + 2 + int.from_bytes(file[marker + 2 : marker + 4], "big")


def as_ycck(cmyk: bytes) -> bytes:
    """The same file with a header that declares the YCC transform of its inks: other colours through another decoder path."""
    transform = cmyk.index(b"Adobe") + 11
    return cmyk[:transform] + b"\2" + cmyk[transform + 1 :]


def with_wrong_bits(file: bytes) -> bytes:
    """A file with damaged entropy data that Pillow still decodes, to other pixels."""
    whole = np.asarray(Image.open(io.BytesIO(file)))
    start = scan_start(file)
    for at in range(start + (len(file) - start) // 2, len(file) - 8):
        damaged = file[:at] + b"\x55\xaa\x55\xaa" + file[at + 4 :]
        try:
            pixels = np.asarray(Image.open(io.BytesIO(damaged)))
        except OSError:
            continue
        if not np.array_equal(pixels, whole):
            return damaged
    raise RuntimeError("found no damage that Pillow accepts")


def without_restart(file: bytes) -> bytes:
    """A file without one of its restart markers: libjpeg warns and finds the next one."""
    start = scan_start(file)
    markers = [at for at in range(start, len(file) - 1) if file[at] == 0xFF and 0xD0 <= file[at + 1] <= 0xD7]
    lost = markers[len(markers) // 2]
    return file[:lost] + file[lost + 2 :]
