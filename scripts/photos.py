"""Derives photo sets of fixed size from the large originals. Usage: photos.py FOLDER"""

import pathlib
import sys

from PIL import Image, ImageOps

IMAGENET = 200
TWELVE_MEGAPIXELS = 8


def save(image: Image.Image, path: pathlib.Path, **options) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, "JPEG", subsampling="4:2:0", **options)


def main(cache: pathlib.Path) -> None:
    originals = sorted((cache / "large").glob("*.jpg"))
    for index in range(IMAGENET):
        image = Image.open(originals[index % len(originals)]).convert("RGB")
        # With fewer originals than photos, use another part of the same original.
        part = (index // len(originals) * 0.3) % 1.0
        fitted = ImageOps.fit(image, (500, 375), Image.Resampling.LANCZOS, centering=(part, part))
        # These originals are smoother than camera photos. At this quality the files have the mean size of
        # ImageNet's, 110 KB, and so the same cost of entropy decoding.
        save(fitted, cache / "imagenet" / f"{index:04}.jpg", quality=99)
    for index in range(TWELVE_MEGAPIXELS):
        image = Image.open(originals[index]).convert("RGB")
        fitted = ImageOps.fit(image, (4000, 3000), Image.Resampling.LANCZOS)
        save(fitted, cache / "12mp" / f"{index:02}.jpg", quality=90)
        save(fitted, cache / "12mp-progressive" / f"{index:02}.jpg", quality=90, progressive=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
