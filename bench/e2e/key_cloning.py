"""Creates many keys at once in a local SeaweedFS: PUTs of a million keys take an hour, longer than all measurements.

SeaweedFS can save the entries of its objects to a file and load such a file. This module loads the entry of one object again
under other names. The clones list and GET like the original, with its size, ETag and time, from the same stored bytes.
Deleting one of them deletes the bytes of all.
"""

import struct
from collections.abc import Sequence

from stack import BUCKET, Stack

# The length of a record, stored before it.
LENGTH = struct.Struct(">I")
# More at a time are no faster.
LOAD_CONCURRENCY = 64


def clone_keys(stack: Stack, folder: str, source: str, clones: Sequence[str]) -> None:
    """Clones the object `source`, alone in its folder, under these names, each as long as `source`."""
    saved, more = stack.folder / "saved.meta", stack.folder / "more.meta"
    stack.run_weed_shell(f"fs.meta.save -o {saved} /buckets/{BUCKET}/{folder}")
    folder_entry, entry = split_records(saved.read_bytes())
    with more.open("wb") as file:
        file.writelines(entry.replace(source.encode(), clone.encode()) for clone in clones)
        # SeaweedFS waits for pending entries before it loads a folder, but not at the end of the file.
        file.write(folder_entry)
    output = stack.run_weed_shell(f"fs.meta.load -v=false -concurrency={LOAD_CONCURRENCY} {more}")
    for file in (saved, more):
        file.unlink()
    if f"total 1 directories, {len(clones)} files" not in output:
        raise OSError(f"loading {len(clones)} keys failed: {output}")


def split_records(saved: bytes) -> list[bytes]:
    """The records of a file of entries, each with its length in front."""
    records, at = [], 0
    while at < len(saved):
        end = at + LENGTH.size + LENGTH.unpack_from(saved, at)[0]
        records.append(saved[at:end])
        at = end
    return records
