"""Makes a photo smaller: bytes to bytes of a JPEG with a given short side.

Milliseconds of CPU per photo to 256 pixels, one thread, of 500 x 375 and of 12 megapixels, on a busy machine:

| resizer | 500 x 375 | 12 megapixels | how it resizes |
|---|---|---|---|
| torchvision | 1.9 | 61 | bilinear with antialiasing, like pushdown |
| simplejpeg, OpenCV's `INTER_AREA` | 2.5 | 66 | the mean of the covered pixels |
| simplejpeg, decoding at 1/8, `INTER_AREA` | 2.5 | 16 | the same of pixels that the decoder has made smaller |
| img2dataset's `Resizer` | 3.0 | 89 | OpenCV decodes and encodes; `INTER_AREA` |

OpenCV's `INTER_LINEAR` (1.4, 30) reads only some of the pixels of a photo that it makes much smaller, so its values are others and worse: it is
not compared. All sizes are torchvision's but img2dataset's, which rounds the long side.
"""

import io
import warnings
from collections.abc import Callable

import decoders

Resizer = Callable[[bytes], bytes]


def simplejpeg(short: int, quality: int, min_short: int) -> tuple[Resizer, str]:
    """With a `min_short` it decodes at the smallest of the decoder's scales whose sides are at least that."""
    import cv2
    import simplejpeg

    cv2.setNumThreads(1)

    def resize(data: bytes) -> bytes:
        pixels = simplejpeg.decode_jpeg(data, "RGB", min_height=min_short, min_width=min_short)
        (width, height), _ = decoders.target(pixels.shape[1], pixels.shape[0], short, short)
        small = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
        return simplejpeg.encode_jpeg(small, quality, "RGB", "420")

    scale = f"decoding to at least {min_short} pixels" if min_short else "decoding all pixels"
    return resize, f"simplejpeg {simplejpeg.__version__}, {scale}; OpenCV {cv2.__version__}, INTER_AREA"


def img2dataset(short: int, quality: int, _: int) -> tuple[Resizer, str]:
    import importlib.metadata

    # Its dependencies look for updates, and warn.
    warnings.simplefilter("ignore")
    from img2dataset.resizer import Resizer as Their

    their = Their(short, "keep_ratio", False, downscale_interpolation="area", encode_quality=quality)

    def resize(data: bytes) -> bytes:
        photo, *_, error = their(io.BytesIO(data))
        if error is not None:
            raise ValueError(error)
        return photo

    return resize, f"`Resizer` of img2dataset {importlib.metadata.version('img2dataset')}, keep_ratio, INTER_AREA"


def torchvision(short: int, quality: int, _: int) -> tuple[Resizer, str]:
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_jpeg, encode_jpeg
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)

    def resize(data: bytes) -> bytes:
        # A read-only buffer would make torch warn.
        pixels = decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)
        return encode_jpeg(functional.resize(pixels, [short], antialias=True), quality=quality).numpy().tobytes()

    return resize, f"torchvision {torchvision.__version__}, decoding all pixels, bilinear with antialiasing"
