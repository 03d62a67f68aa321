"""Shards for tests, as other tools write them: with Python's tarfile and zipfile, and with names of WebDataset."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import tarfile
import zipfile
from typing import Any

CLASSES = ["exif", "other"]
# Longer than a name in a plain header of a tar.
FOLDER = "folder/" * 15
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def tar_of(files: dict[str, bytes], format: str) -> bytes:
    """A tar of these files; one in the format pax also has a record of its own for each file."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=FORMATS[format]) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if format == "pax":
                info.pax_headers = {"comment": "é" * 300}
            archive.addfile(info, io.BytesIO(content))
    return body.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    """A zip of these files without compression."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return body.getvalue()


def files_of(s3: Any, folder: str) -> dict[str, bytes]:
    """Three members for each photo of the bucket `photos`: itself, its class as a number, and its class and key as JSON."""
    files = {}
    for number, entry in enumerate(s3.list_objects_v2(Bucket="photos", Prefix="train/")["Contents"]):
        key = entry["Key"]
        _, kind, name = key.split("/")
        base = f"{folder}{kind}/{number:06}"
        document = {"label": kind, "meta": {"number": number, "key": key}}
        body = s3.get_object(Bucket="photos", Key=key)["Body"].read()
        files[f"{base}.{name.rpartition('.')[2]}"] = body
        files[f"{base}.cls"] = f"{CLASSES.index(kind)}\n".encode()
        files[f"{base}.json"] = json.dumps(document).encode()
    return files


def put_compressed(s3: Any, bucket: str, pattern: str, suffix: str) -> str:
    """Stores compressed copies of the tars of a pattern of `put_shards`, as `.gz` or `.zst`. Returns their pattern."""
    folder, _, _ = pattern.removeprefix(f"s3://{bucket}/").partition("{")
    for entry in s3.list_objects_v2(Bucket=bucket, Prefix=folder)["Contents"]:
        if entry["Key"].endswith(".tar"):
            body = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
            s3.put_object(Bucket=bucket, Key=f"{entry['Key']}{suffix}", Body=compress(body, suffix))
    return f"{pattern}{suffix}"


def compress(body: bytes, suffix: str) -> bytes:
    """The body in the format of this suffix."""
    if suffix == ".gz":
        return gzip.compress(body)
    arrow: Any = importlib.import_module("pyarrow")
    compressed: bytes = arrow.compress(body, codec="zstd", asbytes=True)
    return compressed


def put_shards(s3: Any, bucket: str, prefix: str, files: dict[str, bytes], format: str, count: int) -> str:
    """Stores the files in `count` shards, the files of a sample in one of them. Returns their pattern."""
    bases = sorted({name.rpartition(".")[0] for name in files})
    suffix = "zip" if format == "zip" else "tar"
    for shard in range(count):
        chosen = set(bases[shard::count])
        part = {name: content for name, content in files.items() if name.rpartition(".")[0] in chosen}
        body = zip_of(part) if format == "zip" else tar_of(part, format)
        s3.put_object(Bucket=bucket, Key=f"{prefix}{shard:03}.{suffix}", Body=body)
    return f"s3://{bucket}/{prefix}{{000..{count - 1:03}}}.{suffix}"
