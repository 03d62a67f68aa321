"""GIFs whose frame and screen differ, with our own writer."""

import struct

import numpy as np

from . import picture
from .store import Store


def codes(indices: list[int], bits: int) -> bytes:
    """LZW without a table: frequent clear codes keep the code width constant."""
    width, clear = bits + 1, 1 << bits
    pieces = [[clear, *indices[at : at + clear - 2]] for at in range(0, len(indices), clear - 2)]
    all_codes = [code for piece in pieces for code in piece] + [clear + 1]
    stream = sum(code << (number * width) for number, code in enumerate(all_codes))
    return stream.to_bytes((len(all_codes) * width + 7) // 8, "little")


def blocks(data: bytes) -> bytes:
    parts = [data[at : at + 255] for at in range(0, len(data), 255)]
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


def frame(
    place: tuple[int, int],
    indices: np.ndarray,
    colours: np.ndarray | None = None,
    transparent: int | None = None,
    data: bytes | None = None,
) -> bytes:
    height, width = indices.shape
    control = b""
    if transparent is not None:
        control = bytes([0x21, 0xF9, 4, 1, 0, 0, transparent, 0])
    flags, table = 0, b""
    if colours is not None:
        flags, table = 0x80 | (len(colours).bit_length() - 2), colours.tobytes()
    head = b"," + struct.pack("<HHHHB", *place, width, height, flags)
    return control + head + table + b"\x04" + blocks(codes(indices.ravel().tolist(), 4) if data is None else data)


def file(screen: tuple[int, int], frames: bytes, colours: np.ndarray | None = None, background: int = 0) -> bytes:
    flags, table = 0, b""
    if colours is not None:
        flags, table = 0x80 | (len(colours).bit_length() - 2), colours.tobytes()
    return b"GIF89a" + struct.pack("<HHBBB", *screen, flags, background, 0) + table + frames + b";"


def add(store: Store) -> None:
    table = picture.palette(16)
    indices = picture.indices(16, 13, 9)
    for name, screen, place in [
        ("screen_0", (0, 0), (0, 0)),
        ("screen_0_offset", (0, 0), (4, 3)),
        ("screen_no_width", (0, 20), (0, 0)),
        ("screen_no_height", (20, 0), (1, 0)),
        ("screen_smaller", (5, 4), (0, 0)),
        ("screen_narrower", (5, 30), (0, 2)),
        ("screen_lower", (30, 4), (2, 0)),
        ("frame_beyond", (13, 9), (3, 5)),
        ("frame_far_beyond", (4, 4), (20, 15)),
        ("frame_inside", (20, 15), (3, 5)),
        ("frame_fits", (13, 9), (0, 0)),
    ]:
        store.add(f"gif_{name}.gif", file(screen, frame(place, indices), table), is_read=True)
        see_through = frame(place, indices, transparent=7)
        store.add(f"gif_{name}_transparent.gif", file(screen, see_through, table, background=3), is_read=True)
        local = frame(place, indices, colours=picture.palette(32)[16:])
        store.add(f"gif_{name}_local.gif", file(screen, local, table), is_read=True)
    two = frame((0, 0), indices) + frame((5, 5), indices, transparent=2)
    store.add("gif_second_frame_beyond.gif", file((13, 9), two, table), is_read=True)
    store.add("gif_beyond_palette.gif", file((13, 9), frame((0, 0), indices), table[:8]), is_read=True)
    whole = file((13, 9), frame((0, 0), indices), table)
    store.add("gif_no_trailer.gif", whole[:-1], is_read=True)
    store.add("gif_trailing.gif", whole + b"and more", is_read=True)
    store.add("gif_no_terminator.gif", whole[:-2], is_read=True)
    store.add("gif_half.gif", whole[: len(whole) * 3 // 4], is_read=False)
    short = codes(indices.ravel()[:60].tolist(), 4)
    store.add("gif_early_end.gif", file((13, 9), frame((0, 0), indices, data=short), table))
    long = codes(indices.ravel().tolist() + [1] * 40, 4)
    store.add("gif_too_many_pixels.gif", file((13, 9), frame((0, 0), indices, data=long), table))
    comment = b"!\xfe" + blocks(b"a comment" * 40) + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    store.add("gif_extensions.gif", file((4, 4), comment + frame((1, 2), indices), table), is_read=True)
    store.add("gif_no_frame.gif", file((13, 9), b"", table), is_read=False)
