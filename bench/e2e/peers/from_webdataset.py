"""`webdataset`: tar shards from `shards.py`, read as streams.

Samples per second (best of three rounds) and CPU milliseconds per sample (median); 8 shards of 50 photos, pixels of 256 / 224 by
torchvision, everything on one core:

| threads | 1 | 2 | 4 |
|---|---|---|---|
| | 553, 1.99 | 565, 1.92 | 564, 1.83 |

The reads are 1 MiB. Reads of 64 KiB need 3 to 6 % more CPU with one or two threads; tarfile's default of 10 KiB needs 10 %
more with two, which then reach 369 instead of 512. 8 threads are not faster than 4.
"""

import io
from collections.abc import Iterator
from urllib.parse import urlsplit

import webdataset
from webdataset.gopen import gopen_schemes

import prefetch
import s3

BUFFER_BYTES = 1 << 20


class Source:
    threads = 4

    def __init__(self, options, work) -> None:
        self.options, self.work, self.failures = options, work, prefetch.Failures()
        self.threads = options.threads or self.threads
        self.client = s3.client(options.endpoint, self.threads)
        self.shards: list[str] = []
        self.value_bytes = 0
        gopen_schemes["s3"] = self.open
        streams = f"{self.threads} streams of boto3 {s3.VERSION}, reads of {BUFFER_BYTES >> 10} KiB"
        self.settings = f"webdataset {webdataset.__version__}, tar shards, {streams}"

    def open(self, url: str, _mode: str, _size: int) -> io.BufferedReader:
        """The body of a shard."""
        parts = urlsplit(url)
        answer = self.client.get_object(Bucket=parts.netloc, Key=parts.path[1:])
        self.value_bytes += answer["ContentLength"]
        return io.BufferedReader(answer["Body"], BUFFER_BYTES)

    def samples(self, shards: list[str]) -> Iterator[tuple[str, bytes]]:
        """Names and bytes of the photos of these shards."""
        urls = [f"s3://{self.options.bucket}/{key}" for key in shards]
        for sample in webdataset.WebDataset(urls, shardshuffle=False, handler=self.failures.note):
            for suffix, data in sample.items():
                if not suffix.startswith("__"):
                    yield f"{sample['__key__']}.{suffix}", data

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once, in the order of the shards."""
        self.shards = self.shards or s3.keys(self.client, self.options.bucket, self.options.prefix)
        readers = min(self.threads, len(self.shards))
        parts = [self.samples(self.shards[first::readers]) for first in range(readers)]
        photos = prefetch.merged(parts, 2 * self.options.batch_size)
        return self.work.batches(photos, self.options.batch_size, self.failures)
