"""Uploads a folder of photos as tar shards for `webdataset`: another layout than one object each.

A shard is one PUT from memory, and its members have the names of the photos. With `--copies` each photo is stored several
times, under `0/`, `1/` and so on; with `--classes` a member NAME.cls with the photo's number modulo the classes follows each photo.
Prints the number of shards and their bytes.
"""

import argparse
import io
import json
import os
import pathlib
import tarfile
from collections.abc import Iterable, Iterator

import s3


def shard(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A tar of these members, by name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def members(photos: list[tuple[str, pathlib.Path]], first: int, classes: int) -> Iterator[tuple[str, bytes]]:
    """The members of a shard whose first photo has this number; with classes, a photo's class follows it."""
    for number, (name, path) in enumerate(photos, first):
        yield name, path.read_bytes()
        if classes:
            yield f"{name.rsplit('.', 1)[0]}.cls", str(number % classes).encode()


def shards(folder: pathlib.Path, copies: int, samples: int, classes: int) -> Iterator[bytes]:
    """The shards, one at a time."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = [(str(path.relative_to(folder)), path) for path in files]
    if copies > 1:
        named = [(f"{copy}/{name}", path) for copy in range(copies) for name, path in named]
    for start in range(0, len(named), samples):
        yield shard(members(named[start : start + samples], start, classes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--endpoint", default=os.environ.get("AWS_ENDPOINT_URL"), help="the store's URL")
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--prefix", required=True, help="prefix of the shards' keys")
    parser.add_argument("--samples", type=int, default=50, help="photos per shard (default: %(default)s)")
    parser.add_argument("--copies", type=int, default=1, help="copies of each photo (default: %(default)s)")
    parser.add_argument("--classes", type=int, default=0, help="classes of the photos (default: none)")
    options = parser.parse_args()
    client, count, size = s3.client(options.endpoint, 1), 0, 0
    for body in shards(options.folder, options.copies, options.samples, options.classes):
        client.put_object(Bucket=options.bucket, Key=f"{options.prefix}{count:06d}.tar", Body=body)
        count, size = count + 1, size + len(body)
    print(json.dumps({"shards": count, "bytes": size}))


if __name__ == "__main__":
    main()
