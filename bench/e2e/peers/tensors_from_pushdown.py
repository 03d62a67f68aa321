"""`pushdown.torch.Loader`: its threads read, decode and stack."""

from collections.abc import Iterator

import pushdown
import pushdown.torch as pt

SEED = 7


class Loader:
    def __init__(self, options) -> None:
        layout = {"labels": options.labels}
        if options.index:
            layout = {"labels": pushdown.Column(options.labels), "index": options.index}
        sampling = pushdown.Sampling(tail="short")
        if options.buffer:
            sampling = pushdown.Sampling(tail="short", order="shards", buffer=options.buffer)
        self.loader = pt.Loader(
            options.url,
            options.pipeline,
            store=pushdown.Store(endpoint=options.endpoint),
            mode=options.mode,
            batch_size=options.batch_size,
            sampling=sampling,
            seed=SEED,
            **layout,
        )
        order = f', order="shards", buffer={options.buffer}' if options.buffer else ""
        self.settings = f'`pushdown.torch.Loader` {pushdown.__version__}, mode="{options.mode}"{order}, {options.workers} threads'

    def epoch(self) -> Iterator[tuple]:
        """Batches with each sample once."""
        return iter(self.loader)

    def figures(self) -> dict:
        """What the loader counted in the last epoch."""
        stats = self.loader.stats
        return {
            "value_bytes": stats.value_bytes,
            "stored_bytes": stats.stored_bytes,
            "wire_bytes_up": stats.wire_bytes_up,
            "wire_bytes_down": stats.wire_bytes_down,
        }
