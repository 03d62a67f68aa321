"""Hugging Face `datasets` as its documentation shows it: Parquet with an `Image` feature, streamed from the store by s3fs, with a
shuffle buffer, and torch's `DataLoader`.
"""

from collections.abc import Iterator

import datasets
import s3fs
import torch
from torch.utils.data import DataLoader

import s3
from torchvision_transform import DESCRIPTION, transform

SHUFFLE_SAMPLES = 1000
SEED = 7


class Loader:
    def __init__(self, options) -> None:
        # Keys are those of the environment.
        storage = {"endpoint_url": options.endpoint, "client_kwargs": {"region_name": s3.REGION}}
        storage |= {"config_kwargs": {"s3": {"addressing_style": "path"}}}
        stored = datasets.load_dataset(
            "parquet", data_files=options.url, split="train", streaming=True, storage_options=storage
        )
        convert = transform(options.short, options.crop)

        def tensors(example: dict) -> dict:
            return {"x": convert(example["image"].convert("RGB")), "y": example["label"]}

        shuffled = stored.shuffle(seed=SEED, buffer_size=SHUFFLE_SAMPLES)
        self.dataset = shuffled.map(tensors, remove_columns=["image", "label"])
        # Persistent workers: an epoch does not pay for their start.
        self.loader = DataLoader(
            self.dataset, batch_size=options.batch_size, num_workers=options.workers, persistent_workers=True
        )
        self.epochs = 0
        parquet = f"datasets {datasets.__version__}, Parquet streamed by s3fs {s3fs.__version__}, shuffle({SHUFFLE_SAMPLES})"
        self.settings = f"{parquet}, DataLoader of torch {torch.__version__} with {options.workers} workers, {DESCRIPTION}"

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once."""
        self.dataset.set_epoch(self.epochs)
        self.epochs += 1
        for batch in self.loader:
            yield batch["x"], batch["y"]

    def figures(self) -> dict:
        """It counts no bytes."""
        return {"wire_bytes_up": None, "wire_bytes_down": None}
