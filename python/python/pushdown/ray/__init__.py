"""Read a bucket into Ray: a data set for Ray Data, and a loader for the workers of Ray Train.

    import pushdown.ray

    pipeline = "decode | resize(short=256) | center_crop(224) | to_float"
    ds = pushdown.ray.read("s3://photos/train/", pipeline, labels="dir", gateway="http://gw:9900")
    ds.map_batches(embed, num_gpus=1, batch_size=256).write_parquet("s3://out/")

Tasks and workers find credentials in their own environment, as the AWS tools do.
"""

from __future__ import annotations

try:
    import ray.data as _ray_data  # noqa: F401  (an absolute import: Ray, not this package)
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("ray", "pyarrow", "pandas"):
        raise
    raise ImportError(
        f"cannot import pushdown.ray: expected Ray Data, found no module `{error.name}`; run: pip install 'pushdown-client[ray]'",
        name=error.name,
    ) from error

from ._read import read
from ._train import loader

__all__ = ["loader", "read"]
