"""The work of a loader on a photo: `pixels:SHORT:CROP`, a model by name, or `bytes` for none."""

import os
import pathlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import decoders
import prefetch

CORES = len(os.sched_getaffinity(0))
# The input of all models: the short side, and the square.
MODEL_PIXELS = 256, 224


class Work:
    """Decoding on a thread pool, followed by an optional model."""

    def __init__(self, text: str, decoder: str | None, models: pathlib.Path | None, decoded: bool = False) -> None:
        """With `decoded` photos only the model is left."""
        kind, *numbers = text.split(":")
        self.short, self.crop = MODEL_PIXELS
        self.model, self.decoder, settings = None, None, []
        if kind == "pixels":
            self.short, self.crop = map(int, numbers)
        elif kind == "bytes":
            self.short = self.crop = 0
        else:
            from model import Model

            if not models:
                raise SystemExit(f"{kind} is a model: --models has to name its folder")
            self.model = Model(kind, models, CORES)
            settings = [self.model.settings]
        if self.crop and not decoded:
            self.decoder, versions = decoders.load(decoder)
            settings.insert(0, f"decoding with {versions} on {CORES} threads")
        self.settings = ", ".join(settings)
        self.pool = ThreadPoolExecutor(CORES)

    def decode(self, photo: tuple[str, bytes]) -> tuple[str, np.ndarray]:
        """The name and the pixels of a photo."""
        name, data = photo
        return name, self.decoder(data, self.short, self.crop)

    def batches(self, photos: Iterable[tuple], size: int, failures: prefetch.Failures) -> Iterator[tuple]:
        """Prefetched batches of names and values."""
        if self.decoder:
            photos = prefetch.ordered(self.pool, failures.guard(self.decode), photos, 2 * CORES)
        return self.finished(prefetch.batches(photos, size))

    def finished(self, batches: Iterable[tuple]) -> Iterator[tuple]:
        """Prefetched batches after the model, if there is one."""
        if self.model:
            batches = ((names, self.model(values)) for names, values in batches)
        return prefetch.merged([batches], prefetch.AHEAD)
