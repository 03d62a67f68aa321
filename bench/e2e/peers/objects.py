"""Sources with one object per sample: threads fetch them, one per connection.

Decoding has its own threads, one per core. If the fetching threads also decode, they compete for caches: with 8 and 16
threads boto3 reached 266 and 144 samples per second instead of 341 and 273, s3torchconnector 388 and 416 instead of 486 and
475; with 4 and 32 the result varied.
"""

import abc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import prefetch
from work import Work


class Objects(abc.ABC):
    """The common base: objects, listed once, and a thread pool that prefetches for the decoders."""

    # The fastest number.
    threads: int

    def __init__(self, options, work: Work) -> None:
        self.options, self.work, self.failures = options, work, prefetch.Failures()
        self.threads = options.threads or self.threads
        self.pool = ThreadPoolExecutor(self.threads)
        self.listed: list = []
        self.value_bytes = 0

    @abc.abstractmethod
    def list(self) -> list:
        """The items to read: keys, or other identifiers of objects."""

    @abc.abstractmethod
    def read(self, item: object) -> tuple[str, bytes]:
        """The key and the body of an item."""

    def fetch(self, item: object) -> tuple[str, bytes]:
        """The name of a sample, its key without the prefix, and its bytes."""
        key, body = self.read(item)
        self.value_bytes += len(body)
        return key.removeprefix(self.options.prefix), body

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once."""
        self.listed = self.listed or self.list()
        # At least two batches, so that the model never waits.
        ahead = 2 * max(self.options.batch_size, self.threads)
        photos = prefetch.ordered(self.pool, self.failures.guard(self.fetch), self.listed, ahead)
        return self.work.batches(photos, self.options.batch_size, self.failures)
