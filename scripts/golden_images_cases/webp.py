"""Animated WebPs: their first frame, blended or not, on the whole canvas or a part of it."""

import io
import struct

import numpy as np
from PIL import Image

from . import picture
from .store import Store


def chunk(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def still(pixels: np.ndarray, **options) -> bytes:
    """The chunks of a still image: ALPH and VP8, or VP8L."""
    file = picture.saved(pixels, "WEBP", **options)
    body = file[12:]
    if body[:4] == b"VP8X":
        body = body[18:]
    return body


Frame = tuple[tuple[int, int], tuple[int, int], int, bytes]


def animation(canvas: tuple[int, int], frames: list[Frame], flags: int, background: bytes) -> bytes:
    """An animation of frames of (position, size, blending and disposal bits, chunks)."""
    size = lambda value: struct.pack("<I", value)[:3]
    body = b"WEBP" + chunk(b"VP8X", bytes([flags, 0, 0, 0]) + size(canvas[0] - 1) + size(canvas[1] - 1))
    body += chunk(b"ANIM", background + b"\0\0")
    for (x, y), (width, height), how, data in frames:
        head = size(x // 2) + size(y // 2) + size(width - 1) + size(height - 1) + size(100) + bytes([how])
        body += chunk(b"ANMF", head + data)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def add(store: Store) -> None:
    width, height = picture.WIDTH, picture.HEIGHT
    opaque = picture.rgb()
    clear = np.dstack([opaque, picture.alpha()])
    grey = bytes([90, 120, 150, 200])
    forms = {
        "lossy": (opaque, {"quality": 80}),
        "lossy_alpha": (clear, {"quality": 80}),
        "lossless": (opaque, {"lossless": True}),
        "lossless_alpha": (clear, {"lossless": True, "exact": True}),
    }
    for name, (pixels, options) in forms.items():
        data = still(pixels, **options)
        # Bit 1: no blending. Bit 0: dispose to the background.
        for how in range(4):
            for canvas, place in ((width, height), (0, 0)), ((width + 9, height + 5), (6, 4)):
                part = "" if place == (0, 0) else "_part"
                frames = [(place, (width, height), how, data)] * 2
                file = animation(canvas, frames, 0x12 if "alpha" in name else 0x02, grey)
                store.add(f"webp_{name}_{how}{part}.webp", file, is_read=True)
    # An opaque frame on a canvas with alpha.
    frames = [((2, 2), (width, height), 0, still(opaque, lossless=True))]
    store.add("webp_opaque_on_alpha.webp", animation((width + 4, height + 4), frames, 0x12, grey), is_read=True)
    frames = [((0, 0), (width, height), 0, still(clear, lossless=True, exact=True))]
    store.add("webp_alpha_unsaid.webp", animation((width, height), frames, 0x02, grey), is_read=True)
    written = io.BytesIO()
    images = [Image.fromarray(clear), Image.fromarray(clear[::-1].copy())]
    images[0].save(written, "WEBP", save_all=True, append_images=images[1:], lossless=True, exact=True, duration=100)
    store.add("webp_by_pillow.webp", written.getvalue(), is_read=True)
    whole = picture.saved(opaque, "WEBP", lossless=True)
    store.add("webp_trailing.webp", whole + b"and more", is_read=True)
    store.add("webp_half.webp", whole[: len(whole) // 2], is_read=False)
