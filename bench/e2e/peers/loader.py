"""A peer of the end-to-end benchmark: `loader.py SOURCE` reads all samples for some epochs, and prints figures as JSON."""

import argparse
import importlib
import json
import pathlib

import numpy as np

import measure
from work import Work

SOURCES = ["boto3", "urllib3", "s3torchconnector", "webdataset", "files", "tfdata"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--endpoint", default="", help="URL of the store; for tfdata of its dispatcher, grpc://HOST:PORT")
    parser.add_argument("--bucket", default="")
    parser.add_argument("--prefix", required=True, help="prefix of the objects or shards; for files a folder")
    parser.add_argument("--work", required=True, help="pixels:SHORT:CROP, a model name, or bytes")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--step-ms", type=float, default=0, help="milliseconds that a simulated accelerator takes for a batch")
    parser.add_argument("--threads", type=int, help="concurrent connections; default: the fastest number")
    parser.add_argument("--decoder", choices=["pillow", "opencv", "torchvision"], help="default: the fastest installed")
    parser.add_argument("--models", type=pathlib.Path, help="folder of NAME.onnx and NAME.json")
    parser.add_argument("--trainer", help="tfdata: a name; trainers with names share the values that the service computes")
    parser.add_argument("--samples", type=int, help="tfdata with a name: the samples of an epoch")
    parser.add_argument("--values", type=pathlib.Path, help="write the values of the first epoch, by name, to this .npz")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    work = Work(options.work, options.decoder, options.models, decoded=options.source == "tfdata")
    source = importlib.import_module(f"from_{options.source}").Source(options, work)
    values = {} if options.values else None
    figures = measure.train(source, options.epochs, options.step_ms / 1000, values)
    if options.values:
        np.savez(options.values, **{name: np.frombuffer(v, np.uint8) if isinstance(v, bytes) else v for name, v in values.items()})
    settings = ", ".join(filter(None, [source.settings, work.settings]))
    print(json.dumps({"arm": options.source, "settings": settings} | figures))


if __name__ == "__main__":
    main()
