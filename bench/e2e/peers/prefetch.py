"""Threads that work ahead of the training loop: those that fetch, those that decode, and the one that makes batches of it."""

import itertools
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

# Finished batches that may wait for the training loop.
AHEAD = 4


class Failures:
    """Samples that could not be read or decoded: they are counted, left out, and the first is told."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, error: Exception) -> bool:
        """Counts it; true, to go on."""
        if not self.count:
            print(f"the first that failed: {error!r}", file=sys.stderr)
        self.count += 1
        return True

    def guard(self, function: Callable) -> Callable:
        """The function, with None for an answer where it failed."""

        def guarded(item: object) -> object:
            try:
                return function(item)
            except Exception as error:
                self.note(error)
                return None

        return guarded


def ordered(pool: ThreadPoolExecutor, function: Callable, items: Iterable, ahead: int) -> Iterator:
    """What the function makes of the items, in their order, at most so many ahead; items that it made nothing of are left out."""
    running = deque()
    for item in items:
        running.append(pool.submit(function, item))
        if len(running) > ahead and (made := running.popleft().result()) is not None:
            yield made
    for future in running:
        if (made := future.result()) is not None:
            yield made


def merged(sources: list[Iterable], ahead: int) -> Iterator:
    """The items of all sources as they come, each made by a thread of its own, so many ahead; what one raises is raised here."""
    ready, nothing_more = queue.Queue(ahead), object()

    def make(items: Iterable) -> None:
        raised = None
        try:
            for item in items:
                ready.put((item, None))
        except BaseException as error:
            raised = error
        ready.put((nothing_more, raised))

    for items in sources:
        threading.Thread(target=make, args=[items], daemon=True).start()
    running = len(sources)
    while running:
        item, raised = ready.get()
        if raised:
            raise raised
        if item is nothing_more:
            running -= 1
        else:
            yield item


def batches(samples: Iterable[tuple], size: int) -> Iterator[tuple[list[str], object]]:
    """Names and values of so many samples at a time; arrays of one shape become one array."""
    samples = iter(samples)
    while batch := list(itertools.islice(samples, size)):
        names, values = zip(*batch)
        yield list(names), np.stack(values) if isinstance(values[0], np.ndarray) else list(values)
