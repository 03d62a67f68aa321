"""PNGs with damage that Pillow ignores, and with damage that it refuses."""

import struct
import zlib

import numpy as np

from . import picture
from .store import Store

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, body: bytes = b"", crc: int | None = None) -> bytes:
    checksum = zlib.crc32(kind + body) if crc is None else crc
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)


def header(colour: int = 2, depth: int = 8, crc: int | None = None) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", picture.WIDTH, picture.HEIGHT, depth, colour, 0, 0, 0), crc)


def rows(pixels: np.ndarray) -> bytes:
    return b"".join(b"\0" + row.tobytes() for row in pixels)


def _ends(store: Store) -> None:
    data = zlib.compress(rows(picture.rgb()), 9)
    start = SIGNATURE + header()
    whole = start + chunk(b"IDAT", data)
    for name, end in {
        "no_iend": b"",
        "iend_cut": chunk(b"IEND")[:6],
        "iend_no_crc": chunk(b"IEND")[:-4],
        "iend_bad_crc": chunk(b"IEND", crc=1),
        "iend_long": chunk(b"IEND", b"more"),
        "trailing": chunk(b"IEND") + b"and more",
        "trailing_no_iend": b"garbage, and no chunk",
        "zeros": bytes(500),
        "text_after": chunk(b"tEXt", b"Title\0after") + chunk(b"IEND"),
        "text_after_bad_crc": chunk(b"tEXt", b"Title\0after", crc=1) + chunk(b"IEND"),
        "text_after_cut": chunk(b"tEXt", b"Title\0after")[:12],
        "empty_idat_after": chunk(b"IDAT") + chunk(b"IEND"),
        "more_idat_after": chunk(b"IDAT", b"beyond the stream") + chunk(b"IEND"),
    }.items():
        store.add(f"png_{name}.png", whole + end)
    end = chunk(b"IEND")
    for name, body in {
        "no_adler": chunk(b"IDAT", data[:-4]),
        "bad_adler": chunk(b"IDAT", data[:-4] + b"\0\0\0\0"),
        "beyond_stream": chunk(b"IDAT", data + b"beyond the stream"),
        "bad_idat_crc": chunk(b"IDAT", data, crc=1),
        "many_idat": b"".join(chunk(b"IDAT", data[at : at + 7]) for at in range(0, len(data), 7)),
        "empty_idat": chunk(b"IDAT") + chunk(b"IDAT", data),
        "too_many_rows": chunk(b"IDAT", zlib.compress(rows(picture.rgb(picture.WIDTH, picture.HEIGHT + 3)))),
    }.items():
        store.add(f"png_{name}.png", start + body + end)
        # The file ends after the data.
        store.add(f"png_{name}_no_iend.png", start + body)
    few = zlib.compress(rows(picture.rgb(picture.WIDTH, picture.HEIGHT - 3)))
    # Pillow leaves the other rows black.
    store.add_other("png_too_few_rows.png", start + chunk(b"IDAT", few) + end, None)
    for cut in 1, 4, 5, 8, 9, 20, len(data) // 2:
        store.add(f"png_cut_{cut}.png", whole[:-cut], is_read=None if cut < 20 else False)
    store.add("png_cut_idat.png", start + chunk(b"IDAT", data[: len(data) // 2]) + end, is_read=False)


def _before(store: Store) -> None:
    data = chunk(b"IDAT", zlib.compress(rows(picture.rgb()))) + chunk(b"IEND")
    for name, front in {
        "bad_ihdr_crc": header(crc=1),
        "bad_text_crc": header() + chunk(b"tEXt", b"Title\0before", crc=1),
        "bad_gama_crc": header() + chunk(b"gAMA", struct.pack(">I", 45455), crc=1),
        "bad_phys_crc": header() + chunk(b"pHYs", struct.pack(">IIB", 2835, 2835, 1), crc=1),
        "private": header() + chunk(b"prVt", b"of somebody"),
        "private_bad_crc": header() + chunk(b"prVt", b"of somebody", crc=1),
        "bad_profile": header() + chunk(b"iCCP", b"name\0\0no deflate"),
        "text": header() + chunk(b"tEXt", b"Title\0before") + chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"x" * 1000)),
        "two_gama": header() + chunk(b"gAMA", struct.pack(">I", 45455)) * 2,
        "long_trns": header() + chunk(b"tRNS", bytes(6) + b"more"),
    }.items():
        store.add(f"png_{name}.png", SIGNATURE + front + data)


def _palettes(store: Store) -> None:
    colours = picture.palette(40)
    data = chunk(b"IDAT", zlib.compress(rows(picture.indices(40))))
    front = SIGNATURE + header(colour=3)
    store.add("png_palette_no_iend.png", front + chunk(b"PLTE", colours.tobytes()) + data, is_read=True)
    store.add("png_beyond_palette.png", front + chunk(b"PLTE", colours[:20].tobytes()) + data + chunk(b"IEND"))
    store.add("png_palette_bad_crc.png", front + chunk(b"PLTE", colours.tobytes(), crc=1) + data + chunk(b"IEND"), is_read=False)
    # Pillow assumes a palette of greys.
    store.add_other("png_no_palette.png", front + data + chunk(b"IEND"), None)
    clear = chunk(b"tRNS", bytes(range(0, 200, 5)))
    store.add("png_palette_trns.png", front + chunk(b"PLTE", colours.tobytes()) + clear + data, is_read=True)
    pixels = picture.rgb()
    for colour, samples in {0: pixels[..., 0], 4: pixels[..., :2], 6: np.dstack([pixels, picture.alpha()])}.items():
        body = chunk(b"IDAT", zlib.compress(rows(samples)))
        store.add(f"png_colour_{colour}_no_iend.png", SIGNATURE + header(colour) + body, is_read=True)


def add(store: Store) -> None:
    for part in _ends, _before, _palettes:
        part(store)
