"""Trains a small CNN with Ray Train on photos in folders by class, and goes on after a worker was killed.

    python train.py --data s3://photos/train/ --workers 4 --storage runs/ --kill-after 3
    python train.py --data s3://photos/train/ --workers 2 --storage runs/    # goes on, or starts the next run
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import ray.train
import ray.train.torch
import torch
from torch import nn

import pushdown.ray
from pushdown.torch import Loader

PIPELINE = "decode | random_resized_crop(64) | flip_h | to_float | normalize(imagenet)"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small CNN on photos in folders by class.")
    parser.add_argument("--data", required=True, help="photos, one folder per class: s3://BUCKET/PREFIX/")
    parser.add_argument("--storage", required=True, help="folder of checkpoints that all hosts see, or s3://BUCKET/PREFIX/")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="samples per batch and worker")
    parser.add_argument("--failures", type=int, default=1, help="how often to start again after a worker was lost")
    parser.add_argument("--kill-after", type=int, metavar="N", help="kill the last worker after N batches, once, to try it")
    return parser.parse_args()


def small_cnn(classes: int) -> nn.Module:
    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))

    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))
    return nn.Sequential(block(3, 16), block(16, 32), block(32, 64), head)


def count_classes(loader: Loader) -> int:
    # In a function that uses torch, cloudpickle takes the name `classes` for torch.classes, which it cannot send.
    return len(loader.classes)


def train(config: dict[str, Any]) -> None:
    """Each worker runs it."""
    context = ray.train.get_context()
    rank, world = context.get_world_rank(), context.get_world_size()
    loader = pushdown.ray.loader(
        config["data"], PIPELINE, batch_size=config["batch_size"], labels="dir", seed=7
    )
    device = ray.train.torch.get_device()
    model = small_cnn(count_classes(loader)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder) / "state.pt", weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        # The same state on every worker, of any number.
        loader.load_state_dict(saved["loader"])
        if rank == 0:
            epoch, position = loader.epoch, loader.state_dict()["position"]
            print(f"resumes on {world} workers at epoch {epoch}, sample {position}", flush=True)
    forward = ray.train.torch.prepare_model(model)
    while (epoch := loader.epoch) < config["epochs"]:
        for number, batch in enumerate(loader, 1):
            batch = batch.to(device)
            loss = nn.functional.cross_entropy(forward(batch.x), batch.y)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if number == config["kill_after"] and checkpoint is None and rank == world - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            report(rank, {"epoch": epoch, "loss": loss.item()}, model, optimizer, loader.state_dict())
    loader.close()


def report(rank: int, metrics: dict[str, Any], model: nn.Module, optimizer: Any, state: dict[str, Any]) -> None:
    """Reports a batch. The first worker saves the state, which is that of all workers."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if rank == 0:
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": state}
            torch.save(saved, Path(folder) / "state.pt")
            checkpoint = ray.train.Checkpoint.from_directory(folder)
        ray.train.report(metrics, checkpoint=checkpoint)


def main() -> None:
    options = arguments()
    storage = options.storage if "://" in options.storage else str(Path(options.storage).absolute())
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config=vars(options),
        scaling_config=ray.train.ScalingConfig(num_workers=options.workers),
        run_config=ray.train.RunConfig(
            name="photos",
            storage_path=storage,
            failure_config=ray.train.FailureConfig(max_failures=options.failures),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=2),
        ),
    )
    result = trainer.fit()
    metrics = result.metrics or {}
    print(f"trained until epoch {metrics['epoch']}: loss {metrics['loss']:.3f}")


if __name__ == "__main__":
    main()
