"""`auto` of the Python package: `python_reader.py SOURCE` reads all samples for some epochs, and prints figures as JSON."""

import argparse
import json
import sys
from collections.abc import Iterator

import pushdown

import measure
import prefetch


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="s3://BUCKET/PREFIX")
    parser.add_argument("--endpoint", required=True, help="URL of the gateway")
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--models", help="folder of NAME.onnx and NAME.json")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--step-ms", type=float, default=0, help="milliseconds that a simulated accelerator takes for a batch")
    return parser.parse_args()


class Source:
    """All samples in each epoch, by one reader."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.reader = pushdown.Reader(
            options.source,
            options.pipeline,
            store=pushdown.Store(endpoint=options.endpoint),
            batch_size=options.batch_size,
            plan=pushdown.Plan(models=options.models),
            mode="auto",
            on_error="report",
        )
        self.failures = prefetch.Failures()
        self.value_bytes = self.stored_bytes = self.wire_bytes_down = self.wire_bytes_up = 0
        self.last_epoch_cpu_seconds = 0.0

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once."""
        started = measure.cpu_seconds()
        for batch in self.reader:
            self.failures.count += len(batch.errors)
            yield batch.keys, batch.x
        stats = self.reader.stats
        self.value_bytes += stats.value_bytes
        self.stored_bytes += stats.stored_bytes
        self.wire_bytes_down += stats.wire_bytes_down
        self.wire_bytes_up += stats.wire_bytes_up
        self.last_epoch_cpu_seconds = measure.cpu_seconds() - started


def main() -> None:
    options = arguments()
    source = Source(options)
    figures = measure.train(source, options.epochs, options.step_ms / 1000)
    figures |= {name: getattr(source, name) for name in ("stored_bytes", "wire_bytes_down", "wire_bytes_up")}
    figures["last_epoch"] = {"cpu_seconds": source.last_epoch_cpu_seconds}
    if source.reader.plan:
        print(source.reader.plan, file=sys.stderr)
    print(json.dumps({"arm": "auto-python", "settings": f"`pushdown.Reader` {pushdown.__version__} from the gateway"} | figures))


if __name__ == "__main__":
    main()
