"""Interpretations of samples: widths, signs, palettes, alpha, inks, L*a*b*, fax and JPEG."""

import io

import imagecodecs
import numpy as np
from PIL import Image

from . import picture
from .store import Store, grey
from .write import DEFLATE, JPEG, image


def scaled(levels: np.ndarray, bits: int) -> np.ndarray:
    most = (1 << bits) - 1
    return grey((levels.astype(np.uint32) * 255 + most // 2) // most)


def add(store: Store) -> None:
    widths(store)
    palettes(store)
    alpha(store)
    inks(store)
    fax(store)
    jpeg(store)


def widths(store: Store) -> None:
    for bits in range(1, 17):
        levels = picture.levels(bits)
        known = bits in (1, 2, 4, 8)
        expected = scaled(levels, bits)
        store.add(f"grey_{bits}", image(levels, photometric=1, bits=bits), None if known else expected)
        if bits in (1, 2, 4, 8, 16):
            file = image(levels, photometric=0, bits=bits, rows=5)
            store.add(f"white_is_zero_{bits}", file, None if known else 255 - expected)
        if known:
            store.add(f"grey_{bits}_fillorder_2", image(levels, photometric=1, bits=bits, reverse=True))
            # Pillow lists some of these modes without a decoder. FillOrder 2 has the same pixels.
            file = image(levels, photometric=0, bits=bits, reverse=True)
            store.add(f"white_is_zero_{bits}_fillorder_2", file, 255 - expected)
    store.add("grey_16_fillorder_2", image(picture.levels(16), photometric=1, reverse=True), scaled(picture.levels(16), 16))
    wide = (picture.levels(16).astype(np.int64) - 20000) // 60
    wide[0, :6] = [-1, 0, 1, 254, 255, 256]
    for order, side in ("<", "little"), (">", "big"):
        for kind in np.int16, np.int32:
            numbers = wide.astype(kind)
            numbers[1, :2] = [np.iinfo(kind).min, np.iinfo(kind).max]
            store.add(f"int_{numbers.itemsize * 8}_{side}", image(numbers, photometric=1, order=order))
            file = image(numbers, photometric=1, order=order, compression=DEFLATE, predictor=2)
            store.add(f"int_{numbers.itemsize * 8}_{side}_predictor", file, grey(np.clip(numbers, 0, 255)))
        unsigned = wide.astype(np.uint32)
        clipped = grey(np.clip(unsigned.view(np.int32), 0, 255))
        store.add(f"uint_32_{side}", image(unsigned, photometric=1, order=order), None if order == "<" else clipped)
        numbers = (wide / 1.7).astype(np.float32)
        numbers[1, :6] = [np.nan, np.inf, -np.inf, 255.5, -0.5, 0.99]
        store.add(f"float_32_{side}", image(numbers, photometric=1, order=order))
        store.add(f"float_32_{side}_white_is_zero", image(numbers, photometric=0, order=order))
    store.add("int_8", image(picture.levels(8).view(np.int8), photometric=1))
    store.add("int_64", image(wide.astype(np.int64), photometric=1), grey(np.clip(wide, 0, 255)))
    store.add("luma_alone", image(picture.levels(8), photometric=6))


def palettes(store: Store) -> None:
    rng = np.random.default_rng(28)
    for bits in 1, 2, 4, 8:
        levels = picture.levels(bits)
        colours = {320: (3, rng.integers(0, 65536, 3 << bits).tolist())}
        store.add(f"palette_{bits}", image(levels, photometric=3, bits=bits, tags=colours))
        file = image(levels, photometric=3, bits=bits, reverse=True, tags=colours)
        store.add(f"palette_{bits}_fillorder_2", file, store.expected[f"palette_{bits}"])
        store.add(f"palette_{bits}_deflate", image(levels, photometric=3, bits=bits, compression=DEFLATE, rows=5, tags=colours))
        if bits == 8:
            both = np.stack([levels, 255 - levels], axis=-1)
            for extra in 0, 2:
                store.add(f"palette_8_extra_{extra}", image(both, photometric=3, extra=[extra], tags=colours))


def alpha(store: Store) -> None:
    rgb = picture.rgb()
    alphas = picture.levels(8)
    alphas[2, :8] = [0, 1, 2, 127, 128, 129, 254, 255]
    rgba = np.dstack([rgb, alphas])
    la = np.stack([picture.levels(8).T.reshape(alphas.shape), alphas], axis=-1)
    wide = np.where(alphas > 0, np.minimum(255, la[..., 0].astype(int) * 255 // np.maximum(alphas, 1)), 0)
    for extra, name in (0, "unspecified"), (1, "associated"), (2, "unassociated"):
        for planar in False, True:
            layout = "_planar" if planar else ""
            options = {"compression": DEFLATE, "extra": [extra], "planar": planar}
            store.add(f"rgba_{name}{layout}", image(rgba, photometric=2, **options))
            # Pillow cannot convert grey with associated alpha. This is its conversion for RGB.
            file = image(la, photometric=1, **options)
            store.add(f"grey_alpha_{name}{layout}", file, grey(wide) if extra == 1 else grey(la[..., 0]))
    store.add("rgba_none_associated", image(rgba, photometric=2, extra=[1]))
    store.add("rgba_none_planar_unassociated", image(rgba, photometric=2, extra=[2], planar=True))
    store.add("rgba_none_planar_unspecified", image(rgba, photometric=2, extra=[0], planar=True), rgb)
    store.add("rgba_extra_missing", image(rgba, photometric=2))
    store.add("rgba_extra_999", image(rgba, photometric=2, extra=[999]))
    for extra in [0, 0], [1, 0], [2, 0], [0, 0, 0], [1, 0, 0], [2, 0, 0]:
        more = np.dstack([rgba] + [alphas] * (len(extra) - 1))
        store.add(f"rgb_extra_{'_'.join(map(str, extra))}", image(more, photometric=2, extra=extra))
    bands = np.dstack([picture.levels(8)] + [alphas] * 8)
    store.add("nine_planes", image(bands, photometric=1, compression=DEFLATE, extra=[0] * 8, planar=True))
    deep = rgba.astype(np.uint16) * 257
    multiplied = np.where(alphas[..., None] > 0, np.minimum(255, rgb.astype(int) * 255 // np.maximum(alphas, 1)[..., None]), 0)
    store.add("rgba_16_associated", image(deep, photometric=2, extra=[1]), multiplied)
    store.add("rgba_16_unassociated", image(deep, photometric=2, extra=[2], compression=DEFLATE), rgb)


def inks(store: Store) -> None:
    rng = np.random.default_rng(5)
    cmyk = rng.integers(0, 256, (picture.HEIGHT, picture.WIDTH, 4), dtype=np.uint8)
    cmyk[0, :3] = [[0, 0, 0, 0], [255, 255, 255, 255], [255, 128, 0, 0]]
    store.add("cmyk", image(cmyk, photometric=5))
    store.add("cmyk_planar_deflate", image(cmyk, photometric=5, planar=True, compression=DEFLATE))
    store.add("cmyk_tiles_lzw", image(cmyk, photometric=5, tile=(16, 16), compression=5, predictor=2))
    store.add("cmyk_16", image(cmyk.astype(np.uint16) * 257, photometric=5))
    more = np.dstack([cmyk, cmyk[..., :2]])
    store.add("cmyk_extra_0", image(more[..., :5], photometric=5, extra=[0]))
    store.add("cmyk_extra_0_0", image(more, photometric=5, extra=[0, 0]))
    lab = rng.integers(0, 256, (picture.HEIGHT, picture.WIDTH, 3), dtype=np.uint8)
    lab[0, :5] = [[0, 0, 0], [255, 0, 0], [128, 127, 128], [128, 128, 127], [255, 255, 1]]
    store.add("lab", image(lab, photometric=8))
    store.add("lab_deflate", image(lab, photometric=8, compression=DEFLATE))


def fax(store: Store) -> None:
    runs = picture.runs()
    bilevel = Image.fromarray(runs * 255).convert("1")
    for form in "tiff_ccitt", "group3", "group4":
        for photometric in 0, 1:
            out = io.BytesIO()
            bilevel.save(out, "TIFF", compression=form, tiffinfo={262: photometric, 278: 7})
            store.add(f"fax_{form}_{photometric}", out.getvalue())
    out = io.BytesIO()
    bilevel.save(out, "TIFF", compression="tiff_raw_16", tiffinfo={278: 64})
    # libtiff cannot read this file that it wrote: it expects rows at other positions.
    store.add("fax_words", out.getvalue(), grey(runs * 255))
    out = io.BytesIO()
    bilevel.save(out, "TIFF", compression="group4", tiffinfo={278: 64})
    store.add("fax_group4_one_strip", out.getvalue())
    for options in range(8):
        # Bit 0: two dimensions; bit 2: end-of-line codes are byte-aligned.
        if not options & 2:
            out = io.BytesIO()
            bilevel.save(out, "TIFF", compression="group3", tiffinfo={292: options, 278: 64})
            store.add(f"fax_group3_options_{options}", out.getvalue())


def jpeg(store: Store) -> None:
    rgb = picture.rgb()
    whole = lambda chunk, **options: imagecodecs.jpeg8_encode(np.ascontiguousarray(chunk), level=90, **options)
    for name, subsampling in ("444", "444"), ("422", "422"), ("420", "420"), ("411", "411"):
        for layout, place in ("strips", {"rows": 16}), ("tiles", {"tile": (16, 16)}):
            encode = lambda chunk: whole(chunk, colorspace="RGB", outcolorspace="YCBCR", subsampling=subsampling)
            factors = {"444": [1, 1], "422": [2, 1], "420": [2, 2], "411": [4, 1]}[name]
            tags = {530: (3, factors)}
            file = image(rgb, photometric=6, compression=JPEG, encode=encode, tags=tags, **place)
            store.add(f"jpeg_ycbcr_{name}_{layout}", file)
    encode = lambda chunk: whole(chunk, colorspace="RGB", outcolorspace="RGB")
    store.add("jpeg_rgb", image(rgb, photometric=2, compression=JPEG, encode=encode, rows=16))
    grey_levels = lambda chunk: whole(chunk[..., 0])
    levels = rgb[..., 1]
    store.add("jpeg_grey", image(levels, photometric=1, compression=JPEG, encode=grey_levels, tile=(16, 16)))
    store.add("jpeg_white_is_zero", image(levels, photometric=0, compression=JPEG, encode=grey_levels, rows=8))
    store.add("jpeg_rgb_planar", image(rgb, photometric=2, compression=JPEG, encode=grey_levels, planar=True))
    tags = {530: (3, [1, 1])}
    store.add("jpeg_ycbcr_planar", image(rgb, photometric=6, compression=JPEG, encode=grey_levels, planar=True, tags=tags))
    cmyk = np.dstack([rgb, 255 - levels])
    encode = lambda chunk: whole(chunk, colorspace="CMYK", outcolorspace="CMYK")
    store.add("jpeg_cmyk", image(cmyk, photometric=5, compression=JPEG, encode=encode))
    progressive = lambda chunk: saved_jpeg(chunk, progressive=True)
    tags = {530: (3, [2, 2])}
    store.add("jpeg_progressive", image(rgb, photometric=6, compression=JPEG, encode=progressive, tags=tags))


def saved_jpeg(chunk: np.ndarray, **options) -> bytes:
    out = io.BytesIO()
    Image.fromarray(chunk).save(out, "JPEG", quality=90, **options)
    return out.getvalue()
