"""Read a bucket into PyTorch.

`Loader` is a whole data loader: its threads read, decode and stack, without worker processes. `Dataset` and
`MapDataset` are for the stock `torch.utils.data.DataLoader`. All three take the options of
`pushdown.Reader`.

    import pushdown.torch as pt

    pipeline = "decode | random_resized_crop(224) | flip_h | to_float | normalize(imagenet)"
    loader = pt.Loader("s3://photos/train/", pipeline, batch_size=256, labels="dir", seed=7)
    for batch in loader:
        step(batch.x, batch.y)
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401  (an absolute import: PyTorch, not this package)
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "cannot import pushdown.torch: expected PyTorch, found no module `torch`; "
        "run: pip install 'pushdown-client[torch]'",
        name="torch",
    ) from error

from ..options import ReaderOptions
from ._convert import TorchBatch
from ._worker import DatasetIterator
from .dataset import Dataset
from .loader import Loader, LoaderIterator
from .map_dataset import MapDataset, Samples, collate

__all__ = [
    "Dataset",
    "DatasetIterator",
    "Loader",
    "LoaderIterator",
    "MapDataset",
    "ReaderOptions",
    "Samples",
    "TorchBatch",
    "collate",
]
