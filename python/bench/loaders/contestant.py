"""One contestant: `python -m loaders.contestant NAME TASK` prints its settings, and reads an epoch for each line of input.

All output is JSON. The process that started it measures the CPU time of this process and its children.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from .contestants import open_contestant
from .task import Task

SHAPE = (3, 224, 224)


def main() -> None:
    name, task = sys.argv[1], Task.from_json(sys.argv[2])
    # Libraries print to the standard output, too.
    answers, sys.stdout = sys.stdout, sys.stderr
    settings, epoch = open_contestant(name, task)
    print(json.dumps({"settings": settings}), file=answers, flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        samples, labels = 0, 0
        for x, y in epoch():
            check_batch(x, y)
            samples += len(x)
            labels += int(y.sum())
        seconds = time.perf_counter() - started
        print(json.dumps({"samples": samples, "labels": labels, "seconds": seconds}), file=answers, flush=True)


def check_batch(x: Any, y: Any) -> None:
    """Raises `ValueError` unless the batch has what all contestants deliver."""
    found = f"{x.dtype} {list(x.shape)} and {y.dtype} {list(y.shape)}"
    if str(x.dtype) != "torch.float32" or tuple(x.shape[1:]) != SHAPE or str(y.dtype) != "torch.int64" or len(x) != len(y):
        raise ValueError(f"invalid batch: expected float32 [n, 3, 224, 224] and int64 [n], found {found}")


if __name__ == "__main__":
    main()
