"""`boto3`: threads that call `get_object`.

Samples per second (best of four rounds) and CPU milliseconds per sample (median); pixels of 256 / 224 by torchvision, everything
on one core:

| threads | 4 | 8 | 16 | 32 |
|---|---|---|---|---|
| | 325, 3.3 | 341, 3.3 | 317, 3.3 | 337, 3.5 |

The number of threads hardly matters: 1.1 ms is boto3's own Python code. With OpenCV and Pillow 8 threads reach 297, 3.5.
"""

import s3
from objects import Objects


class Source(Objects):
    threads = 8

    def __init__(self, options, work) -> None:
        super().__init__(options, work)
        self.client = s3.client(options.endpoint, self.threads)
        self.settings = f"boto3 {s3.VERSION}, {self.threads} threads and connections"

    def list(self) -> list[str]:
        return s3.keys(self.client, self.options.bucket, self.options.prefix)

    def read(self, key: str) -> tuple[str, bytes]:
        return key, self.client.get_object(Bucket=self.options.bucket, Key=key)["Body"].read()
