"""Random steps: torchvision's random parameters, and its adjustments by fixed factors."""

import pathlib

import numpy as np
import torch
import torchvision.transforms.functional as vision
from safetensors.numpy import save
from torchvision.transforms import ColorJitter, RandomResizedCrop

from .decoding import rgb
from .store import Store
from .tensors import planes

DRAWS = 10_000
WIDTH, HEIGHT = 500, 375
JITTER = (0.4, 0.4, 0.4, 0.1)
FACTORS = {
    "brightness": [0.0, 0.6, 1.4],
    "contrast": [0.0, 0.6, 1.4],
    "saturation": [0.0, 0.6, 1.4],
    "hue": [-0.5, -0.1, 0.07, 0.5],
}


def write_draws(path: pathlib.Path) -> None:
    """Writes samples of both distributions. Whole numbers are stored as floats."""
    torch.manual_seed(0)
    image = torch.empty(3, HEIGHT, WIDTH)
    crop = RandomResizedCrop(224)
    rectangles = [crop.get_params(image, crop.scale, crop.ratio) for _ in range(DRAWS)]
    jitter = ColorJitter(*JITTER)
    ranges = (jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue)
    jitters = [jitter.get_params(*ranges) for _ in range(DRAWS)]
    tensors = {
        "random_resized_crop": np.array(rectangles, np.float32),
        "color_jitter": np.array([factors for _, *factors in jitters], np.float32),
        "color_jitter_order": np.array([order.tolist() for order, *_ in jitters], np.float32),
    }
    path.write_bytes(save(tensors))


def add(store: Store) -> None:
    # torchvision truncates to whole numbers, so the last bit of f32 can become one level.
    source = "png_rgb.png"
    image = planes(rgb(store.files[source]))
    for operation, factors in FACTORS.items():
        adjust = getattr(vision, f"adjust_{operation}")
        for factor in factors:
            adjusted = adjust(image, factor).permute(1, 2, 0).numpy()
            store.expect_adjusted(source, operation, factor, adjusted, 1)
