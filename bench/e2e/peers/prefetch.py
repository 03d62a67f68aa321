"""Threads that prefetch for the training loop: for fetching, for decoding, and for building batches."""

import itertools
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

# The most finished batches in the queue to the training loop.
AHEAD = 4


class Failures:
    """Samples that could not be read or decoded: they are counted and left out, and the first error is printed."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, error: Exception) -> bool:
        """Counts an error. Returns true: continue."""
        if not self.count:
            print(f"first failed sample: {error!r}", file=sys.stderr)
        self.count += 1
        return True

    def guard(self, function: Callable) -> Callable:
        """Wraps the function to return None on failure."""

        def guarded(item: object) -> object:
            try:
                return function(item)
            except Exception as error:
                self.note(error)
                return None

        return guarded


def ordered(pool: ThreadPoolExecutor, function: Callable, items: Iterable, ahead: int) -> Iterator:
    """The results of the function in the order of the items, computed at most `ahead` items in advance. None is left out."""
    running = deque()
    for item in items:
        running.append(pool.submit(function, item))
        if len(running) > ahead and (result := running.popleft().result()) is not None:
            yield result
    for future in running:
        if (result := future.result()) is not None:
            yield result


def merged(sources: list[Iterable], ahead: int) -> Iterator:
    """The items of all sources in order of completion, with one thread per source and at most `ahead` items queued. An
    exception of a source is raised here."""
    ready, end = queue.Queue(ahead), object()

    def produce(items: Iterable) -> None:
        raised = None
        try:
            for item in items:
                ready.put((item, None))
        except BaseException as error:
            raised = error
        ready.put((end, raised))

    for items in sources:
        threading.Thread(target=produce, args=[items], daemon=True).start()
    running = len(sources)
    while running:
        item, raised = ready.get()
        if raised:
            raise raised
        if item is end:
            running -= 1
        else:
            yield item


def batches(samples: Iterable[tuple], size: int) -> Iterator[tuple[list[str], object]]:
    """Batches of `size` samples as names and values. Arrays are stacked into one."""
    samples = iter(samples)
    while batch := list(itertools.islice(samples, size)):
        names, values = zip(*batch)
        yield list(names), np.stack(values) if isinstance(values[0], np.ndarray) else list(values)
