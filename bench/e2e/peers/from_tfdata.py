"""`tfdata`: tensors from the tf.data service that `tfdata_server.py` runs next to the store; a model runs on the host.

`--endpoint` is the dispatcher, `grpc://HOST:PORT`. `tfdata_server.py` documents the service and its speed. Value bytes are
those of the unpacked tensors; on the wire they have 15 to 19 % less.
"""

import os
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

import prefetch  # noqa: E402
import tfdata_element  # noqa: E402


class Source:
    def __init__(self, options, work) -> None:
        self.work, self.failures = work, prefetch.Failures()
        self.dataset = tf.data.experimental.service.from_dataset_id(
            "parallel_epochs", options.endpoint, tfdata_element.NAME, tfdata_element.spec(work.crop)
        )
        self.elements: Iterator | None = None
        self.value_bytes = 0
        service = "read, decoded and batched by a worker next to the store, with Snappy, keys listed in advance"
        self.settings = f"tf.data service of TensorFlow {tf.__version__}, {service}"

    def received(self) -> Iterator[tuple]:
        """The batches of an epoch."""
        self.elements = self.elements or self.dataset.as_numpy_iterator()
        for names, values, last in self.elements:
            self.value_bytes += values.nbytes if self.work.crop else sum(map(len, values))
            yield [name.decode() for name in names], values
            if last:
                return

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once."""
        return self.work.finished(self.received())
