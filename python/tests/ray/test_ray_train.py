"""Workers of Ray Train share an epoch, list it once, and go on from a checkpoint in another number."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("ray.data", reason="Ray is not installed")

import ray
import ray.train
from ray import cloudpickle
from ray.train.torch import TorchTrainer

import pushdown
import pushdown.ray
from pushdown import Sampling

# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
PIPELINE = "decode | random_resized_crop(32) | flip_h | to_float"


def digest(value: Any) -> str:
    return hashlib.sha256(memoryview(value.numpy()).tobytes()).hexdigest()[:16]


def train(config: dict[str, Any]) -> None:
    """Reads an epoch, saves a checkpoint after each batch, and ends one worker in the middle of the first attempt."""
    import os
    import signal
    import tempfile

    loader = pushdown.ray.loader(config["source"], PIPELINE, **config["options"])
    context = ray.train.get_context()
    rank, world = context.get_world_rank(), context.get_world_size()
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            loader.load_state_dict(json.loads((Path(folder) / "loader.json").read_text()))
    start = loader.state_dict()
    lines = Path(config["folder"]) / f"world-{world}-rank-{rank}.jsonl"
    for number, batch in enumerate(loader):
        with lines.open("a") as file:
            samples = [[key, digest(x)] for key, x in zip(batch.keys, batch.x, strict=True)]
            print(json.dumps({"start": start["position"], "number": number, "samples": samples}), file=file)
        if config["stops_at"] == number and rank == world - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        with tempfile.TemporaryDirectory() as folder:
            saved = None
            if rank == 0:
                (Path(folder) / "loader.json").write_text(json.dumps(loader.state_dict()))
                saved = ray.train.Checkpoint.from_directory(folder)
            ray.train.report({"batches": number}, checkpoint=saved)
    loader.close()


def fit(config: dict[str, Any], workers: int, folder: Path) -> Any:
    trainer = TorchTrainer(
        train,
        train_loop_config=config,
        scaling_config=ray.train.ScalingConfig(num_workers=workers),
        run_config=ray.train.RunConfig(name="resumed", storage_path=str(folder / "runs")),
    )
    return trainer.fit()


def samples(folder: Path, world: int) -> list[dict[str, Any]]:
    files = sorted(folder.glob(f"world-{world}-rank-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_a_killed_worker_and_another_world(cluster, world, source, options, tmp_path):
    options = {**options, "batch_size": 2, "sampling": Sampling(tail="short")}
    whole = {}
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        for batch in reader:
            for key, value, position in zip(batch.keys, batch.values, memoryview(batch.position), strict=True):
                whole[key] = position, hashlib.sha256(memoryview(value).tobytes()).hexdigest()[:16]
    config = {"source": source, "options": options, "folder": str(tmp_path), "stops_at": 2}
    with pytest.raises(Exception, match=r"(?s)[Ww]orker"):
        fit(config, 3, tmp_path)
    fit({**config, "stops_at": None}, 2, tmp_path)
    second = samples(tmp_path, 2)
    # One or two batches of three ranks: the last checkpoint may not have been complete.
    [start] = {line["start"] for line in second}
    assert start in (6, 12)
    found = [tuple(sample) for line in second for sample in line["samples"]]
    rest = {(key, pixels) for key, (position, pixels) in whole.items() if position >= start}
    assert len(found) == len(set(found)) and set(found) == rest
    for line in samples(tmp_path, 3):
        for key, pixels in line["samples"]:
            assert whole[key][1] == pixels


def test_the_list_is_made_once(cluster, world, source, options, tmp_path):
    """By the first worker: of objects that come and go meanwhile, all have the same."""

    def count(config: dict[str, Any]) -> None:
        from pushdown import _source

        lists = []
        original = _source.list_store

        def counted(*given: Any, **options: Any) -> Any:
            lists.append(original(*given, **options))
            return lists[-1]

        _source.list_store = counted
        loader = pushdown.ray.loader(config["source"], PIPELINE, **config["options"])
        rank = ray.train.get_context().get_world_rank()
        path = Path(config["folder"]) / f"lists-{rank}.json"
        path.write_text(json.dumps([len(lists), len(loader.objects), len(loader)]))

    trainer = TorchTrainer(
        count,
        train_loop_config={"source": source, "options": options, "folder": str(tmp_path)},
        scaling_config=ray.train.ScalingConfig(num_workers=3),
        run_config=ray.train.RunConfig(storage_path=str(tmp_path / "runs")),
    )
    trainer.fit()
    found = [json.loads((tmp_path / f"lists-{rank}.json").read_text()) for rank in range(3)]
    assert [lists for lists, _, _ in found] == [1, 0, 0]
    assert len({(objects, batches) for _, objects, batches in found}) == 1
