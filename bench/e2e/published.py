"""Published results of others, for orientation: HAPI over links of nine bandwidths.

HAPI (Petrescu et al., *Accelerating Transfer Learning with Near-Data Computation on Cloud Object Stores*, SoCC 2024,
https://arxiv.org/abs/2210.08650v3) also splits the frozen layers of transfer learning between store and trainer. The seconds
are from the logs in its authors' repository, https://github.com/aguirguis/collabml_client, folder
`application_layer/logs/bw_exp_imagenet`, commit 884761c8777e00173291f53ec861aee144e9bb2e: one run each, AlexNet frozen up to
layer 17, 32,000 photos of ImageNet in batches of 8,000, one GPU at the store and two in the trainer. The paper plots them
without numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from . import text

# MiB of a batch of plain reading, as precomputed tensors, and the number of batches.
BATCH_MIB, BATCHES = 1232.6, 4
# The x axis of the speedup plot.
X_LABEL = "link, in multiples of the crossover"
COLUMNS = ["HAPI's link", "of its crossover", "plain, photos", "plain, tensors", "HAPI", "rate of HAPI to the faster"]


@dataclass(frozen=True)
class Run:
    """Seconds for 32,000 photos over a link: plain reading of photos, plain reading of precomputed tensors, and HAPI, which reads
    those tensors at the store."""

    bits: float
    photos: float
    tensors: float
    hapi: float

    @property
    def speedup(self) -> float:
        """The rate of HAPI to the faster plain method."""
        return min(self.photos, self.tensors) / self.hapi

    @property
    def x(self) -> float:
        """The link as a multiple of its crossover, at which plain reading just saturates the trainer."""
        return self.bits / (BATCH_MIB * BATCHES * 2**23 / WIDEST.tensors)


RUNS = (
    Run(51_200e3, 905.05, 994.35, 107.73),
    Run(102_400e3, 544.35, 569.89, 64.09),
    Run(512_000e3, 254.75, 208.50, 28.80),
    Run(1_048_576e3, 213.17, 161.44, 27.69),
    Run(2_097_152e3, 195.99, 141.60, 23.18),
    Run(3_145_728e3, 188.78, 132.16, 26.64),
    Run(5_242_880e3, 188.31, 129.75, 25.01),
    Run(10_485_760e3, 186.54, 127.58, 34.26),
    Run(12_582_912e3, 184.47, 126.16, 33.80),
)
WIDEST = RUNS[-1]

ABOUT = """HAPI, from the [logs](https://github.com/aguirguis/collabml_client) of its authors, commit 884761c: other models, machines,
links, baselines and GPUs, so not a comparison."""


def curve(widest: float) -> list[tuple[float | None, float]]:
    """Points of HAPI's speedup over links up to `widest` times the crossover; the point without x is its fastest link."""
    return [*((run.x, run.speedup) for run in RUNS[:-1] if run.x <= widest), (None, WIDEST.speedup)]


def table() -> Iterable[str]:
    """All runs."""
    rows = (
        [text.rate(run.bits), f"{run.x:.2g}", *map(text.seconds, (run.photos, run.tensors, run.hapi)), f"{run.speedup:.2f}"]
        for run in RUNS
    )
    return text.table(COLUMNS, rows)
