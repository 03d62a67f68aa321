"""Two processes of a gloo group read disjoint samples, in workers too, without arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import torch.distributed as dist
from torch.utils.data import DataLoader

import pushdown.torch as pt
from torch_samples import PIPELINE, samples


def read(rank: int, world: int, folder: Path, source: str, options: dict, workers: int) -> None:
    """One rank. The loader is made before the group exists, so that it has to look again."""
    loader = pt.Loader(source, PIPELINE, **options)
    dataset = pt.Dataset(source, PIPELINE, **options)
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=world)
    with loader:
        plain = samples(loader)
    stock = DataLoader(
        dataset, batch_size=None, num_workers=workers, multiprocessing_context="spawn" if workers else None
    )
    (folder / f"rank-{rank}.json").write_text(json.dumps([plain, samples(stock), len(loader)]))
    dist.destroy_process_group()


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_read_disjoint_samples_in_equally_many_batches(tmp_path, source, options, workers):
    with pt.Loader(source, PIPELINE, **options) as loader:
        whole = samples(loader)
    torch.multiprocessing.spawn(read, (2, tmp_path, source, options, workers), nprocs=2)
    ranks = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(2)]
    for plain, stock, _ in ranks:
        assert stock == plain
    assert ranks[0][2] == ranks[1][2] and len(ranks[0][0]) == len(ranks[1][0])
    together = sorted(tuple(sample) for plain, _, _ in ranks for sample in plain)
    assert together == whole[: len(together)]
    assert len(whole) - len(together) < 2
