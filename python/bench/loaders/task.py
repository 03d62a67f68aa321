"""What every contestant reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

REGION = "us-east-1"
CLASSES = 10


def layout(samples: int) -> list[str]:
    """The names of the photos: folders by class, in turn."""
    return [f"class{index % CLASSES:02}/{index:06}.jpg" for index in range(samples)]


@dataclass(frozen=True)
class Task:
    """The same photos in a bucket, in tar shards in that bucket, and on the local disk, in folders by class."""

    endpoint: str
    bucket: str
    prefix: str
    """Prefix of the photos' keys. It ends with a slash, and the name of the class follows."""
    shards: str
    """Prefix of the keys of tar shards."""
    folder: str
    """Folder on the local disk with a folder per class."""
    scratch: str
    """Folder for files of contestants."""
    classes: tuple[str, ...]
    samples: int
    batch_size: int
    cores: int
    region: str = REGION
    gateway: str | None = None
    """URL of a gateway beside the store. Without one, all steps run on this host."""

    @property
    def url(self) -> str:
        """The photos in the bucket."""
        return f"s3://{self.bucket}/{self.prefix}"

    @property
    def urls(self) -> list[str]:
        """Each photo in the bucket."""
        return [f"{self.url}{name}" for name in layout(self.samples)]

    def label(self, key: str) -> int:
        """The index of the class of a key: of its last folder."""
        return self.classes.index(key.split("/")[-2])

    def to_json(self) -> str:
        """The task as one line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task of a text."""
        values = json.loads(text)
        return cls(**values | {"classes": tuple(values["classes"])})
