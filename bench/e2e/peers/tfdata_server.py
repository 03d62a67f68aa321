"""tf.data service next to the store: dispatcher and worker in one process, which read, decode and resize for `tfdata`.

The process also registers the dataset under a fixed name. This lets the worker run Python: a graph only refers to Python
functions, so they have to exist in the worker's process. A separate worker could only use TensorFlow's own operations, and
those for S3 are in tensorflow-io, whose last supported version is TensorFlow 2.17.1.

Samples per second at the client and CPU milliseconds of the service per sample; pixels of 256 / 224, store and service on one
core, the client on the other; medians of three alternating rounds. The last two rows were measured separately:

| threads | 8 | 16 |
|---|---|---|
| a thread pool reads and decodes (OpenCV and Pillow) a batch | 281, 3.5 | 242, 4.0 |
| threads read, TensorFlow decodes, and resizes only the square | 222, 4.9 | 212, 4.7 |
| tensorflow-io 0.37.1 reads, TensorFlow 2.17.1 decodes and resizes the square | 210, 4.7 | 196, 4.8 |
| a thread pool, as in the first row | 250, 3.8 | |
| one call per sample reads and decodes the same | 239, 3.9 | 236, 4.0 |

Torch and TensorFlow do not start in one process, so the worker cannot decode with torchvision.

Snappy, TensorFlow's default between hosts, saves 19 % of the wire bytes for pixels of 224 and 15 % for 128, for 0.1 ms at the
client and almost nothing at the service. The dataset repeats and marks the last batch of an epoch: otherwise clients learn of
the end only once per second. The service therefore prefetches across epochs, and lists keys before it is ready: both favour
it. A failed sample ends the run.
"""

import argparse
import os
import pathlib
import signal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import from_urllib3  # noqa: E402
import prefetch  # noqa: E402
import tfdata_element  # noqa: E402
from work import Work  # noqa: E402

service = tf.data.experimental.service


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True, help="the store's URL")
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--work", required=True, help="pixels:SHORT:CROP, or bytes; pixels:256:224 for a model")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=8, help="concurrent connections (default: %(default)s)")
    parser.add_argument("--decoder", choices=["pillow", "opencv"], default="opencv")
    parser.add_argument("--address", default="127.0.0.1", help="address for clients")
    parser.add_argument("--port", type=int, required=True, help="port of the dispatcher; the worker uses the next one")
    parser.add_argument("--ready-file", type=pathlib.Path, help="created when the service is ready")
    return parser.parse_args()


def dataset(options: argparse.Namespace) -> tf.data.Dataset:
    """Batches of names and values, repeated forever, with a mark on the last of an epoch."""
    work = Work(options.work, options.decoder, None)
    store = from_urllib3.Source(options, work)
    keys = store.list()

    def sample(key: bytes) -> np.ndarray | bytes:
        photo = store.fetch(key.decode())
        return (work.decode(photo) if work.crop else photo)[1]

    def values(keys: np.ndarray) -> np.ndarray:
        decoded = list(store.pool.map(sample, keys))
        return np.stack(decoded) if work.crop else np.array(decoded, object)

    _, spec, _ = tfdata_element.spec(work.crop)

    def batch(index: tf.Tensor, element: tuple) -> tuple:
        names, keys = element
        return names, tf.ensure_shape(tf.numpy_function(values, [keys], spec.dtype), spec.shape), index == last

    names = [key.removeprefix(options.prefix) for key in keys]
    batches = tf.data.Dataset.from_tensor_slices((names, keys)).batch(options.batch_size)
    last = len(batches) - 1
    batches = batches.enumerate().map(batch, num_parallel_calls=2, deterministic=True)
    return batches.repeat().prefetch(prefetch.AHEAD)


def main() -> None:
    options = arguments()
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=options.port))
    address = f"{options.address}:{options.port}"
    worker = service.WorkerServer(
        service.WorkerConfig(address, worker_address=f"{options.address}:{options.port + 1}", port=options.port + 1)
    )
    service.register_dataset(f"grpc://{address}", dataset(options), compression="AUTO", dataset_id=tfdata_element.NAME)
    if options.ready_file:
        options.ready_file.touch()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    worker._stop()
    dispatcher._stop()


if __name__ == "__main__":
    main()
