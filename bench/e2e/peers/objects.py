"""Sources that get one object for each sample: threads fetch them, as many at a time as there are connections.

Decoding has threads of its own, as many as cores. Where the threads that fetch decode, too, they share the caches: with 8 and
with 16 of them boto3 came to 266 and 144 samples a second instead of 341 and 273, s3torchconnector to 388 and 416 instead of
486 and 475; with 4 and with 32 it went either way.
"""

import abc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import prefetch
from work import Work


class Objects(abc.ABC):
    """What is common to them: objects, listed once, and a pool of threads ahead of the decoders."""

    # As many as were fastest.
    threads: int

    def __init__(self, options, work: Work) -> None:
        self.options, self.work, self.failures = options, work, prefetch.Failures()
        self.threads = options.threads or self.threads
        self.pool = ThreadPoolExecutor(self.threads)
        self.listed: list = []
        self.value_bytes = 0

    @abc.abstractmethod
    def list(self) -> list:
        """What to read: keys, or what else tells objects apart."""

    @abc.abstractmethod
    def read(self, item: object) -> tuple[str, bytes]:
        """The key and the body of what is listed."""

    def fetch(self, item: object) -> tuple[str, bytes]:
        """A sample's name, which is its key without the prefix, and its bytes."""
        key, body = self.read(item)
        self.value_bytes += len(body)
        return key.removeprefix(self.options.prefix), body

    def epoch(self) -> Iterator[tuple]:
        """Batches, each sample once."""
        self.listed = self.listed or self.list()
        # For two batches at least, whatever the model is busy with.
        ahead = 2 * max(self.options.batch_size, self.threads)
        photos = prefetch.ordered(self.pool, self.failures.guard(self.fetch), self.listed, ahead)
        return self.work.batches(photos, self.options.batch_size, self.failures)
