"""A PNG writer for what Pillow does not write: 2-bit grey, 16-bit RGB and Adam7."""

import struct
import zlib

import numpy as np

COLOUR = {1: 0, 2: 4, 3: 2, 4: 6}
# First row, first column, row step, column step of each pass.
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _row(row: np.ndarray, depth: int) -> bytes:
    if depth == 16:
        return row.astype(">u2").tobytes()
    if depth == 8:
        return row.astype(np.uint8).tobytes()
    bits = np.unpackbits(row.astype(np.uint8).reshape(-1, 1), axis=1)[:, 8 - depth :]
    return np.packbits(bits.reshape(-1)).tobytes()


def encode(pixels: np.ndarray, depth: int, interlaced: bool = False) -> bytes:
    """`pixels`: height x width x channels, each number below `2 ** depth`."""
    height, width, channels = pixels.shape
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    data = b""
    for row, column, down, across in passes:
        part = pixels[row::down, column::across]
        if part.size:
            # Filter 0: none.
            data += b"".join(b"\0" + _row(line, depth) for line in part)
    header = struct.pack(">IIBBBBB", width, height, depth, COLOUR[channels], 0, 0, int(interlaced))
    body = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(data, 9)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
