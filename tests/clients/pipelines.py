"""How a client without pushdown support requests a pipeline: by a header or a query parameter."""

import urllib.parse

import numpy as np
from PIL import Image

SHORT = "decode | resize(short=64) | center_crop(48)"


def with_pipeline(client, pipeline: str | None, **options: str) -> None:
    """Makes this boto3 client send the pipeline with every GetObject and HeadObject, as a signed header."""
    headers = {f"x-pushdown-{name}": value for name, value in options.items()}
    if pipeline is not None:
        headers["x-pushdown-pipeline"] = pipeline

    def add(request, **_):
        for name, value in headers.items():
            request.headers[name] = value

    for operation in ("GetObject", "HeadObject"):
        client.meta.events.register(f"before-sign.s3.{operation}", add)


def with_parameter(client, pipeline: str) -> None:
    """Makes this boto3 client send the pipeline with every GetObject and HeadObject, as a signed query parameter."""

    def add(request, **_):
        query = urllib.parse.urlencode({"x-pushdown-pipeline": pipeline}, quote_via=urllib.parse.quote)
        request.url += ("&" if "?" in request.url else "?") + query

    for operation in ("GetObject", "HeadObject"):
        client.meta.events.register(f"before-sign.s3.{operation}", add)


def with_accept(client, media_type: str) -> None:
    """Makes this boto3 client request this content type."""

    def add(request, **_):
        request.headers["accept"] = media_type

    client.meta.events.register("before-sign.s3.GetObject", add)


def reference(path, short: int = 64, crop: int = 48) -> np.ndarray:
    """The pixels that Pillow computes for a photo."""
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
