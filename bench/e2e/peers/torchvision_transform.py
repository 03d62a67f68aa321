"""The transforms of torchvision's documentation, from a Pillow image to a normalised tensor."""

from collections.abc import Callable

import PIL
import torch
import torchvision
from PIL import Image
from torchvision import transforms

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
DESCRIPTION = f"torchvision {torchvision.__version__} transforms of Pillow {PIL.__version__} images"


def transform(short: int, crop: int) -> Callable[[Image.Image], torch.Tensor]:
    """Resizes the short side, crops a square from the centre, and normalises."""
    return transforms.Compose(
        [transforms.Resize(short), transforms.CenterCrop(crop), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    )
