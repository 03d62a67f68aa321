"""A TIFF writer for any tag, byte order, layout and compression."""

import struct

import imagecodecs
import numpy as np

TYPES = {1: "B", 3: "H", 4: "I", 5: "II", 7: "B", 16: "Q"}
NONE, LZW, JPEG, DEFLATE, PACKBITS, ZSTD = 1, 5, 7, 8, 32773, 50000


def assemble(tags: dict[int, tuple[int, list[int]]], chunks: list[bytes], *, order="<", big=False, tiled=False) -> bytes:
    """The file: header, chunks, directory. `tags` map to type and values; the positions of chunks are added unless given."""
    offset, size, count = ("Q", 20, "Q") if big else ("I", 12, "H")
    out = bytearray(16 if big else 8)
    places = []
    for chunk in chunks:
        places.append(len(out))
        out += chunk + b"\0" * (len(chunk) % 2)
    places_tag, lengths_tag = (324, 325) if tiled else (273, 279)
    kind = 16 if big else 4
    tags = {places_tag: (kind, places), lengths_tag: (kind, [len(chunk) for chunk in chunks])} | tags
    tags = {tag: value for tag, value in sorted(tags.items()) if value is not None}
    entries = []
    room = struct.calcsize(offset)
    for tag, (kind, values) in tags.items():
        code = TYPES[kind]
        data = struct.pack(order + code[0] * len(values), *values)
        if len(data) > room:
            entry = struct.pack(order + offset, len(out))
            out += data + b"\0" * (len(data) % 2)
        else:
            entry = data.ljust(room, b"\0")
        number = len(values) // len(code)
        entries.append(struct.pack(order + "HH" + offset, tag, kind, number) + entry)
    assert all(len(entry) == size for entry in entries)
    start = len(out)
    out += struct.pack(order + count, len(entries)) + b"".join(entries) + struct.pack(order + offset, 0)
    mark = b"II" if order == "<" else b"MM"
    if big:
        out[:16] = mark + struct.pack(order + "HHHQ", 43, 8, 0, start)
    else:
        out[:8] = mark + struct.pack(order + "HI", 42, start)
    return bytes(out)


def packed(rows: np.ndarray, bits: int, order: str) -> bytes:
    """Rows [height, samples] as bytes; each row starts at a byte."""
    if rows.dtype.kind == "f" or bits in (8, 16, 32, 64):
        return rows.astype(rows.dtype.newbyteorder(order)).tobytes()
    shifts = np.arange(bits - 1, -1, -1)
    single = (rows[..., None].astype(np.uint32) >> shifts & 1).astype(np.uint8)
    return np.packbits(single.reshape(len(rows), -1), axis=1).tobytes()


def compressed(data: bytes, compression: int) -> bytes:
    return {
        NONE: lambda: data,
        LZW: lambda: imagecodecs.lzw_encode(data),
        DEFLATE: lambda: imagecodecs.zlib_encode(data, level=9),
        32946: lambda: imagecodecs.zlib_encode(data, level=9),
        PACKBITS: lambda: imagecodecs.packbits_encode(data),
        ZSTD: lambda: imagecodecs.zstd_encode(data, level=9),
    }[compression]()


def differences(chunk: np.ndarray, predictor: int, order: str) -> bytes:
    """A chunk [height, width, samples] with a predictor, as bytes."""
    height, width, samples = chunk.shape
    if predictor == 2:
        whole = chunk.view(f"u{chunk.itemsize}")
        before = np.concatenate([np.zeros_like(whole[:, :1]), whole[:, :-1]], axis=1)
        return packed((whole - before).reshape(height, -1), chunk.itemsize * 8, order)
    apart = chunk.astype(chunk.dtype.newbyteorder(">")).reshape(height, width * samples, 1).view(np.uint8)
    apart = apart.transpose(0, 2, 1).reshape(height, -1)
    before = np.concatenate([np.zeros_like(apart[:, :samples]), apart[:, :-samples]], axis=1)
    return (apart - before).tobytes()


def image(
    pixels: np.ndarray,
    *,
    photometric: int,
    bits: int | None = None,
    compression: int = NONE,
    predictor: int = 1,
    order: str = "<",
    big: bool = False,
    tile: tuple[int, int] | None = None,
    rows: int | None = None,
    planar: bool = False,
    extra: list[int] | None = None,
    reverse: bool = False,
    encode=None,
    tags: dict[int, tuple[int, list[int]] | None] | None = None,
) -> bytes:
    """A file of pixels [height, width, samples]. `encode` replaces `compression` and receives one chunk."""
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    height, width, samples = pixels.shape
    bits = bits or pixels.itemsize * 8
    chunk_height, chunk_width = tile or (rows or height, width)
    planes = [pixels[..., [sample]] for sample in range(samples)] if planar else [pixels]
    chunks = []
    for plane in planes:
        for y in range(0, height, chunk_height):
            for x in range(0, width, chunk_width):
                chunk = plane[y : y + chunk_height, x : x + chunk_width]
                if tile:
                    beyond = [(0, chunk_height - chunk.shape[0]), (0, chunk_width - chunk.shape[1]), (0, 0)]
                    chunk = np.pad(chunk, beyond, mode="edge")
                if encode:
                    data = encode(chunk)
                elif predictor == 1:
                    data = compressed(packed(chunk.reshape(len(chunk), -1), bits, order), compression)
                else:
                    data = compressed(differences(np.ascontiguousarray(chunk), predictor, order), compression)
                chunks.append(bytes(int(f"{byte:08b}"[::-1], 2) for byte in data) if reverse else data)
    kind = {"u": 1, "i": 2, "f": 3, "b": 1}[pixels.dtype.kind]
    written = {
        256: (4, [width]),
        257: (4, [height]),
        258: (3, [bits] * samples),
        259: (3, [compression]),
        262: (3, [photometric]),
        277: (3, [samples]),
        284: (3, [2 if planar else 1]),
        339: (3, [kind] * samples),
    }
    if tile:
        written |= {322: (4, [chunk_width]), 323: (4, [chunk_height])}
    else:
        written |= {278: (4, [chunk_height])}
    if predictor != 1:
        written[317] = (3, [predictor])
    if extra is not None:
        written[338] = (3, extra)
    if reverse:
        written[266] = (3, [2])
    return assemble(written | (tags or {}), chunks, order=order, big=big, tiled=bool(tile))


def blocks(ycbcr: np.ndarray, across: int, down: int) -> bytes:
    """YCbCr [height, width, 3] in blocks, with the chroma of the first pixel of each block."""
    height, width, _ = ycbcr.shape
    padded = np.pad(ycbcr, [(0, -height % down), (0, -width % across), (0, 0)], mode="edge")
    out = bytearray()
    for y in range(0, height, down):
        for x in range(0, width, across):
            block = padded[y : y + down, x : x + across]
            out += block[..., 0].tobytes() + block[0, 0, 1:].tobytes()
    return bytes(out)
