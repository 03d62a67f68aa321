"""A loader for the workers of Ray Train."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ray
import ray.train
from ray.train.collective import broadcast_from_rank_zero

from .._rank import Rank
from .._settings import shows_options
from ..options import Options
from ._cluster_pickle import ClusterPickle, check_credentials

if TYPE_CHECKING:
    from typing import Unpack

    from .._source import Source
    from ..options import ReaderOptions
    from ..parquet import Parquet
    from ..pipeline import PipelineLike
    from ..torch import Loader

__all__ = ["loader"]


@shows_options(Options)
def loader(
    source: Source | Parquet,
    pipeline: PipelineLike | None = None,
    *,
    pin_memory: bool = False,
    **options: Unpack[ReaderOptions],
) -> Loader:
    """A `pushdown.torch.Loader` of this worker of Ray Train. All workers call it, with the same arguments.

        def train(config):
            loader = pushdown.ray.loader("s3://photos/train/", pipeline, batch_size=256, labels="dir", seed=7)

    The first worker lists the objects, and the others get its list from the object store of the cluster. Rank and world are those of the
    worker's context. `state_dict()` is the same on all ranks: have one of them save it in its checkpoint, and load it in all of them, of any
    number.

    Workers find credentials in their environment. Raises what `pushdown.torch.Loader` raises.
    """
    # PyTorch is not needed for Ray Data.
    from ..torch import Loader

    check_credentials(Options.of(options))
    context = ray.train.get_context()
    rank = context.get_world_rank()
    made = None
    if rank == 0:
        made = ClusterPickle(Loader(source, pipeline, pin_memory=pin_memory, **options))
    # What is broadcast has to be small, and a reference alone would be replaced by its value.
    (pickled,) = broadcast_from_rank_zero((None if made is None else ray.put(made),))
    opened: Loader = ray.get(pickled).open()
    opened._reader._inherited_rank = Rank(rank, context.get_world_size(), context.get_local_world_size())
    return opened
