"""Bitmaps of every header, depth and compression, with our own writer: Pillow writes few of them."""

import struct

import numpy as np

from . import picture
from .store import Store

HEADERS = [12, 40, 52, 56, 64, 108, 124]
MASKS_16 = {"555": (0x7C00, 0x3E0, 0x1F), "565": (0xF800, 0x7E0, 0x1F)}
MASKS_32 = {
    "bgrx": (0xFF0000, 0xFF00, 0xFF, 0),
    "xbgr": (0xFF000000, 0xFF0000, 0xFF00, 0),
    "bgxr": (0xFF000000, 0xFF00, 0xFF, 0),
    "abgr": (0xFF000000, 0xFF0000, 0xFF00, 0xFF),
    "rgba": (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
    "bgra": (0xFF0000, 0xFF00, 0xFF, 0xFF000000),
    "none": (0, 0, 0, 0),
}


def bitmap(
    bits: int,
    rows: list[bytes] | bytes,
    *,
    size: tuple[int, int] = (picture.WIDTH, picture.HEIGHT),
    header: int = 40,
    compression: int = 0,
    colours: np.ndarray | None = None,
    stated: int | None = None,
    masks: tuple[int, ...] = (),
    top_down: bool = False,
    offset: int | None = None,
) -> bytes:
    """A file. `rows` start at the top, or are all of the data. `offset` and `stated` override the header's data offset and palette size."""
    width, height = size
    if isinstance(rows, list):
        rows = [row + bytes(-len(row) % 4) for row in rows]
        rows = b"".join(rows if top_down else rows[::-1])
    table = b""
    if colours is not None:
        entries = colours[:, ::-1]
        if header > 12:
            entries = np.concatenate([entries, np.zeros_like(entries[:, :1])], axis=1)
        table = entries.tobytes()
    if header == 12:
        head = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        count = len(colours) if colours is not None and stated is None else stated or 0
        head = struct.pack(
            "<IiiHHIIiiII", header, width, -height if top_down else height, 1, bits, compression,
            len(rows), 2835, 2835, count, 0,
        )
        packed = b"".join(mask.to_bytes(4, "little") for mask in masks)
        head += (packed if header > 40 else b"").ljust(header - 40, b"\0")[: header - 40]
        if header == 40:
            table = packed[:12] + table
    place = 14 + len(head) + len(table)
    return b"BM" + struct.pack("<IHHI", place + len(rows), 0, 0, place if offset is None else offset) + head + table + rows


def packed(indices: np.ndarray, bits: int) -> list[bytes]:
    """Rows of indices, the first in the highest bits."""
    unpacked = np.unpackbits(indices[..., None], axis=2)[..., 8 - bits :]
    return [row.tobytes() for row in np.packbits(unpacked.reshape(len(indices), -1), axis=1)]


def words(size: int, shifts: tuple[int, int, int], bits: tuple[int, int, int], rest: int = 0) -> list[bytes]:
    """Rows of the picture, with channels truncated to `bits` and shifted by `shifts`."""
    pixels = picture.rgb().astype(np.uint32)
    values = sum(((pixels[..., c] >> (8 - bits[c])) << shifts[c] for c in range(3)), np.uint32(rest))
    return [row.tobytes() for row in values.astype("<u4").view(np.uint8).reshape(*values.shape, 4)[..., :size]]


def runs(indices: np.ndarray, is_4_bit: bool, style: int) -> bytes:
    """Run-length codes: only runs (0), runs and absolute stretches (1), or both after a delta in each row (2)."""
    out = bytearray()
    for number, row in enumerate(indices[::-1]):
        row = row.tolist()
        if style == 2:
            # A delta skips the first pixels, which become 0.
            out += bytes([0, 2, 3, 0])
            row = row[3:]
        at = 0
        while at < len(row):
            if style >= 1 and number % 2 and len(row) - at >= 3:
                stretch = row[at : at + min(11, len(row) - at)]
                data = bytes(stretch)
                if is_4_bit:
                    pairs = stretch + [0] * (len(stretch) % 2)
                    data = bytes(a << 4 | b for a, b in zip(pairs[::2], pairs[1::2], strict=True))
                out += bytes([0, len(stretch)]) + data + bytes(len(data) % 2)
                at += len(stretch)
                continue
            end = at
            if is_4_bit:
                other = row[at + 1] if at + 1 < len(row) else 0
                while end < len(row) and row[end] == (row[at], other)[(end - at) % 2]:
                    end += 1
                out += bytes([end - at, row[at] << 4 | other])
            else:
                while end < len(row) and row[end] == row[at]:
                    end += 1
                out += bytes([end - at, row[at]])
            at = end
        out += b"\0\0"
    return bytes(out + b"\0\1")


def _indexed(store: Store) -> None:
    for bits in 1, 4, 8:
        colours = picture.palette(1 << bits)
        rows = packed(picture.indices(1 << bits), bits)
        for header in HEADERS:
            store.add(f"bmp_{bits}_bit_header_{header}.bmp", bitmap(bits, rows, header=header, colours=colours), is_read=True)
        store.add(f"bmp_{bits}_bit_top_down.bmp", bitmap(bits, rows, colours=colours, top_down=True), is_read=True)
        store.add(f"bmp_{bits}_bit_colours_0.bmp", bitmap(bits, rows, colours=colours, stated=0), is_read=True)
        store.add(f"bmp_{bits}_bit_offset_0.bmp", bitmap(bits, rows, colours=colours, offset=0), is_read=True)
        # The data offset of a file without a palette, in a file with one.
        store.add(f"bmp_{bits}_bit_offset_54.bmp", bitmap(bits, rows, colours=colours, offset=54), is_read=True)
    few = picture.palette(200)
    store.add("bmp_200_colours.bmp", bitmap(8, packed(picture.indices(200), 8), colours=few), is_read=True)
    store.add("bmp_beyond_palette.bmp", bitmap(8, packed(picture.indices(200), 8), colours=few[:150]), is_read=True)
    grey = np.arange(256, dtype=np.uint8)[:, None].repeat(3, axis=1)
    store.add("bmp_grey.bmp", bitmap(8, packed(picture.rgb()[..., 1], 8), colours=grey), is_read=True)
    black_white = np.array([[0] * 3, [255] * 3], np.uint8)
    store.add("bmp_black_white.bmp", bitmap(1, packed(picture.indices(2), 1), colours=black_white), is_read=True)
    white_black = black_white[::-1]
    store.add("bmp_white_black.bmp", bitmap(1, packed(picture.indices(2), 1), colours=white_black), is_read=True)
    store.add("bmp_300_colours.bmp", bitmap(8, packed(picture.indices(200), 8), colours=picture.palette(300)), is_read=False)


def _words(store: Store) -> None:
    fives = words(2, (10, 5, 0), (5, 5, 5))
    for header in HEADERS:
        for bits, rows in (16, fives), (24, words(3, (16, 8, 0), (8, 8, 8))), (32, words(4, (16, 8, 0), (8, 8, 8), 0x80000000)):
            store.add(f"bmp_{bits}_bit_header_{header}.bmp", bitmap(bits, rows, header=header), is_read=True)
    for header in HEADERS[1:]:
        for name, masks in MASKS_16.items():
            green = 6 if name == "565" else 5
            rows = words(2, (10 + green - 5, 5, 0), (5, green, 5))
            file = bitmap(16, rows, header=header, compression=3, masks=masks)
            store.add(f"bmp_{name}_header_{header}.bmp", file, is_read=True)
        for name, masks in MASKS_32.items():
            shifts = tuple((mask & -mask).bit_length() - 1 for mask in masks[:3]) if masks[0] else (16, 8, 0)
            rows = words(4, shifts, (8, 8, 8))
            file = bitmap(32, rows, header=header, compression=3, masks=masks)
            if name == "rgba" and header < 56:
                # Without room for the alpha mask there is no alpha, and Pillow does not support this order without alpha.
                store.add_other(f"bmp_{name}_header_{header}.bmp", file, picture.rgb())
            else:
                store.add(f"bmp_{name}_header_{header}.bmp", file, is_read=True)
        rows = words(3, (16, 8, 0), (8, 8, 8))
        file = bitmap(24, rows, header=header, compression=3, masks=(0xFF0000, 0xFF00, 0xFF))
        store.add(f"bmp_24_bit_masks_header_{header}.bmp", file, is_read=True)
    for bits, rows in (16, fives), (24, words(3, (16, 8, 0), (8, 8, 8))), (32, words(4, (16, 8, 0), (8, 8, 8))):
        store.add(f"bmp_{bits}_bit_top_down.bmp", bitmap(bits, rows, top_down=True), is_read=True)
        store.add(f"bmp_{bits}_bit_offset_0.bmp", bitmap(bits, rows, offset=0), is_read=True)
    masks = MASKS_16["565"]
    rows = words(2, (11, 5, 0), (5, 6, 5))
    store.add("bmp_565_offset_0.bmp", bitmap(16, rows, compression=3, masks=masks, offset=0), is_read=True)


def _runs(store: Store) -> None:
    for bits in 4, 8:
        colours = picture.palette(1 << bits)
        indices = picture.indices(1 << bits)
        for style, name in enumerate(["runs", "absolute", "delta"]):
            data = runs(indices, bits == 4, style)
            compression = 2 if bits == 4 else 1
            for top_down in False, True:
                file = bitmap(bits, data, compression=compression, colours=colours, top_down=top_down)
                store.add(f"bmp_rle{bits}_{name}{'_top_down' if top_down else ''}.bmp", file, is_read=True)
            file = bitmap(bits, data, compression=compression, colours=colours, offset=0)
            store.add(f"bmp_rle{bits}_{name}_offset_0.bmp", file, is_read=True)
        short = bitmap(bits, data[: len(data) // 2], compression=compression, colours=colours)
        store.add(f"bmp_rle{bits}_truncated.bmp", short, is_read=False)
        wide = picture.indices(1 << bits, 41, 5)
        # Runs end at the end of their rows.
        long = bytes(b for row in wide for b in (250, int(row[0]), 0, 0)) + b"\0\1"
        file = bitmap(bits, long, size=(41, 5), compression=compression, colours=colours)
        store.add(f"bmp_rle{bits}_long_runs.bmp", file, is_read=True)


def _other_masks(store: Store) -> None:
    pixels = picture.rgb()
    for name, shifts, bits in ("444", (8, 4, 0), (4, 4, 4)), ("bgr_565", (0, 5, 11), (5, 6, 5)):
        masks = tuple((1 << bits[c]) - 1 << shifts[c] for c in range(3))
        cut = [(pixels[..., c] >> 8 - bits[c]).astype(np.int64) * 255 // ((1 << bits[c]) - 1) for c in range(3)]
        file = bitmap(16, words(2, shifts, bits), compression=3, masks=masks)
        store.add_other(f"bmp_{name}.bmp", file, np.stack(cut, axis=-1).astype(np.uint8))


def _damaged(store: Store) -> None:
    rows = words(3, (16, 8, 0), (8, 8, 8))
    file = bitmap(24, rows)
    store.add("bmp_trailing.bmp", file + b"and more", is_read=True)
    store.add("bmp_no_last_padding.bmp", file[: -(-picture.WIDTH * 3 % 4)], is_read=True)
    store.add("bmp_half.bmp", file[: len(file) // 2], is_read=False)
    store.add("bmp_one_byte_short.bmp", file[: -(-picture.WIDTH * 3 % 4) - 1], is_read=False)
    gap = file[:10] + struct.pack("<I", 100) + file[14:54] + bytes(46) + file[54:]
    store.add("bmp_gap.bmp", gap, is_read=True)
    store.add("bmp_header_16.bmp", bitmap(24, rows, header=16 + 40)[:14] + struct.pack("<I", 16) + file[18:], is_read=False)


def add(store: Store) -> None:
    for part in _indexed, _words, _other_masks, _runs, _damaged:
        part(store)
