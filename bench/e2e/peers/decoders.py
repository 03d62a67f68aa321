"""Decodes a photo to pixels: resizes the short side with antialiasing, then crops a square from the centre.

All three decoders yield torchvision's sizes and, up to single levels, the same pixels. Scaled decoding would change the
pixels, so none uses it. Images per CPU second, one thread, photos of 500 x 375, to 256 / 224 and to 144 / 128 pixels:

| decoder | 256 / 224 | 144 / 128 |
|---|---|---|
| torchvision | 715 | 770 |
| opencv: OpenCV decodes, Pillow resizes only the square | 518 | 576 |
| pillow: Pillow decodes, and resizes only the square | 475 | 573 |

Without `box` Pillow also resizes the cropped part and reaches 375 and 464. OpenCV has no bilinear resizing with antialiasing: its
`INTER_AREA` (446, 543) differs by up to 17 levels, its `INTER_LINEAR` (837, 911) by 44 to 69.
"""

import io
from collections.abc import Callable

import numpy as np

Decoder = Callable[[bytes, int, int], np.ndarray]


def target(width: int, height: int, short: int, crop: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """torchvision's size, with the long side truncated, and the origin of its centre crop."""
    size = (short, int(short * height / width)) if width <= height else (int(short * width / height), short)
    if crop > short:
        raise ValueError(f"crop: expected at most the short side {short}, found {crop}")
    return size, tuple(round((side - crop) / 2) for side in size)


def square(image, short: int, crop: int) -> np.ndarray:
    """Pillow's antialiased bilinear resizing, only of the pixels under the square."""
    from PIL.Image import Resampling

    (width, height), (left, top) = target(*image.size, short, crop)
    across, down = image.width / width, image.height / height
    box = (left * across, top * down, (left + crop) * across, (top + crop) * down)
    return np.asarray(image.resize((crop, crop), Resampling.BILINEAR, box=box))


def pillow() -> tuple[Decoder, str]:
    import PIL
    from PIL import Image

    def decode(data: bytes, short: int, crop: int) -> np.ndarray:
        return square(Image.open(io.BytesIO(data)).convert("RGB"), short, crop)

    return decode, f"Pillow {PIL.__version__}"


def opencv() -> tuple[Decoder, str]:
    import cv2
    import PIL
    from PIL import Image

    # Parallelism is across photos.
    cv2.setNumThreads(1)

    def decode(data: bytes, short: int, crop: int) -> np.ndarray:
        # Pillow and torchvision ignore the EXIF orientation.
        flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
        if pixels is None:
            raise ValueError("OpenCV cannot decode it")
        return square(Image.fromarray(pixels), short, crop)

    return decode, f"OpenCV {cv2.__version__} and Pillow {PIL.__version__}"


def torchvision() -> tuple[Decoder, str]:
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)

    def decode(data: bytes, short: int, crop: int) -> np.ndarray:
        # A read-only buffer would make torch warn.
        encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        pixels = functional.resize(decode_jpeg(encoded, mode=ImageReadMode.RGB), [short], antialias=True)
        return functional.center_crop(pixels, [crop, crop]).permute(1, 2, 0).contiguous().numpy()

    return decode, f"torchvision {torchvision.__version__}, torch {torch.__version__}"


# In order of speed.
DECODERS = {"torchvision": torchvision, "opencv": opencv, "pillow": pillow}


def load(name: str | None) -> tuple[Decoder, str]:
    """A decoder by its name, or the fastest that is installed."""
    if name:
        return DECODERS[name]()
    for make in DECODERS.values():
        try:
            return make()
        except ImportError:
            continue
    raise SystemExit(f"none of {', '.join(DECODERS)} is installed")
