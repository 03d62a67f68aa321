"""Crops and tensor steps by torchvision and PyTorch."""

import numpy as np
import torch
import torchvision.transforms.functional as vision

from .decoding import rgb
from .store import Store

CROPS = [(0, 0, 30, 20), (13, 7, 40, 33), (80, 50, 30, 30), (0, 0, 110, 80), (200, 3, 10, 10)]
CENTERS = [(40, 40), (31, 20), (32, 21), (97, 65), (120, 90), (121, 91), (120, 20), (20, 91), (1, 1), (98, 66)]
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
DTYPES = {
    "u8": torch.uint8,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "f32": torch.float32,
}
# Small, since many cases store its values.
REDUCED = "decode | crop(20, 20, 24, 17)"


def planes(pixels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1).contiguous()


def _pixels(tensor: torch.Tensor) -> np.ndarray:
    return tensor.permute(1, 2, 0).numpy()


def _to_integers(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Rounds to nearest, ties to even, and saturates. PyTorch itself truncates and wraps around."""
    bounds = torch.iinfo(dtype)
    return values.double().round().clamp(bounds.min, bounds.max).to(dtype)


def _crops(store: Store) -> None:
    for source in "jpeg_420.jpg", "jpeg_portrait.jpg":
        whole = planes(rgb(store.files[source]))
        for left, top, width, height in CROPS:
            cropped = vision.crop(whole, top, left, height, width)
            store.expect(source, f"decode | crop({left}, {top}, {width}, {height})", _pixels(cropped))
        for width, height in CENTERS:
            cropped = vision.center_crop(whole, [height, width])
            store.expect(source, f"decode | center_crop({width}, {height})", _pixels(cropped))
        # All remainders of the margins: torchvision rounds half to even.
        for size in range(11, 19):
            cropped = vision.center_crop(whole, [size, size])
            store.expect(source, f"decode | center_crop({size})", _pixels(cropped))


def _floats(store: Store, source: str) -> torch.Tensor:
    part = vision.crop(planes(rgb(store.files[source])), 20, 20, 17, 24)
    real = vision.convert_image_dtype(part, torch.float32)
    assert torch.equal(real, vision.to_tensor(_pixels(part)))
    normal = vision.normalize(real, *IMAGENET)
    store.expect(source, f"{REDUCED} | to_tensor", part.numpy())
    store.expect(source, f"{REDUCED} | to_float", real.numpy(), 1e-6)
    store.expect(source, f"{REDUCED} | to_float | normalize(imagenet)", normal.numpy(), 1e-6)
    store.expect(
        source, f"{REDUCED} | to_float | layout(hwc) | normalize(imagenet)", _pixels(normal), 1e-6
    )
    scalar = vision.normalize(real, [0.5], [0.25])
    store.expect(source, f"{REDUCED} | to_float | normalize(mean=0.5, std=0.25)", scalar.numpy(), 1e-6)
    raw = (part.float() - 127) / 128
    store.expect(source, f"{REDUCED} | to_tensor | cast(f32) | normalize(mean=127, std=128)", raw.numpy(), 1e-6)
    store.expect(source, f"{REDUCED} | to_float | layout(hwc)", _pixels(real))
    return normal


def _casts(store: Store, source: str, normal: torch.Tensor) -> None:
    # Exceeds the range of 8 bits on both sides.
    wide = vision.normalize(torch.from_numpy(rgb(store.files[source]).copy()).permute(2, 0, 1)[:, 20:37, 20:44] / 255,
                            [0.4], [0.0005])
    for name, dtype in DTYPES.items():
        for text, values in (
            (f"{REDUCED} | to_float | normalize(imagenet)", normal),
            (f"{REDUCED} | to_float | normalize(mean=0.4, std=0.0005)", wide),
        ):
            cast = values.to(dtype) if dtype.is_floating_point else _to_integers(values, dtype)
            # Cases above check the inputs within 1e-6. They are bit for bit equal; otherwise a tie would round differently.
            store.expect(source, f"{text} | cast({name})", cast.numpy())
    # NumPy has no bf16; the conversion back to f32 is exact.
    store.expect(
        source,
        f"{REDUCED} | to_float | normalize(imagenet) | cast(bf16) | cast(f32)",
        normal.to(torch.bfloat16).float().numpy(),
    )
    part = planes(rgb(store.files[source]))[:, 20:37, 20:44]
    store.expect(source, f"{REDUCED} | to_tensor | cast(i8)", part.clamp(max=127).to(torch.int8).numpy())
    store.expect(source, f"{REDUCED} | to_tensor | cast(f16)", part.to(torch.float16).numpy())


def _codes(store: Store, source: str, normal: torch.Tensor) -> None:
    text = f"{REDUCED} | to_float | normalize(imagenet) | quantize(int8"
    for argument, scale in ("", normal.abs().max() / 127), (", scale=0.01", torch.tensor(0.01)):
        codes = (normal / scale).round().clamp(-127, 127).to(torch.int8)
        store.expect(source, f"{text}{argument})", codes.numpy())
        store.expect(source, f"{text}{argument}) | dequantize", (codes.float() * scale).numpy())


def add(store: Store) -> None:
    _crops(store)
    for source in "jpeg_420.jpg", "jpeg_portrait.jpg", "png_grey_alpha.png":
        normal = _floats(store, source)
        _casts(store, source, normal)
        _codes(store, source, normal)
