"""Layouts of samples: byte orders, strips, tiles, planes, compressions, predictors, and missing tags."""

import numpy as np

from . import picture
from .store import Store, grey, pillow
from .write import DEFLATE, LZW, NONE, PACKBITS, ZSTD, blocks, compressed, image

COMPRESSIONS = {"none": NONE, "lzw": LZW, "deflate": DEFLATE, "deflate_old": 32946, "packbits": PACKBITS, "zstd": ZSTD}


def old_lzw(data: bytes) -> bytes:
    """LZW before TIFF 6.0, like GIF's: codes start at the lowest bit, and widen one code later."""
    table = {bytes([byte]): byte for byte in range(256)}
    codes, width, word = [(256, 9)], 9, b""
    following = 258
    for byte in data:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        codes.append((table[word], width))
        table[longer] = following
        following += 1
        if following > 1 << width:
            width += 1
        assert width <= 12
        word = bytes([byte])
    codes += [(table[word], width), (257, width)]
    bits = "".join(f"{code:0{width}b}"[::-1] for code, width in codes)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[place : place + 8][::-1], 2) for place in range(0, len(bits), 8))


def add(store: Store) -> None:
    rgb = picture.rgb()
    for name, compression in COMPRESSIONS.items():
        store.add(f"rgb_{name}", image(rgb, photometric=2, compression=compression, rows=5), rgb)
        store.add(f"rgb_{name}_tiles_planar", image(rgb, photometric=2, compression=compression, tile=(16, 16), planar=True), rgb)
        fill = image(rgb, photometric=2, compression=compression, rows=7, reverse=True)
        store.add(f"rgb_{name}_fillorder_2", fill)
        if compression not in (NONE, PACKBITS):
            store.add(f"rgb_{name}_predictor", image(rgb, photometric=2, compression=compression, predictor=2, rows=5))
    encode = lambda chunk: old_lzw(chunk.tobytes())
    store.add("rgb_lzw_old", image(rgb, photometric=2, compression=LZW, encode=encode, rows=6))
    for order, side in ("<", "little"), (">", "big"):
        for big in False, True:
            name = f"rgb_{side}{'_bigtiff' if big else ''}"
            store.add(name, image(rgb, photometric=2, order=order, big=big, rows=4), rgb)
        deep = picture.levels(16)
        rounded = grey((deep.astype(np.uint32) + 128) // 257)
        for predictor in 1, 2:
            name = f"grey_16_{side}_deflate{'_predictor' if predictor == 2 else ''}"
            file = image(deep, photometric=1, order=order, compression=DEFLATE, predictor=predictor)
            store.add(name, file, rounded)
        floats = picture.levels(8).astype(np.float32) * 1.5 - 50
        for width in np.float16, np.float32, np.float64:
            numbers = floats.astype(width)
            clipped = grey(np.trunc(np.clip(numbers, 0, 255)))
            for predictor in (1, 2, 3) if width != np.float16 else (1, 3):
                name = f"float_{numbers.itemsize * 8}_{side}_predictor_{predictor}"
                tile = (16, 32) if predictor == 3 else None
                file = image(numbers, photometric=1, order=order, compression=DEFLATE, predictor=predictor, tile=tile)
                store.add(name, file, clipped)
    store.add("rgb_tiles", image(rgb, photometric=2, tile=(16, 16), compression=DEFLATE, predictor=2))
    store.add("rgb_one_tile", image(rgb, photometric=2, tile=(32, 48)))
    store.add("rgb_strips_planar", image(rgb, photometric=2, rows=5, planar=True))
    store.add("rgb_strips_planar_predictor", image(rgb, photometric=2, rows=5, planar=True, compression=LZW, predictor=2))
    store.add("rgb_16_planar_tiles", image(rgb.astype(np.uint16) * 257, photometric=2, tile=(16, 16), planar=True), rgb)
    # Pillow reads uncompressed planes as single samples of 8 bits, regardless of tags.
    store.add("rgb_planar_fillorder_2", image(rgb, photometric=2, planar=True, reverse=True), rgb)
    numbers = rgb[..., 1].astype(np.int32)
    store.add("int_32_planar_big", image(numbers, photometric=1, planar=True, order=">"), grey(numbers))
    store.add("white_is_zero_8_planar", image(rgb[..., 1], photometric=0, planar=True), grey(255 - rgb[..., 1]))
    bits = picture.levels(1)
    store.add("bilevel_planar", image(bits, photometric=1, bits=1, planar=True))
    store.add("rgb_4_bits_planar", image(rgb >> 4, photometric=2, bits=4, planar=True), (rgb >> 4) * 17)
    store.add("rgb_2_bits", image(rgb >> 6, photometric=2, bits=2), (rgb >> 6) * 85)
    # Missing or unusual tags.
    whole = 2**32 - 1
    store.add("rows_per_strip_missing", image(rgb, photometric=2, compression=LZW, tags={278: None}))
    store.add("rows_per_strip_largest", image(rgb, photometric=2, compression=LZW, tags={278: (4, [whole])}))
    store.add("rows_per_strip_0", image(rgb, photometric=2, tags={278: (4, [0])}), rgb)
    store.add("rows_per_strip_1", image(rgb, photometric=2, compression=PACKBITS, rows=1))
    store.add("byte_counts_missing", image(rgb, photometric=2, rows=5, tags={279: None}))
    store.add("byte_counts_missing_lzw", image(rgb, photometric=2, compression=LZW, tags={279: None}), rgb)
    store.add("byte_counts_0", image(rgb, photometric=2, tags={279: (4, [0])}))
    store.add("byte_counts_too_long", image(rgb, photometric=2, tags={279: (4, [whole])}))
    store.add("offsets_of_16_bits", image(rgb, photometric=2, tags={273: (3, [8])}))
    store.add("offsets_more_than_strips", image(rgb, photometric=2, tags={273: (4, [8, 9, 10]), 279: (4, [1134, 1, 1])}), rgb)
    store.add("photometric_missing", image(picture.levels(8), photometric=0, tags={262: None}))
    store.add("bits_once", image(rgb, photometric=2, tags={258: (3, [8])}))
    store.add("bits_too_many", image(picture.levels(8), photometric=1, tags={258: (3, [8, 8, 8])}))
    store.add("sample_format_undefined", image(picture.levels(8), photometric=1, tags={339: (3, [4])}), grey(picture.levels(8)))
    store.add("sample_format_missing", image(rgb, photometric=2, tags={339: None}))
    store.add("planar_configuration_missing", image(rgb, photometric=2, tags={284: None}))
    store.add("predictor_without_meaning", image(rgb, photometric=2, tags={317: (3, [2])}))
    store.add("sub_directory_loops", image(rgb, photometric=2, tags={330: (4, [8])}))
    store.add("magic_mixed_up", b"II\0\x2a" + image(rgb, photometric=2)[4:])
    store.add("magic_mixed_up_big", b"MM\x2a\0" + image(rgb, photometric=2, order=">")[4:])
    ycbcr(store)


def ycbcr(store: Store) -> None:
    y, x = np.mgrid[: picture.HEIGHT, : picture.WIDTH]
    samples = np.stack([x * 11 + y, 60 + y * 8, 230 - x * 9 - y], axis=-1).astype(np.uint8)
    tags = {530: (3, [1, 1])}
    store.add("ycbcr_none", image(samples, photometric=6, tags=tags))
    store.add("ycbcr_deflate", image(samples, photometric=6, compression=DEFLATE, rows=5, tags=tags))
    store.add("ycbcr_lzw_predictor", image(samples, photometric=6, compression=LZW, predictor=2, tags=tags))
    store.add("ycbcr_tiles", image(samples, photometric=6, compression=DEFLATE, tile=(16, 16), tags=tags))
    store.add("ycbcr_planar", image(samples, photometric=6, compression=DEFLATE, planar=True, tags=tags))
    # Rec. 709 with video range.
    other = tags | {529: (5, [2126, 10000, 7152, 10000, 722, 10000]), 532: (5, [16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1])}
    store.add("ycbcr_coefficients", image(samples, photometric=6, compression=DEFLATE, tags=other))
    for across, down in (2, 2), (2, 1), (1, 2), (4, 1), (4, 2), (4, 4):
        encode = lambda chunk: compressed(blocks(chunk, across, down), DEFLATE)
        for layout, tile in ("strips", None), ("tiles", (16, 16)):
            tags = {530: (3, [across, down]) if (across, down) != (2, 2) else None}
            file = image(samples, photometric=6, compression=DEFLATE, encode=encode, rows=8, tile=tile, tags=tags)
            store.add(f"ycbcr_{across}x{down}_{layout}", file)
    encode = lambda chunk: blocks(chunk, 2, 2)
    packed_blocks = image(samples, photometric=6, encode=encode, rows=8)
    same = image(samples, photometric=6, compression=DEFLATE, encode=lambda chunk: compressed(encode(chunk), DEFLATE), rows=8)
    # Pillow reads it as three samples per pixel.
    store.add("ycbcr_2x2_none", packed_blocks, pillow(same))
