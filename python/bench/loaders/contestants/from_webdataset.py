"""WebDataset: `decode("pil")` on tar shards, which its own `curl` reads from presigned URLs, and batches made in the workers."""

from __future__ import annotations

import boto3
import webdataset
from botocore.config import Config

from ..task import Task
from . import Epoch
from .data_loader import describe_workers
from .decoding import describe, pillow_transform

SHUFFLE_SAMPLES = 1000
# Longer than any run.
VALID_SECONDS = 24 * 3600


def epochs(task: Task, decoding: str) -> tuple[str, Epoch]:
    urls = shard_urls(task)
    dataset = (
        webdataset.WebDataset(urls, shardshuffle=len(urls))
        .shuffle(SHUFFLE_SAMPLES)
        .decode("pil")
        .to_tuple("jpg", "__key__")
        # A member is named CLASS/NUMBER.jpg; its key has no extension.
        .map_tuple(pillow_transform(), task.label)
        .batched(task.batch_size)
    )
    loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=task.cores, persistent_workers=True)
    name = f"webdataset {webdataset.__version__}, {len(urls)} tar shards, shuffle({SHUFFLE_SAMPLES})"
    return f"{name}, {describe_workers(task)}, {describe(decoding)}", lambda: iter(loader)


def shard_urls(task: Task) -> list[str]:
    """Presigned URLs of the shards."""
    client = boto3.client(
        "s3",
        endpoint_url=task.endpoint,
        region_name=task.region,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=task.bucket, Prefix=task.shards)
    keys = [entry["Key"] for page in pages for entry in page["Contents"]]
    sign = lambda key: client.generate_presigned_url(
        "get_object", Params={"Bucket": task.bucket, "Key": key}, ExpiresIn=VALID_SECONDS
    )
    return [sign(key) for key in keys]
