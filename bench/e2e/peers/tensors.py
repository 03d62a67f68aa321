"""Data loaders of PyTorch in one training loop: `tensors.py SOURCE URL` reads an epoch for each line of standard input, and prints
its figures as a line of JSON.

Every loader delivers the same tensors: float32 [n, 3, CROP, CROP], normalised by ImageNet's mean and deviation, and int64 [n]. A line
`check` adds the mean of an epoch's values, which takes time.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator

import torch

import measure
import prefetch

SOURCES = ["pushdown", "webdataset", "datasets"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("url", help="s3://BUCKET/KEY, with a pattern for many: `{000..003}` for shards, `*` for Parquet")
    parser.add_argument("--endpoint", required=True, help="URL of the store or the gateway")
    parser.add_argument("--short", type=int, required=True, help="the short side after resizing")
    parser.add_argument("--crop", type=int, required=True, help="the side of the square from the centre")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--step-ms", type=float, default=0, help="milliseconds that a simulated accelerator takes for a batch")
    parser.add_argument("--pipeline", help="pushdown: the pipeline that yields these tensors")
    parser.add_argument("--mode", help="pushdown: plain, pushdown or auto")
    parser.add_argument("--index", help="pushdown: the saved index of the shards")
    parser.add_argument("--buffer", type=int, help="pushdown: reads in shard order with a shuffle buffer of this many samples")
    parser.add_argument("--labels", type=json.loads, help="pushdown: the labels of objects, or the column that has them, as JSON")
    options = parser.parse_args()
    # One worker per core, as many as our loader has threads.
    options.workers = len(os.sched_getaffinity(0))
    return options


class Checked:
    """The epochs of a loader, each batch checked, as `measure.train` reads them."""

    def __init__(self, loader, crop: int) -> None:
        self.loader, self.shape = loader, (3, crop, crop)
        # Loaders raise at the first failed sample.
        self.failures = prefetch.Failures()
        self.value_bytes = None
        self.labels, self.value_means = 0, None

    def epoch(self) -> Iterator[tuple]:
        """Batches of labels and values."""
        self.labels = 0
        for x, y in self.loader.epoch():
            found = f"{x.dtype} {list(x.shape)} and {y.dtype} {list(y.shape)}"
            if x.dtype != torch.float32 or tuple(x.shape[1:]) != self.shape or y.dtype != torch.int64 or len(x) != len(y):
                raise ValueError(f"invalid batch: expected float32 [n, {self.shape}] and int64 [n], found {found}")
            self.labels += int(y.sum())
            if self.value_means is not None:
                self.value_means += [float(value.mean()) for value in x]
            yield y, x


def main() -> None:
    options = arguments()
    # Libraries print to the standard output, too.
    answers, sys.stdout = sys.stdout, sys.stderr
    loader = importlib.import_module(f"tensors_from_{options.source}").Loader(options)
    source = Checked(loader, options.crop)
    for line in sys.stdin:
        source.value_means = [] if line.strip() == "check" else None
        figures = measure.train(source, 1, options.step_ms / 1000) | loader.figures()
        means = source.value_means
        figures |= {"labels": source.labels, "value_mean": sum(means) / len(means) if means else None}
        print(json.dumps({"settings": loader.settings} | figures), file=answers, flush=True)
    # Library threads that run at interpreter exit have aborted the process.
    os._exit(0)


if __name__ == "__main__":
    main()
