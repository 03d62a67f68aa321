"""Files of common writers: tifffile, Pillow and libtiff."""

import io
import pathlib

import numpy as np
import tifffile
from PIL import Image

from . import picture
from .store import Store, grey

# From bug reports; they never change.
FIELD = pathlib.Path(__file__).resolve().parents[2] / "testkit/fixtures/tiffs"


def written(pixels: np.ndarray, **options) -> bytes:
    out = io.BytesIO()
    # Metadata would include the version of the writer.
    tifffile.imwrite(out, pixels, software=False, metadata=None, **options)
    return out.getvalue()


def saved(image: Image.Image, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, "TIFF", **options)
    return out.getvalue()


def add(store: Store) -> None:
    for path in sorted(FIELD.glob("field_*.tif")):
        store.add(path.stem, path.read_bytes())
    rgb = picture.rgb()
    store.add("tifffile_zstd", written(rgb, photometric="rgb", compression="zstd", predictor=True))
    store.add("tifffile_lzw_tiles", written(rgb, photometric="rgb", compression="lzw", predictor=True, tile=(16, 16)))
    jpeg = {"compression": "jpeg", "compressionargs": {"level": 90}, "tile": (16, 16)}
    store.add("tifffile_jpeg", written(rgb, photometric="ycbcr", subsampling=(2, 2), **jpeg))
    planes = np.ascontiguousarray(np.moveaxis(rgb, 2, 0))
    store.add("tifffile_planar", written(planes, photometric="rgb", planarconfig="separate", tile=(16, 16)))
    floats = rgb[..., 1].astype(np.float32)
    for side in "<", ">":
        name = "little" if side == "<" else "big"
        file = written(floats, photometric="minisblack", compression="zlib", predictor=True, byteorder=side, bigtiff=True)
        store.add(f"tifffile_float_{name}", file, grey(rgb[..., 1]))
    pages = io.BytesIO()
    with tifffile.TiffWriter(pages, bigtiff=True) as writer:
        for page in rgb, 255 - rgb:
            writer.write(page, photometric="rgb", software=False, metadata=None, subifds=1)
            writer.write(page[::2, ::2], photometric="rgb", subfiletype=1, software=False, metadata=None)
    store.add("tifffile_pages_and_pyramid", pages.getvalue())
    image = Image.fromarray(rgb)
    for compression in "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "zstd", "jpeg":
        for mode in ("RGB", "L", "LA") if compression == "jpeg" else ("RGB", "L", "P", "LA", "RGBA", "CMYK", "1"):
            converted = image.quantize(30) if mode == "P" else image.convert(mode)
            store.add(f"pillow_{compression}_{mode.lower()}", saved(converted, compression=compression))
    for mode in "F", "I":
        store.add(f"pillow_{mode.lower()}", saved(image.convert("L").convert(mode)))
    store.add("pillow_pages", saved(image, save_all=True, append_images=[image.rotate(180)]))
