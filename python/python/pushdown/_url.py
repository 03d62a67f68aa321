"""`s3://bucket/key`. Keys are used as written: nothing is percent-decoded, and `//`, `?` and `#` are part of the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .errors import ConfigError

__all__ = ["Location", "parse_url", "parse_urls"]


class Location(NamedTuple):
    """A bucket, and a key or a prefix in it. The prefix may be empty."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def parse_url(url: str) -> Location:
    """Parses `s3://bucket/key`. Raises `ConfigError`."""
    scheme, separator, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not separator or not bucket:
        raise ConfigError(f"invalid URL: expected s3://bucket/key, found `{url}`")
    return Location(bucket, key)


def parse_urls(urls: Sequence[str]) -> tuple[str, list[str]]:
    """The bucket of all `urls`, and their keys in order. Raises `ConfigError` for no URLs and for several buckets."""
    if not urls:
        raise ConfigError("invalid list of objects: expected at least one URL, found none")
    bucket = parse_url(urls[0]).bucket
    keys = []
    for url in urls:
        location = parse_url(url)
        if location.bucket != bucket:
            raise ConfigError(
                f"invalid list of objects: expected the bucket `{bucket}` of the first URL, found `{url}`: "
                "use one reader per bucket"
            )
        keys.append(location.key)
    return bucket, keys
