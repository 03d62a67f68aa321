"""boto3 in its fastest configuration: a client, and the keys under a prefix.

Without parameter validation and response checksums a GET of 107 KB takes 1.1 ms of CPU instead of 1.2 to 2.2.
"""

import os

import boto3
from botocore.config import Config

VERSION = boto3.__version__
REGION = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", "us-east-1")


def client(endpoint: str, connections: int):
    """A client with this many persistent connections and the credentials of the environment."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        config=Config(
            s3={"addressing_style": "path"},
            signature_version="s3v4",
            max_pool_connections=connections,
            parameter_validation=False,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            tcp_keepalive=True,
        ),
    )


def keys(client, bucket: str, prefix: str) -> list[str]:
    """All keys under the prefix, in the store's order."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]
