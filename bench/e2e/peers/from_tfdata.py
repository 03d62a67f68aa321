"""`tfdata`: tensors from the tf.data service that `tfdata_server.py` runs next to the store; a model runs on the host.

`--endpoint` is the dispatcher, `grpc://HOST:PORT`. `tfdata_server.py` documents the service and its speed. Value bytes are
those of the unpacked tensors; on the wire they have 15 to 19 % less.

Trainers with names share one job: the worker caches a window of its batches, from which each trainer reads at its own pace. A
trainer that begins late or falls behind skips batches, and its epoch does not begin with the service's. Its epoch is therefore a
number of samples, not each sample once.
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
        self.samples = options.samples if options.trainer else None
        cache = tf.data.experimental.service.CrossTrainerCache(options.trainer) if options.trainer else None
        self.dataset = tf.data.experimental.service.from_dataset_id(
            "parallel_epochs",
            options.endpoint,
            tfdata_element.NAME,
            tfdata_element.spec(work.crop),
            job_name="shared" if options.trainer else None,
            cross_trainer_cache=cache,
        )
        self.elements: Iterator | None = None
        self.value_bytes = 0
        service = "read, decoded and batched by a worker next to the store, with Snappy, keys listed in advance"
        shared = ", one window of values for all trainers" if options.trainer else ""
        self.settings = f"tf.data service of TensorFlow {tf.__version__}, {service}{shared}"

    def received(self) -> Iterator[tuple]:
        """The batches of an epoch."""
        self.elements = self.elements or self.dataset.as_numpy_iterator()
        samples = 0
        for names, values, last in self.elements:
            self.value_bytes += values.nbytes if self.work.crop else sum(map(len, values))
            samples += len(names)
            yield [name.decode() for name in names], values
            if last if self.samples is None else samples >= self.samples:
                return

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once."""
        return self.work.finished(self.received())
