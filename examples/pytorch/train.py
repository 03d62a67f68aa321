"""Trains a small CNN on photos in folders by class, which a pushdown gateway decodes, crops and resizes.

Resumes from its checkpoint after a kill, on any number of processes:

    python train.py --data s3://photos/train/ --checkpoint train.pt
    torchrun --nproc-per-node 2 train.py --data s3://photos/train/ --checkpoint train.pt
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import pushdown
import pushdown.torch as pt

PIPELINE = "decode | random_resized_crop(64) | flip_h | to_float | normalize(imagenet)"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small CNN on photos in folders by class.")
    parser.add_argument("--data", required=True, help="photos, one folder per class: s3://BUCKET/PREFIX/")
    parser.add_argument("--endpoint", help="address of the gateway (default: AWS_ENDPOINT_URL_S3)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="samples per batch and process")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--checkpoint", type=Path, help="file to resume from, if it exists, and to save to")
    parser.add_argument("--save-every", type=int, default=10, metavar="N", help="save after every N batches")
    parser.add_argument(
        "--stop-after", type=int, metavar="N", help="kill this process after N batches, to try a resume"
    )
    return parser.parse_args()


def small_cnn(classes: int) -> nn.Module:
    def block(inputs: int, outputs: int) -> nn.Sequential:
        conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))

    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))
    return nn.Sequential(block(3, 16), block(16, 32), block(32, 64), head)


class Training:
    """The model, its optimizer, the loader, and the checkpoint that holds the state of all three."""

    def __init__(self, options: argparse.Namespace, loader: pt.Loader) -> None:
        self.loader = loader
        self.path: Path | None = options.checkpoint
        self.save_every: int = options.save_every
        self.stop_after: int | None = options.stop_after
        self.batches = 0
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.model = small_cnn(len(loader.classes))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        if self.path is not None and self.path.exists():
            self.resume(self.path)
        self.forward: nn.Module = DistributedDataParallel(self.model) if dist.is_initialized() else self.model

    def resume(self, path: Path) -> None:
        saved = torch.load(path, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        if self.rank == 0:
            print(
                f"resumes at epoch {saved['loader']['epoch']}, sample {saved['loader']['position']}",
                flush=True,
            )

    def save(self) -> None:
        """Saves the state, the same in every process. A kill leaves the previous or the new file."""
        if self.path is None or self.rank != 0:
            return
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
        }
        temporary = self.path.with_suffix(".tmp")
        torch.save(state, temporary)
        os.replace(temporary, self.path)

    def epoch(self) -> tuple[float, float]:
        """Trains on what is left of the epoch. Returns mean loss and accuracy over all processes."""
        totals = torch.zeros(3, dtype=torch.float64)  # loss, correct predictions, samples
        for batch in self.loader:
            logits: Tensor = self.forward(batch.x)
            loss = nn.functional.cross_entropy(logits, batch.y)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            correct = (logits.argmax(dim=1) == batch.y).sum()
            totals += torch.tensor(
                [loss.item() * len(batch), correct.item(), len(batch)], dtype=torch.float64
            )
            self.batches += 1
            if self.batches % self.save_every == 0:
                self.save()
            if self.batches == self.stop_after:
                os.kill(os.getpid(), signal.SIGKILL)
        if dist.is_initialized():
            dist.all_reduce(totals)
        samples = max(totals[2].item(), 1)
        return totals[0].item() / samples, totals[1].item() / samples


def main() -> None:
    options = arguments()
    torch.manual_seed(options.seed)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    loader = pt.Loader(
        options.data,
        PIPELINE,
        store=pushdown.Store(endpoint=options.endpoint),
        batch_size=options.batch_size,
        labels="dir",
        seed=options.seed,
    )
    with loader:
        training = Training(options, loader)
        while (epoch := loader.epoch) < options.epochs:
            loss, accuracy = training.epoch()
            if training.rank == 0:
                print(
                    f"epoch {epoch}: loss {loss:.3f}, accuracy {accuracy:.1%}; {loader.stats.verdict()}",
                    flush=True,
                )
            training.save()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
