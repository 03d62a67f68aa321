"""From the bytes of a photo to a tensor, with the transforms of torchvision's documentation: of Pillow images, and of tensors."""

from __future__ import annotations

import io
from collections.abc import Callable

import PIL
import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

from . import PILLOW

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def pillow_transform() -> Callable[[Image.Image], torch.Tensor]:
    """The transform of a Pillow image."""
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def decoder(decoding: str) -> Callable[[bytes], torch.Tensor]:
    """From the bytes of a photo to float32 [3, 224, 224]."""
    if decoding == PILLOW:
        of_image = pillow_transform()
        return lambda photo: of_image(Image.open(io.BytesIO(photo)).convert("RGB"))
    of_tensor = v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    # A read-only buffer would make torch warn.
    encoded = lambda photo: torch.frombuffer(bytearray(photo), dtype=torch.uint8)
    return lambda photo: of_tensor(decode_jpeg(encoded(photo), mode=ImageReadMode.RGB))


def describe(decoding: str) -> str:
    """What decodes and transforms, with versions."""
    if decoding == PILLOW:
        return f"transforms of Pillow {PIL.__version__} images"
    return f"torchvision {torchvision.__version__}: decode_jpeg and v2 transforms of tensors"
