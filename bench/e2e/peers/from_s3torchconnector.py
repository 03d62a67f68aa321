"""`s3torchconnector`: Amazon's loader for PyTorch, whose client is in C and Rust.

Samples per second (best of four rounds) and CPU milliseconds per sample (median); pixels of 256 / 224 by torchvision, everything
on one core:

| threads | 4 | 8 | 16 | 32 |
|---|---|---|---|---|
| threads that share one map dataset | 492, 2.1 | 486, 2.2 | 484, 2.1 | 516, 2.3 |

torch's `DataLoader` with 2, 4 and 8 persistent worker processes and a prefetch of four batches reaches 312, 334 and 371. CPU
of a GET with 16 threads: 0.30 ms with defaults; 0.28 with a target of 100 Gbit/s and 0.27 with 1 Gbit/s, the same in whole
runs (412 to 448); 0.37 with parts of 64 MiB; 0.86 with `S3ReaderConstructor.range_based()` instead of the sequential reader.
"""

import os

import s3torchconnector
from s3torchconnector import S3ClientConfig, S3MapDataset, S3ReaderConstructor

from objects import Objects


class Source(Objects):
    threads = 16

    def __init__(self, options, work) -> None:
        super().__init__(options, work)
        self.dataset = S3MapDataset.from_prefix(
            f"s3://{options.bucket}/{options.prefix}",
            region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", "us-east-1"),
            endpoint=options.endpoint,
            s3client_config=S3ClientConfig(force_path_style=True),
            reader_constructor=S3ReaderConstructor.sequential(),
            transform=lambda reader: (reader.key, reader.read()),
        )
        version = s3torchconnector.__version__
        self.settings = f"s3torchconnector {version}, {self.threads} threads, sequential reader, parts and throughput by default"

    def list(self) -> list[int]:
        """Indices: the connector lists the keys and stores them."""
        return list(range(len(self.dataset)))

    def read(self, position: int) -> tuple[str, bytes]:
        return self.dataset[position]
