"""A peer of `pushdown materialize`: `materialize.py METHOD` makes all photos of a prefix smaller, and writes them as shards.

Prints figures as JSON. CPU seconds and the time are those of listing, reading, resizing and writing, without imports and the first
photo: a large data set amortizes these. All methods have a process per core that resizes.
"""

import argparse
import contextlib
import functools
import io
import itertools
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import measure
import prefetch
import resizers
import s3

CORES = len(os.sched_getaffinity(0))
# Threads of a process that read.
THREADS = 4
METHODS = {
    "webdataset": resizers.simplejpeg,
    "webdataset-scaled": resizers.simplejpeg,
    "img2dataset": resizers.img2dataset,
    "litdata": resizers.torchvision,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--endpoint", required=True, help="URL of the store")
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--prefix", required=True, help="prefix of the photos' keys")
    parser.add_argument("--target", required=True, help="prefix of the shards' keys")
    parser.add_argument("--short", type=int, required=True, help="short side in pixels")
    parser.add_argument("--quality", type=int, required=True, help="JPEG quality")
    parser.add_argument("--min-short", type=int, default=0, help="webdataset-scaled: least short side after decoding, in pixels")
    parser.add_argument("--shard-samples", type=int, default=256, help="photos per shard (default: %(default)s)")
    return parser.parse_args()


def write_shards(options: argparse.Namespace, resize: resizers.Resizer, keys: list[str], worker: int) -> tuple[int, int, int]:
    """Writes the photos of these keys as tar shards: threads read, this one resizes, and a shard is one PUT from memory.

    Returns samples, failed samples and the bytes of all photos."""
    import webdataset

    client, failures = s3.client(options.endpoint, THREADS), prefetch.Failures()

    def read(key: str) -> tuple[str, bytes]:
        return key, client.get_object(Bucket=options.bucket, Key=key)["Body"].read()

    def resized(photo: tuple[str, bytes]) -> tuple[str, bytes]:
        key, data = photo
        return key.removeprefix(options.prefix).rsplit(".", 1)[0], resize(data)

    samples = value_bytes = 0
    with ThreadPoolExecutor(THREADS) as pool:
        photos = map(failures.guard(resized), prefetch.ordered(pool, failures.guard(read), keys, 2 * THREADS))
        photos = (photo for photo in photos if photo is not None)
        for number in itertools.count():
            if not (shard := list(itertools.islice(photos, options.shard_samples))):
                return samples, failures.count, value_bytes
            out = io.BytesIO()
            with webdataset.TarWriter(out) as writer:
                for name, photo in shard:
                    writer.write({"__key__": name, "jpg": photo})
            client.put_object(Bucket=options.bucket, Key=f"{options.target}{worker:03}-{number:06}.tar", Body=out.getvalue())
            samples, value_bytes = samples + len(shard), value_bytes + sum(len(photo) for _, photo in shard)


def by_workers(options: argparse.Namespace, resize: resizers.Resizer, keys: list[str]) -> tuple[int, int, int]:
    """Writes shards by a process per core."""
    if CORES == 1:
        return write_shards(options, resize, keys, 0)
    parts = [(options, resize, keys[worker::CORES], worker) for worker in range(CORES)]
    with multiprocessing.get_context("fork").Pool(CORES) as pool:
        done = pool.starmap(write_shards, parts)
        pool.close()
        pool.join()
    samples, failed, value_bytes = map(sum, zip(*done, strict=True))
    return samples, failed, value_bytes


def smaller_file(resize: resizers.Resizer, path: str) -> bytes:
    """The value of a sample of litData, whose own processes have read the photo into a file."""
    with open(path, "rb") as photo:
        return resize(photo.read())


def by_litdata(options: argparse.Namespace, resize: resizers.Resizer, keys: list[str]) -> tuple[int, int, int]:
    """Writes chunks of litData by `optimize`, as its documentation shows it for data in a bucket."""
    import litdata
    from litdata.streaming import downloader

    # Its settings of boto3; the environment has the keys. It has none for a store without TLS.
    os.environ["AWS_ENDPOINT_URL"] = options.endpoint
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    root = f"s3://{options.bucket}/"
    litdata.optimize(
        functools.partial(smaller_file, resize),
        inputs=[f"{root}{key}" for key in keys],
        input_dir=f"{root}{options.prefix}".rstrip("/"),
        output_dir=f"{root}{options.target}".rstrip("/"),
        chunk_size=options.shard_samples,
        num_workers=CORES,
        # Workers that are forked need not import torch again.
        start_method="fork",
        verbose=False,
    )
    for process in multiprocessing.active_children():
        process.join()
    client = s3.client(options.endpoint, 1)
    index = json.load(client.get_object(Bucket=options.bucket, Key=f"{options.target}index.json")["Body"])
    samples = sum(chunk["chunk_size"] for chunk in index["chunks"])
    return samples, len(keys) - samples, sum(chunk["chunk_bytes"] for chunk in index["chunks"])


def settings(options: argparse.Namespace, resizer: str) -> str:
    """What runs."""
    import importlib.metadata

    version = importlib.metadata.version
    if options.method == "litdata":
        return f"`optimize` of litData {version('litdata')}, {CORES} workers by fork, its own reading and writing; {resizer}"
    written = f"`TarWriter` of webdataset {version('webdataset')}"
    return f"boto3 {s3.VERSION} with {THREADS} threads in each of {CORES} processes; {resizer}; {written}"


def main() -> None:
    options = arguments()
    min_short = options.min_short if options.method == "webdataset-scaled" else 0
    resize, resizer = METHODS[options.method](options.short, options.quality, min_short)
    client = s3.client(options.endpoint, 1)
    first = s3.keys(client, options.bucket, options.prefix)[0]
    resize(client.get_object(Bucket=options.bucket, Key=first)["Body"].read())
    described = settings(options, resizer)
    write = by_litdata if options.method == "litdata" else by_workers
    cpu, started = measure.cpu_seconds(), time.perf_counter()
    # litData prints.
    with contextlib.redirect_stdout(sys.stderr):
        samples, errors, value_bytes = write(options, resize, s3.keys(client, options.bucket, options.prefix))
    figures = {
        "samples": samples,
        "errors": errors,
        "epoch_seconds": [time.perf_counter() - started],
        "cpu_seconds": measure.cpu_seconds() - cpu,
        "value_bytes": value_bytes,
        "peak_bytes": measure.peak_bytes(),
    }
    print(json.dumps({"arm": options.method, "settings": described} | figures))


if __name__ == "__main__":
    main()
