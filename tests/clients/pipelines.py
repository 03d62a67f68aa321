"""What a foreign client does to ask for a pipeline: one more header, or one more query parameter."""

import urllib.parse

import numpy as np
from PIL import Image

SHORT = "decode | resize(short=64) | center_crop(48)"


def with_pipeline(client, pipeline: str | None, **others: str) -> None:
    """From now on this boto3 client sends the pipeline with every GetObject and HeadObject, as a signed header."""
    headers = {f"x-pushdown-{name}": value for name, value in others.items()}
    if pipeline is not None:
        headers["x-pushdown-pipeline"] = pipeline

    def add(request, **_):
        for name, value in headers.items():
            request.headers[name] = value

    for operation in ("GetObject", "HeadObject"):
        client.meta.events.register(f"before-sign.s3.{operation}", add)


def with_parameter(client, pipeline: str) -> None:
    """From now on this boto3 client sends the pipeline with every GetObject and HeadObject, as a signed query parameter."""

    def add(request, **_):
        query = urllib.parse.urlencode({"x-pushdown-pipeline": pipeline}, quote_via=urllib.parse.quote)
        request.url += ("&" if "?" in request.url else "?") + query

    for operation in ("GetObject", "HeadObject"):
        client.meta.events.register(f"before-sign.s3.{operation}", add)


def accepting(client, media_type: str) -> None:
    """From now on this boto3 client asks for this form."""

    def add(request, **_):
        request.headers["accept"] = media_type

    client.meta.events.register("before-sign.s3.GetObject", add)


def reference(path, short: int = 64, crop: int = 48) -> np.ndarray:
    """What Pillow makes of a photo."""
    with Image.open(path) as image:
        image = image.convert("RGB")
    width, height = image.size
    if width <= height:
        size = (short, short * height // width)
    else:
        size = (short * width // height, short)
    image = image.resize(size, Image.Resampling.BILINEAR)
    left, top = round((size[0] - crop) / 2), round((size[1] - crop) / 2)
    return np.asarray(image.crop((left, top, left + crop, top + crop)))


def assert_within(found: np.ndarray, expected: np.ndarray, levels: int = 1) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    difference = np.abs(found.astype(np.int16) - expected.astype(np.int16)).max()
    assert difference <= levels, f"pixels differ by up to {difference} levels"
