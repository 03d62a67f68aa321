"""Writes features of a frozen model to Parquet, with Ray Data. The gateway runs the model, so that features travel and photos do not.

    python features.py --data s3://photos/train/ --out features/ --gateway http://gw:9900
"""

from __future__ import annotations

import argparse

import pushdown.ray

MODEL = "efficientnet_lite0"
PIPELINE = (
    f"decode | resize(short=256) | center_crop(224) | to_float | normalize(model={MODEL}) "
    f"| model({MODEL}, until=features) | cast(f16)"
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write features of photos in folders by class to Parquet.")
    parser.add_argument("--data", required=True, help="photos, one folder per class: s3://BUCKET/PREFIX/")
    parser.add_argument("--out", required=True, help="folder or s3://BUCKET/PREFIX/ of the Parquet files")
    parser.add_argument("--gateway", help="URL of the gateway (default: PUSHDOWN_GATEWAY_URL)")
    parser.add_argument("--pipeline", default=PIPELINE, help="default: %(default)s")
    parser.add_argument("--tasks", type=int, help="most tasks at a time (default: as many as there are CPUs)")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    ds = pushdown.ray.read(
        options.data,
        options.pipeline,
        labels="dir",
        on_error="report",
        gateway=options.gateway,
        num_cpus=0.25,  # A task waits for the gateway most of the time.
        concurrency=options.tasks,
    )
    ds.write_parquet(options.out)
    print(f"wrote {ds.count():,} samples to {options.out}")


if __name__ == "__main__":
    main()
