"""litData's `StreamingRawDataset`, with uvloop and obstore as its documentation recommends."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import boto3
from litdata import StreamingRawDataset
from litdata.raw import FileMetadata
from litdata.raw.indexer import BaseIndexer
from litdata.streaming import downloader

from ..task import Task
from . import Epoch
from .data_loader import open_map
from .decoding import decoder


class Listing(BaseIndexer):
    """Lists the photos with boto3. The indexer of litData needs s3fs, which pins another boto3."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def build_or_load_index(self, *_arguments: Any) -> list[FileMetadata]:
        """The photos, without an index in the bucket: an epoch does not pay for the listing."""
        return self.discover_files("", None)

    def discover_files(self, _input_dir: str, _options: dict[str, Any] | None) -> list[FileMetadata]:
        """The photos in the order of their keys."""
        client = boto3.client("s3", endpoint_url=self.task.endpoint, region_name=self.task.region)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=self.task.bucket, Prefix=self.task.prefix)
        entries = [entry for page in pages for entry in page["Contents"]]
        return [FileMetadata(f"s3://{self.task.bucket}/{entry['Key']}", entry["Size"]) for entry in entries]


class Labelled(StreamingRawDataset):  # type: ignore[misc]
    """Adds the label of each photo."""

    def __init__(self, task: Task, decoding: str) -> None:
        super().__init__(
            task.url,
            cache_dir=f"{task.scratch}/litdata",
            indexer=Listing(task),
            storage_options={"endpoint_url": task.endpoint, "region_name": task.region},
            transform=decoder(decoding),
        )
        self.labels = [task.label(file.path) for file in self.files]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, int]]:
        values = super().__getitems__(list(indices))
        return [(value, self.labels[index]) for index, value in zip(indices, values, strict=True)]


# litData has no setting for a store without TLS.
downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True


def epochs(task: Task, decoding: str) -> tuple[str, Epoch]:
    versions = {name: importlib.metadata.version(name) for name in ("litdata", "obstore", "uvloop")}
    name = f"StreamingRawDataset of litdata {versions['litdata']}, obstore {versions['obstore']}, uvloop {versions['uvloop']}"
    return open_map(name, Labelled(task, decoding), task, decoding)
