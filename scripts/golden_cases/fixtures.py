"""Writes testkit/fixtures/photos: small real photos in every form that `decode` accepts."""

import io
import pathlib

import numpy as np
import skimage
import tifffile
from PIL import Image

from . import jpeg, png

README = """# Photos

Small files for tests, written by `scripts/golden.py` from four photos of scikit-image:

| photo | source | licence |
|---|---|---|
| astronaut | Eileen Collins, NASA, Great Images in NASA | public domain |
| chelsea | Stefan van der Walt | CC0 |
| coffee | Rachel Michetti, by courtesy of Pikolo Espresso Bar | CC0 |
| rocket | launch of Falcon 9 with DSCOVR, SpaceX | public domain |

The name of a file names its special feature. The PNG files of 2, 4 and 16 bits and the interlaced ones are from
our own writer, since Pillow writes few of these forms.
"""

# Neither side is a multiple of a JPEG block, nor of the larger blocks of subsampled chroma.
SMALL = (97, 65)
ORIENTATION = 0x0112


def _photo(name: str, size: tuple[int, int]) -> Image.Image:
    return Image.fromarray(getattr(skimage.data, name)()[..., :3]).resize(size, Image.Resampling.LANCZOS)


def _saved(image: Image.Image, form: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def _tiff(pixels: np.ndarray, **options) -> bytes:
    out = io.BytesIO()
    # Metadata would include the version of the writer.
    tifffile.imwrite(out, pixels, software=False, metadata=None, **options)
    return out.getvalue()


def _oriented(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


def sixteen_bit() -> np.ndarray:
    """A photo in 16 bits with significant low bytes: each value is a mixture of its neighbours."""
    fine = np.asarray(_photo("coffee", (98, 65))).astype(np.uint32) * 257
    return ((fine[:, :-1] * 5 + fine[:, 1:] * 3) // 8).astype(np.uint16)


def _jpegs() -> dict[str, bytes]:
    cat, cup = _photo("chelsea", SMALL), _photo("coffee", SMALL)
    baseline = jpeg.encode(cat)
    cmyk = jpeg.encode(cup.convert("CMYK"))
    restart = jpeg.encode(cup, restart_marker_blocks=5)
    files = {
        "420": baseline,
        "422": jpeg.encode(cat, subsampling="4:2:2"),
        "444": jpeg.encode(cat, subsampling="4:4:4"),
        "low_quality": jpeg.encode(cup, quality=15),
        "rgb": jpeg.encode(cat, keep_rgb=True, subsampling="4:4:4"),
        "grey": jpeg.encode(cat.convert("L")),
        "cmyk": cmyk,
        "ycck": jpeg.as_ycck(cmyk),
        "progressive": jpeg.encode(cup, progressive=True),
        "restart": restart,
        "portrait": jpeg.encode(_photo("rocket", (61, 90))),
        "one_pixel": jpeg.encode(cat.resize((1, 1))),
        "one_row": jpeg.encode(cat.resize((33, 1))),
        "large": jpeg.encode(_photo("chelsea", (451, 300))),
        "large_progressive": jpeg.encode(_photo("astronaut", (300, 301)), progressive=True),
        "large_grey": jpeg.encode(_photo("coffee", (301, 200)).convert("L")),
        "trailing_junk": baseline + b"\0\0junk behind the end\xff\xd8\xff",
        "extraneous_bytes": baseline[:-2] + b"extraneous" + baseline[-2:],
        "wrong_bits": jpeg.with_wrong_bits(baseline),
        "lost_restart": jpeg.without_restart(restart),
        "no_end": baseline[:-2],
        "half": baseline[: len(baseline) // 2],
    }
    small = _photo("astronaut", (31, 22))
    for orientation in range(1, 9):
        files[f"exif_{orientation}"] = jpeg.encode(small, exif=_oriented(orientation))
    return {f"jpeg_{name}.jpg": file for name, file in files.items()}


def _pngs() -> dict[str, bytes]:
    cat = _photo("chelsea", SMALL)
    ramp = Image.linear_gradient("L").resize(SMALL)
    translucent = cat.copy()
    translucent.putalpha(ramp)
    grey_alpha = Image.merge("LA", [cat.convert("L"), ramp])
    palette = cat.quantize(64)
    deep = sixteen_bit()
    files = {
        "rgb": _saved(cat, "PNG"),
        "rgba": _saved(translucent, "PNG"),
        "grey": _saved(cat.convert("L"), "PNG"),
        "grey_alpha": _saved(grey_alpha, "PNG"),
        "palette": _saved(palette, "PNG"),
        "palette_transparent": _saved(palette, "PNG", transparency=bytes(range(0, 256, 4))),
        "palette_2bit": _saved(cat.quantize(4), "PNG", bits=2),
        "rgb_transparent": _saved(cat, "PNG", transparency=cat.getpixel((5, 5))),
        "1bit": _saved(cat.convert("1"), "PNG"),
        "2bit": png.encode(np.asarray(cat.convert("L"))[..., None] >> 6, 2),
        "4bit": png.encode(np.asarray(cat.convert("L"))[..., None] >> 4, 4),
        "grey_16": png.encode(deep[..., 1:2], 16),
        "rgb_16": png.encode(deep, 16),
        "interlaced": png.encode(np.asarray(cat), 8, interlaced=True),
        "interlaced_2bit": png.encode(np.asarray(cat.convert("L"))[..., None] >> 6, 2, interlaced=True),
        "one_pixel": _saved(cat.resize((1, 1)), "PNG"),
        "exif_6": _saved(cat.resize((31, 22)), "PNG", exif=_oriented(6)),
    }
    return {f"png_{name}.png": file for name, file in files.items()}


def _others() -> dict[str, bytes]:
    cup = _photo("coffee", SMALL)
    small = cup.resize((31, 22))
    ramp = Image.linear_gradient("L").resize(SMALL)
    translucent = cup.copy()
    translucent.putalpha(ramp)
    deep = sixteen_bit()
    indexed = cup.quantize(32)
    see_through = indexed.copy()
    see_through.info["transparency"] = indexed.getpixel((40, 30))
    return {
        "webp_lossy.webp": _saved(cup, "WEBP", quality=80),
        "webp_lossy_alpha.webp": _saved(translucent, "WEBP", quality=80),
        "webp_lossless.webp": _saved(cup, "WEBP", lossless=True),
        "webp_lossless_alpha.webp": _saved(translucent, "WEBP", lossless=True, exact=True),
        "webp_exif_6.webp": _saved(small, "WEBP", lossless=True, exif=_oriented(6)),
        "gif_two_frames.gif": _saved(indexed, "GIF", save_all=True, append_images=[_photo("rocket", SMALL).quantize(32)]),
        "gif_transparent.gif": _saved(see_through, "GIF"),
        "gif_interlaced.gif": _saved(indexed, "GIF", interlace=1),
        "bmp_rgb.bmp": _saved(cup, "BMP"),
        "bmp_palette.bmp": _saved(indexed, "BMP"),
        "bmp_grey.bmp": _saved(cup.convert("L"), "BMP"),
        "tiff_rgb.tif": _saved(cup, "TIFF"),
        "tiff_grey.tif": _saved(cup.convert("L"), "TIFF"),
        "tiff_lzw.tif": _saved(cup, "TIFF", compression="tiff_lzw"),
        "tiff_deflate.tif": _saved(cup, "TIFF", compression="tiff_adobe_deflate"),
        "tiff_alpha.tif": _saved(translucent, "TIFF"),
        "tiff_cmyk.tif": _saved(small.convert("CMYK"), "TIFF"),
        "tiff_grey_16.tif": _tiff(deep[..., 1], photometric="minisblack"),
        "tiff_rgb_16.tif": _tiff(deep, photometric="rgb"),
        "tiff_exif_6.tif": _saved(small, "TIFF", exif=_oriented(6)),
    }


def write(folder: pathlib.Path) -> dict[str, bytes]:
    """Writes every file and removes all others. Returns the files by name."""
    files = {**_jpegs(), **_pngs(), **_others()}
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name not in files:
            old.unlink()
    for name, file in files.items():
        (folder / name).write_bytes(file)
    (folder / "README.md").write_text(README)
    return files
