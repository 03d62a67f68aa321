"""What a loader makes of a photo: `pixels:SHORT:CROP`, the output of a model by its name, or `bytes`, nothing."""

import os
import pathlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import decoders
import prefetch

CORES = len(os.sched_getaffinity(0))
# What all models here look at: the short side, and the square.
PIXELS_OF_A_NETWORK = 256, 224


class Work:
    """Decoding on a pool of threads, and behind it a model."""

    def __init__(self, text: str, decoder: str | None, models: pathlib.Path | None, decoded: bool = False) -> None:
        """Where photos come decoded, nothing but a model is left to do."""
        kind, *numbers = text.split(":")
        self.short, self.crop = PIXELS_OF_A_NETWORK
        self.model, self.decoder, settings = None, None, []
        if kind == "pixels":
            self.short, self.crop = map(int, numbers)
        elif kind == "bytes":
            self.short = self.crop = 0
        else:
            from model import Model

            if not models:
                raise SystemExit(f"{kind} is a model: --models has to say where it is")
            self.model = Model(kind, models, CORES)
            settings = [self.model.settings]
        if self.crop and not decoded:
            self.decoder, versions = decoders.load(decoder)
            settings.insert(0, f"decoding by {versions} on {CORES} threads")
        self.settings = ", ".join(settings)
        self.pool = ThreadPoolExecutor(CORES)

    def decode(self, photo: tuple[str, bytes]) -> tuple[str, np.ndarray]:
        """A photo's name and its pixels."""
        name, data = photo
        return name, self.decoder(data, self.short, self.crop)

    def batches(self, photos: Iterable[tuple], size: int, failures: prefetch.Failures) -> Iterator[tuple]:
        """Of names and bytes, ahead of who takes them."""
        if self.decoder:
            photos = prefetch.ordered(self.pool, failures.guard(self.decode), photos, 2 * CORES)
        return self.finished(prefetch.batches(photos, size))

    def finished(self, batches: Iterable[tuple]) -> Iterator[tuple]:
        """The batches as the model leaves them, where there is one, ahead of who takes them."""
        if self.model:
            batches = ((names, self.model(values)) for names, values in batches)
        return prefetch.merged([batches], prefetch.AHEAD)
