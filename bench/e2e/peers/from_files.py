"""`files`: the same work on files of a local folder, which is the prefix. No loader that reads from a store is faster.

Samples per second with 1, 2, 4 and 8 reading threads, pixels of 256 / 224 by torchvision, everything on one core: 619, 595, 541,
400.
"""

import pathlib

from objects import Objects


class Source(Objects):
    threads = 1

    def __init__(self, options, work) -> None:
        super().__init__(options, work)
        self.folder = pathlib.Path(options.prefix)
        options.prefix = f"{self.folder}/"
        self.settings = f"files, {self.threads} threads"

    def list(self) -> list[str]:
        return sorted(str(path) for path in self.folder.rglob("*") if path.is_file())

    def read(self, key: str) -> tuple[str, bytes]:
        return key, pathlib.Path(key).read_bytes()
