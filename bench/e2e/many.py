"""Many keys at once, in a store that was started here: an hour of PUTs for a million of them is longer than all that is measured.

SeaweedFS saves what it knows of objects, their entries, to a file, and loads such a file. The entry of one object that was PUT is
loaded again under other names: all list and GET as that one does, with its size, ETag and time, from the same stored bytes. So none
of them is to be deleted while others are needed: its bytes would go with it.
"""

import struct
from collections.abc import Sequence

from stack import BUCKET, Stack

# How long a record is, before each of them.
LENGTH = struct.Struct(">I")
# So many are loaded at a time: more are no faster.
AT_A_TIME = 64


def names(stack: Stack, folder: str, one: str, others: Sequence[str]) -> None:
    """Gives the object of that name, alone in its folder, all these others, which are as long."""
    saved, more = stack.folder / "saved.meta", stack.folder / "more.meta"
    stack.weed(f"fs.meta.save -o {saved} /buckets/{BUCKET}/{folder}")
    itself, entry = records(saved.read_bytes())
    with more.open("wb") as file:
        file.writelines(entry.replace(one.encode(), other.encode()) for other in others)
        # Only before it loads a folder does it wait for what is on its way, not at the end.
        file.write(itself)
    said = stack.weed(f"fs.meta.load -v=false -concurrency={AT_A_TIME} {more}")
    for file in (saved, more):
        file.unlink()
    if f"total 1 directories, {len(others)} files" not in said:
        raise OSError(f"{len(others)} keys were to be loaded: {said}")


def records(saved: bytes) -> list[bytes]:
    """A file of entries, one by one, each with its length before it."""
    found, at = [], 0
    while at < len(saved):
        end = at + LENGTH.size + LENGTH.unpack_from(saved, at)[0]
        found.append(saved[at:end])
        at = end
    return found
