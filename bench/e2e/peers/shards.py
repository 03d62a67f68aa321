"""Uploads a folder of photos as tar shards for `webdataset`: another layout at rest than one object each.

A shard is one PUT from memory, and its members have the names of the photos. With `--copies` each photo is stored several
times, under `0/`, `1/` and so on. Prints the number of shards and their bytes.
"""

import argparse
import io
import json
import os
import pathlib
import tarfile
from collections.abc import Iterator

import s3


def shard(photos: list[tuple[str, pathlib.Path]]) -> bytes:
    """A tar of these photos, by name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in photos:
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            with path.open("rb") as photo:
                archive.addfile(member, photo)
    return out.getvalue()


def shards(folder: pathlib.Path, copies: int, samples: int) -> Iterator[bytes]:
    """The shards, one at a time."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = [(str(path.relative_to(folder)), path) for path in files]
    if copies > 1:
        named = [(f"{copy}/{name}", path) for copy in range(copies) for name, path in named]
    for start in range(0, len(named), samples):
        yield shard(named[start : start + samples])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--endpoint", default=os.environ.get("AWS_ENDPOINT_URL"), help="the store's URL")
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--prefix", required=True, help="prefix of the shards' keys")
    parser.add_argument("--samples", type=int, default=50, help="photos per shard (default: %(default)s)")
    parser.add_argument("--copies", type=int, default=1, help="copies of each photo (default: %(default)s)")
    options = parser.parse_args()
    client, count, size = s3.client(options.endpoint, 1), 0, 0
    for body in shards(options.folder, options.copies, options.samples):
        client.put_object(Bucket=options.bucket, Key=f"{options.prefix}{count:06d}.tar", Body=body)
        count, size = count + 1, size + len(body)
    print(json.dumps({"shards": count, "bytes": size}))


if __name__ == "__main__":
    main()
