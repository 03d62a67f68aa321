"""tf.data service beside the store: dispatcher and worker in one process, which read, decode and resize for `tfdata`.

The process also registers the dataset, by a name that clients know. That is what lets the worker run Python, whose functions a
graph only names: they have to be in the worker's own process. A worker elsewhere could read objects only by TensorFlow's
own operations, and those for S3 are in tensorflow-io, which ends at TensorFlow 2.17.1.

Samples a second at the client and CPU milliseconds of the service for one; pixels of 256 / 224, store and service on one core,
the client on the other; medians of three rounds in turns, those of the last two rows at another time than the first three:

| threads | 8 | 16 |
|---|---|---|
| a pool of threads reads and decodes (OpenCV and Pillow) a batch | 281, 3.5 | 242, 4.0 |
| threads read, TensorFlow decodes, and resizes what the square needs | 222, 4.9 | 212, 4.7 |
| tensorflow-io 0.37.1 reads, TensorFlow 2.17.1 decodes and resizes so | 210, 4.7 | 196, 4.8 |
| a pool of threads, as above | 250, 3.8 | |
| one call for each sample reads and decodes so | 239, 3.9 | 236, 4.0 |

Torch and TensorFlow do not start in one process, so that the worker cannot decode by torchvision.

Snappy, TensorFlow's own choice between hosts, takes 19 % off pixels of 224 on the wire and 15 % off those of 128, for 0.1 ms
at the client and next to nothing here. The dataset repeats, and says which batch is an epoch's last: otherwise clients hear
of the end once a second only, and epochs take whole seconds. So the service reads ahead across epochs, and keys are listed before
it is ready: both favour it. A sample that fails ends the run.
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
    parser.add_argument("--work", required=True, help="pixels:SHORT:CROP, or bytes; before a model, pixels:256:224")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=8, help="connections at a time (default: %(default)s)")
    parser.add_argument("--decoder", choices=["pillow", "opencv"], default="opencv")
    parser.add_argument("--address", default="127.0.0.1", help="of this side, for clients")
    parser.add_argument("--port", type=int, required=True, help="of the dispatcher; the worker has the next")
    parser.add_argument("--ready-file", type=pathlib.Path, help="written once clients may come")
    return parser.parse_args()


def dataset(options: argparse.Namespace) -> tf.data.Dataset:
    """Batches of names and values, again and again, with a mark on the last of an epoch."""
    work = Work(options.work, options.decoder, None)
    store = from_urllib3.Source(options, work)
    keys = store.list()

    def sample(key: bytes) -> np.ndarray | bytes:
        photo = store.fetch(key.decode())
        return (work.decode(photo) if work.crop else photo)[1]

    def values(keys: np.ndarray) -> np.ndarray:
        made = list(store.pool.map(sample, keys))
        return np.stack(made) if work.crop else np.array(made, object)

    _, spec, _ = tfdata_element.spec(work.crop)

    def batch(at: tf.Tensor, of: tuple) -> tuple:
        names, keys = of
        return names, tf.ensure_shape(tf.numpy_function(values, [keys], spec.dtype), spec.shape), at == last

    names = [key.removeprefix(options.prefix) for key in keys]
    batches = tf.data.Dataset.from_tensor_slices((names, keys)).batch(options.batch_size)
    last = len(batches) - 1
    batches = batches.enumerate().map(batch, num_parallel_calls=2, deterministic=True)
    return batches.repeat().prefetch(prefetch.AHEAD)


def main() -> None:
    options = arguments()
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=options.port))
    at = f"{options.address}:{options.port}"
    worker = service.WorkerServer(
        service.WorkerConfig(at, worker_address=f"{options.address}:{options.port + 1}", port=options.port + 1)
    )
    service.register_dataset(f"grpc://{at}", dataset(options), compression="AUTO", dataset_id=tfdata_element.NAME)
    if options.ready_file:
        options.ready_file.touch()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    worker._stop()
    dispatcher._stop()


if __name__ == "__main__":
    main()
