"""EXIF orientations of every numeric type."""

import struct

from . import picture
from .png import SIGNATURE, chunk
from .store import Store

# TIFF's types that Pillow reads as numbers, and how they are packed.
TYPES = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 11: "f", 12: "d", 13: "I", 16: "Q"}


def block(order: str, kind: int, value: bytes, count: int = 1, before: list[tuple[int, int, int, int]] = ()) -> bytes:
    """An EXIF block of one directory: entries of (tag, type, count, number), followed by the orientation."""
    entries = b"".join(struct.pack(order + "HHII", *entry) for entry in before)
    place = 8 + 2 + len(entries) + 12 + 4
    stored, apart = (value.ljust(4, b"\0"), b"") if len(value) <= 4 else (struct.pack(order + "I", place), value)
    entries += struct.pack(order + "HHI", 0x0112, kind, count) + stored
    start = b"II*\0" if order == "<" else b"MM\0*"
    return start + struct.pack(order + "IH", 8, len(before) + 1) + entries + bytes(4) + apart


def jpeg(exif: bytes) -> bytes:
    file = picture.saved(picture.rgb(21, 14), "JPEG", quality=60)
    body = b"Exif\0\0" + exif
    return file[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + file[2:]


def png(exif: bytes, is_after: bool) -> bytes:
    file = picture.saved(picture.rgb(21, 14), "PNG")
    place = len(file) - 12 if is_after else len(SIGNATURE) + 25
    return file[:place] + chunk(b"eXIf", exif) + file[place:]


def webp(exif: bytes) -> bytes:
    return picture.saved(picture.rgb(21, 14), "WEBP", lossless=True, exif=exif)


def add(store: Store) -> None:
    for order in "<", ">":
        name = "little" if order == "<" else "big"
        for kind, packed in TYPES.items():
            value = struct.pack(order + packed, 6)
            store.add(f"exif_type_{kind}_{name}.jpg", jpeg(block(order, kind, value)), is_upright=True, is_read=True)
        for kind in 5, 10:
            value = struct.pack(order + "II", 12, 2)
            store.add(f"exif_type_{kind}_{name}.jpg", jpeg(block(order, kind, value)), is_upright=True, is_read=True)
        store.add(f"exif_text_{name}.jpg", jpeg(block(order, 2, b"6\0", 2)), is_upright=True, is_read=True)
        store.add(f"exif_two_values_{name}.jpg", jpeg(block(order, 3, struct.pack(order + "HH", 6, 6), 2)), is_upright=True)
        store.add(f"exif_no_values_{name}.jpg", jpeg(block(order, 3, struct.pack(order + "H", 6), 0)), is_upright=True)
        store.add(f"exif_undefined_{name}.jpg", jpeg(block(order, 7, b"\6")), is_upright=True)
        others = [(0x0100, 4, 1, 21), (0x0101, 3, 1, 14)]
        file = jpeg(block(order, 4, struct.pack(order + "I", 8), before=others))
        store.add(f"exif_third_{name}.jpg", file, is_upright=True, is_read=True)
        first = [(0x0112, 3, 1, 6 if order == "<" else 6 << 16)]
        file = jpeg(block(order, 3, struct.pack(order + "H", 3), before=first))
        store.add(f"exif_twice_{name}.jpg", file, is_upright=True, is_read=True)
        for kind in 1, 3, 4, 9:
            exif = block(order, kind, struct.pack(order + TYPES[kind], 5))
            store.add(f"exif_type_{kind}_{name}.png", png(exif, False), is_upright=True, is_read=True)
            store.add(f"exif_type_{kind}_{name}.webp", webp(exif), is_upright=True, is_read=True)
        exif = block(order, 3, struct.pack(order + "H", 7))
        store.add(f"exif_after_{name}.png", png(exif, True), is_upright=True, is_read=True)
    for value in 0, 9, 255, -1:
        store.add(f"exif_value_{value}.jpg", jpeg(block("<", 9, struct.pack("<i", value))), is_upright=True, is_read=True)
    store.add("exif_far_value.jpg", jpeg(block("<", 4, struct.pack("<I", 0x10006))), is_upright=True, is_read=True)
    whole = block("<", 4, struct.pack("<I", 6))
    for cut in 4, 9, 12, 16, 20, 22:
        store.add(f"exif_cut_{cut}.jpg", jpeg(whole[:cut]), is_upright=True)
    prefixed = picture.saved(picture.rgb(21, 14), "WEBP", lossless=True, exif=b"Exif\0\0" + whole)
    store.add("exif_prefix.webp", prefixed, is_upright=True, is_read=True)
