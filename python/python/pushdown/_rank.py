"""The place of this process: its rank, and its worker within the rank."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ConfigError

__all__ = ["ONLY_WORKER", "Place", "Rank", "Worker", "detect_rank"]

# Variables of launchers: rank, world size, and ranks on this host if the launcher says so.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)


@dataclass(frozen=True, slots=True)
class Rank:
    """This process has the rank `index`, from 0, of `world` ranks, `local_ranks` of them on this host."""

    index: int = 0
    world: int = 1
    local_ranks: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.world:
            raise ConfigError(
                f"invalid rank: expected a number from 0 below the world size {self.world}, found {self.index}"
            )


@dataclass(frozen=True, slots=True)
class Worker:
    """One of the workers that share the batches of a rank, such as the worker processes of a data loader.

    Worker w of k reads the batches w, w + k, and so on.
    """

    index: int = 0
    """Number of this worker, from 0."""
    count: int = 1
    """Number of the workers of the rank."""

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise ConfigError(
                f"invalid worker: expected a number from 0 below the number of workers {self.count}, found {self.index}"
            )


ONLY_WORKER = Worker()


@dataclass(frozen=True, slots=True)
class Place:
    """A reader among those that share an epoch: its rank, and its worker within the rank."""

    rank: Rank
    worker: Worker = ONLY_WORKER


def detect_rank(rank: int | None = None, world: int | None = None, inherited: Rank | None = None) -> Rank:
    """The rank of this process: the arguments if they are set, then the first of

    1. `torch.distributed`, if it is imported and initialised,
    2. `inherited`: what `torch.distributed` said in the process that sent a reader to this one,
    3. the environment: `RANK` and `WORLD_SIZE`, `SLURM_PROCID` and `SLURM_NTASKS`, or those of Open MPI,
    4. rank 0 of 1.

    Raises `ConfigError` if only one argument is set, and for numbers that do not fit.
    """
    local = _local_ranks(os.environ)
    if rank is not None and world is not None:
        return Rank(rank, world, local)
    if rank is not None or world is not None:
        raise ConfigError(f"invalid rank: expected rank and world together, found rank={rank}, world={world}")
    return rank_of_torch() or inherited or _rank_of_environment(os.environ) or Rank(local_ranks=local)


def rank_of_torch() -> Rank | None:
    """The rank according to `torch.distributed`. Does not import it."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Rank(distributed.get_rank(), distributed.get_world_size(), _local_ranks(os.environ))


def _rank_of_environment(environment: Mapping[str, str]) -> Rank | None:
    for rank, world, _ in _LAUNCHERS:
        if rank in environment and world in environment:
            return Rank(_number(environment, rank), _number(environment, world), _local_ranks(environment))
    return None


def _local_ranks(environment: Mapping[str, str]) -> int:
    for rank, _, local in _LAUNCHERS:
        if rank in environment and local in environment:
            return max(1, _number(environment, local))
    return 1


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"invalid environment variable {name}: expected a number, found `{text}`") from None
