"""WebDataset as its documentation shows it: `decode("pil")`, a shuffle buffer, and batches made in the workers of a `WebLoader`.

Its own `curl` reads the shards, by URLs that are presigned in advance.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import webdataset

import s3
from torchvision_transform import DESCRIPTION, transform

SHUFFLE_SAMPLES = 1000
# Longer than any run.
VALID_SECONDS = 24 * 3600


class Loader:
    def __init__(self, options) -> None:
        urls = presigned(options.endpoint, webdataset.shardlists.expand_urls(options.url))
        dataset = (
            webdataset.WebDataset(urls, shardshuffle=len(urls))
            .shuffle(SHUFFLE_SAMPLES)
            .decode("pil")
            .to_tuple("jpg", "cls")
            .map_tuple(transform(options.short, options.crop))
            .batched(options.batch_size)
        )
        # Persistent workers: an epoch does not pay for their start.
        self.loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=options.workers, persistent_workers=True)
        shards = f'webdataset {webdataset.__version__}, {len(urls)} tar shards, shuffle({SHUFFLE_SAMPLES}), decode("pil")'
        self.settings = f"{shards}, WebLoader with {options.workers} workers, {DESCRIPTION}"

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once."""
        return iter(self.loader)

    def figures(self) -> dict:
        """It counts no bytes."""
        return {"wire_bytes_up": None, "wire_bytes_down": None}


def presigned(endpoint: str, urls: list[str]) -> list[str]:
    """URLs that `curl` reads."""
    client = s3.client(endpoint, 1)
    places = [urlsplit(url) for url in urls]
    params = [{"Bucket": place.netloc, "Key": place.path[1:]} for place in places]
    return [client.generate_presigned_url("get_object", Params=each, ExpiresIn=VALID_SECONDS) for each in params]
