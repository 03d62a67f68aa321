"""Runs contestants in turn, each in a process of its own that stays for all rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import programs
import psutil
from e2e.clocks import tree_cpu_seconds
from tqdm import tqdm

from .task import Task

T = TypeVar("T")


class ContestantError(Exception):
    """A contestant ended, or read something else than all samples once."""


@dataclass(frozen=True)
class Epoch:
    """An epoch as it was measured."""

    samples: int
    labels: int
    """Sum of the labels."""
    cpu_seconds: float
    seconds: float

    @property
    def samples_per_cpu_second(self) -> float:
        """The figure that is compared."""
        return self.samples / self.cpu_seconds


class Readable(Protocol):
    """What runs in rounds."""

    def read(self) -> Epoch:
        """Reads an epoch."""
        ...


class Contestant:
    """A process that reads an epoch when asked."""

    def __init__(self, name: str, task: Task, log: Path) -> None:
        self.name, self.task, self.log = name, task, log
        environment = os.environ | programs.KEYS | {"AWS_EC2_METADATA_DISABLED": "true"}
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "loaders.contestant", name, task.to_json()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        self.settings = ""

    def wait(self) -> None:
        """Waits until it has imported its libraries."""
        self.settings = self._answer()["settings"]

    def read(self) -> Epoch:
        """Reads an epoch. Raises `ContestantError` unless that was each sample once."""
        root = psutil.Process(self.process.pid)
        before = tree_cpu_seconds(root)
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self._answer()
        epoch = Epoch(answer["samples"], answer["labels"], tree_cpu_seconds(root) - before, answer["seconds"])
        check_epoch(self.name, epoch, self.task)
        return epoch

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise ContestantError(f"{self.name} ended with {self.process.wait()}:\n{self.log.read_text()[-3000:]}")
        return dict(json.loads(line))

    def end(self) -> None:
        """Ends the process with its workers."""
        workers = psutil.Process(self.process.pid).children(recursive=True) if self.process.poll() is None else []
        programs.end(self.process)
        for worker in workers:
            try:
                worker.kill()
            except psutil.NoSuchProcess:
                continue


def check_epoch(name: str, epoch: Epoch, task: Task) -> None:
    """Raises `ContestantError` unless the epoch was each sample once, by number and by labels."""
    labels = sum(index % len(task.classes) for index in range(task.samples))
    if (epoch.samples, epoch.labels) != (task.samples, labels):
        found = f"{epoch.samples} samples with labels that sum up to {epoch.labels}"
        raise ContestantError(f"{name}: expected {task.samples} samples with labels that sum up to {labels}, found {found}")


@contextmanager
def running(names: Sequence[str], task: Task, folder: Path) -> Iterator[dict[str, Contestant]]:
    """Runs contestants. They start one by one."""
    with ExitStack() as ends:
        contestants = {}
        for number, name in enumerate(names):
            contestant = Contestant(name, task, folder / f"contestant-{number}.log")
            ends.callback(contestant.end)
            contestant.wait()
            contestants[name] = contestant
        yield contestants


def measure(contestants: dict[str, Readable], rounds: int, progress: Callable[[Any], Any] = tqdm) -> dict[str, list[Epoch]]:
    """Epochs of each contestant: one per round, after one that does not count. Each round starts with another contestant."""
    measured: dict[str, list[Epoch]] = {name: [] for name in contestants}
    for round, name in progress(order(list(contestants), rounds)):
        epoch = contestants[name].read()
        if round >= 0:
            measured[name].append(epoch)
    return measured


def order(names: Sequence[T], rounds: int) -> list[tuple[int, T]]:
    """Which contestant reads in which round; -1 is the round that does not count."""
    turn = lambda round: [*names[round % len(names) :], *names[: round % len(names)]]
    return [(round, name) for round in range(-1, rounds) for name in turn(max(round, 0))]
