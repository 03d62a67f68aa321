"""CPU time of a resume at 1,000,000 objects: `python -m loaders.resume` prints the seconds of each round as JSON.

A round loads a saved object list, makes a reader over it, and loads a state from the middle of an epoch. Nothing is read, so no
store is needed.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import pushdown

OBJECTS, ROUNDS = 1_000_000, 7


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="pushdown-resume-") as folder:
        file = Path(folder) / "objects.arrow"
        keys = [f"train/n{index // 1300:08}/ILSVRC2012_train_{index:08}.JPEG" for index in range(OBJECTS)]
        pushdown.Objects.from_keys("imagenet", keys).save(file)
        with reader_of(file) as reader:
            state = reader.state_dict() | {"position": OBJECTS // 2}
        print(json.dumps({"seconds": [resume_cost(file, state) for _ in range(ROUNDS)]}))


def reader_of(file: Path) -> pushdown.Reader:
    """A reader over a saved list, whose store nobody asks."""
    objects = pushdown.Objects.load(file)
    keys = pushdown.Credentials("no-access-key", "no-secret-key")
    store = pushdown.Store(endpoint="http://127.0.0.1:9", credentials=keys)
    return pushdown.Reader(objects, "decode | resize(8, 8)", store=store, seed=7)


def resume_cost(file: Path, state: dict[str, Any]) -> float:
    """CPU seconds of the process, with all of its threads."""
    before = time.process_time()
    with reader_of(file) as reader:
        reader.load_state_dict(state)
        return time.process_time() - before


if __name__ == "__main__":
    main()
