"""The same labelled photos in each layout at rest. The label of a photo is its number modulo the classes."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import programs
from stack import BUCKET

from . import image_column
from .data import StoredData, originals, slug
from .tiers import Tiers

CLASSES = 10
SHARD_SAMPLES = 50


@dataclass(frozen=True)
class DataSet:
    """Photos at rest: what a loader needs to read them."""

    url: str
    # What our loader takes as labels.
    labels: list[int] | str
    # The saved index of shards.
    index: Path | None = None


def labels(count: int) -> list[int]:
    """The labels of the photos, in order."""
    return [number % CLASSES for number in range(count)]


def objects(name: str, count: int, data: StoredData, _tiers: Tiers, _folder: Path) -> DataSet:
    """An object per photo."""
    return DataSet(f"s3://{BUCKET}/{data.photos(name, count)}", labels(count))


def shards(name: str, count: int, data: StoredData, tiers: Tiers, folder: Path) -> DataSet:
    """Tar shards in which the class follows each photo, with a saved index."""
    options = ["--samples", SHARD_SAMPLES, "--classes", CLASSES]
    prefix = data.upload_shards(f"{slug(name)}-classes-shards-{count}/", name, count, *options)
    last = (count - 1) // SHARD_SAMPLES
    url = f"s3://{BUCKET}/{prefix}" + (f"{{000000..{last:06}}}.tar" if last else "000000.tar")
    index = folder / f"{slug(prefix)}.parquet"
    if not index.exists():
        command = [programs.BINARIES / "pushdown", "index", url, "--output", index, "--endpoint-url", tiers.stack.store]
        tiers.run([*command, "--json"])
    return DataSet(url, "cls", index)


def image_files(name: str, count: int, data: StoredData, tiers: Tiers, _folder: Path) -> DataSet:
    """Parquet files with an image column and a column of labels."""
    prefix = f"{slug(name)}-images-{count}/"
    if prefix not in data.uploaded:
        photos = list(islice(cycle(originals(name)), count))
        for number, body in enumerate(image_column.files(photos, labels(count))):
            tiers.stack.client.put_object(Bucket=BUCKET, Key=f"{prefix}{number:05}.parquet", Body=body)
        data.uploaded.add(prefix)
    return DataSet(f"s3://{BUCKET}/{prefix}*.parquet", "label")


UPLOAD: dict[str, Callable[[str, int, StoredData, Tiers, Path], DataSet]] = {
    "objects": objects, "shards": shards, "shard-order": shards, "image-column": image_files,
}  # fmt: skip
