"""The same photos stored in several layouts, read into tensors by data loaders of PyTorch: ours in each of its modes, and those of
others that the layouts are made for, as their documentation shows them.

A loader is one warm process: it has imported its libraries, started its workers, and read an epoch over the link, in which `auto`
measures the costs. A trial is one more epoch.
"""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import programs
import psutil

from .. import arms, layout_data
from ..clocks import tree_cpu_seconds
from ..layout_data import DataSet
from ..results import Arm, Cell
from ..scenario import LAYOUTS, OPEN, Link, Scenario, repeated_arm
from ..tiers import TIMEOUT_SECONDS, ArmError, Tiers, peak_bytes, reset_peaks
from . import RunContext, build_cell, cell_notes, interleave

VENV = programs.ROOT / ".venv-e2e-torch"
SCRIPT = arms.FOLDER / "tensors.py"
# Our loader: the kind of each arm, and its mode.
MODES = {"plain": ("plain", "plain"), "pushed": ("pushed", "pushdown"), "auto": ("auto", "auto")}
# The order of a layout: shard by shard through a shuffle buffer. Others are read in a random order of all samples.
SHARD_ORDER = "shard-order"
# Loaders of others: the source of `tensors.py`, and the layouts that they read.
PEERS = {"webdataset-pil": ("webdataset", ("shards", SHARD_ORDER)), "datasets": ("datasets", ("image-column",))}
ARMS = (*MODES, *PEERS, "repeat", arms.REPEAT)
# Decoders and resizers differ by single levels of 255; values are in deviations of 0.22 to 0.23.
MAX_MEAN_DIFFERENCE = 0.03


def unavailable_reason() -> str:
    """Why this machine cannot measure the kind; empty if it can."""
    if not (VENV / "bin/python").exists():
        return f"{VENV.name} is not installed: PEERS=torch installs it"
    if not arms.NATIVE_MODULE.exists():
        return f"{arms.NATIVE_MODULE} is not built"
    return "" if shutil.which("curl") else "curl, by which WebDataset reads, is not installed"


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each layout over each link."""
    for text in scenario.links:
        link = Link.parse(text)
        for layout in scenario.layouts:
            yield measure_cell(scenario, context, link, layout)


def measure_cell(scenario: Scenario, context: RunContext, link: Link, layout: str) -> Cell:
    """All arms that read a layout."""
    tiers = context.tiers
    # Uploads would wait for a shaped link.
    tiers.shape(OPEN)
    stored = layout_data.UPLOAD[layout](scenario.data, scenario.samples, context.data, tiers, context.folder)
    measured = tiers.shape(link.bits(None), scenario.latency_ms)
    names = [name for name in scenario.arms if is_for(name, layout)]
    buffer = scenario.buffer if layout == SHARD_ORDER else None
    with ExitStack() as stack:
        loaders = {
            name: stack.enter_context(LoaderProcess(name, scenario, stored, tiers, context.folder, buffer)) for name in names
        }
        means = {}
        for name, loader in loaders.items():
            context.progress.set_postfix_str(f"{name}, warm-up")
            means[name] = loader.read("check")["value_mean"]
        check_means(means)
        measured_arms = {name: Arm(loader.kind, loader.settings) for name, loader in loaders.items()}

        def run_trial(name: str) -> None:
            measured_arms[name].trials.append(tiers.run_trial(loaders[name].read))

        interleave(names, scenario.rounds, run_trial, context.progress)
    title = LAYOUTS[layout]
    notes = [*cell_notes(scenario, context), f"every loader is one warm process, and reads all {scenario.samples} samples per round"]
    label = "open link" if link.bits(None) == OPEN else link.text
    return build_cell(
        f"{title}, {label}", title, measured_arms, notes, requested=link.bits(None), measured=measured
    )


def base_name(name: str) -> str:
    """The arm that runs: `plain` for `repeat`, NAME for `repeat:NAME`."""
    return repeated_arm(name) or name


def is_for(name: str, layout: str) -> bool:
    """Whether an arm reads a layout: our loader reads all."""
    return layout in PEERS.get(base_name(name), ("", (layout,)))[1]


def check_means(means: dict[str, float]) -> None:
    """Raises `ArmError` unless all arms deliver about the same values."""
    if max(means.values()) - min(means.values()) > MAX_MEAN_DIFFERENCE:
        shown = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
        raise ArmError(f"expected the same values from all arms, found means of {shown}")


def command(name: str, scenario: Scenario, stored: DataSet, tiers: Tiers, buffer: int | None = None) -> list:
    """The command of a loader. With a buffer of this many samples our loader reads in shard order."""
    work = arms.peer_work(scenario.pipeline).split(":")
    if len(work) != 3:
        raise ArmError(f"pipeline: expected resize(short=..) and center_crop(..) without a model, found {scenario.pipeline}")
    _, short, crop = work
    python = VENV / "bin/python"
    source, mode = (PEERS[name][0], "") if name in PEERS else ("pushdown", MODES[name][1])
    endpoint = tiers.stack.gateway if mode not in ("", "plain") else tiers.stack.store
    options = ["--endpoint", endpoint, "--short", short, "--crop", crop, "--batch-size", scenario.batch_size]
    options += ["--step-ms", scenario.trainer_step_ms]
    if not mode:
        return [python, SCRIPT, source, stored.url, *options]
    options += ["--pipeline", scenario.pipeline, "--mode", mode, "--labels", json.dumps(stored.labels)]
    options += ["--index", stored.index] if stored.index else []
    options += ["--buffer", buffer] if buffer else []
    return [programs.ROOT / "scripts/python.sh", python, SCRIPT, source, stored.url, *options]


class LoaderProcess:
    """A warm process that reads an epoch per request."""

    def __init__(
        self, name: str, scenario: Scenario, stored: DataSet, tiers: Tiers, folder: Path, buffer: int | None = None
    ) -> None:
        base = base_name(name)
        self.name, self.settings, self.samples = name, "", scenario.samples
        self.kind = "repeat" if base != name else MODES[base][0] if base in MODES else "peer"
        self.log = folder / f"loader-{name.replace(':', '-')}.log"
        environment = os.environ | programs.KEYS | {"NATIVE": str(arms.NATIVE_MODULE)}
        # `datasets` writes its caches there, and counts no download at its hub.
        environment |= {"HF_HOME": str(folder / "huggingface"), "HF_UPDATE_DOWNLOAD_COUNTS": "0"}
        pinned = lambda: os.sched_setaffinity(0, tiers.host_cores)
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                list(map(str, command(base, scenario, stored, tiers, buffer))),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, preexec_fn=pinned,
            )  # fmt: skip

    def __enter__(self) -> "LoaderProcess":
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process with its workers."""
        workers = psutil.Process(self.process.pid).children(recursive=True) if self.process.poll() is None else []
        self.process.kill()
        self.process.wait()
        for worker in workers:
            try:
                worker.kill()
            except psutil.NoSuchProcess:
                continue

    def read(self, request: str = "read") -> dict:
        """Reads an epoch. Returns its figures, with the CPU seconds and the peak memory of the process and its workers. Raises
        `ArmError` unless that was each sample once."""
        root = psutil.Process(self.process.pid)
        tree = [root, *root.children(recursive=True)]
        reset_peaks(tree)
        before = tree_cpu_seconds(root)
        figures = self._answer(request)
        used = {"cpu_seconds": tree_cpu_seconds(root) - before, "peak_bytes": peak_bytes(tree)}
        expected = {"samples": self.samples, "labels": sum(layout_data.labels(self.samples))}
        if found := {what: figures[what] for what in expected if figures[what] != expected[what]}:
            raise ArmError(f"{self.name}: expected {expected}, found {found}")
        self.settings = figures["settings"]
        return figures | used

    def _answer(self, request: str) -> dict:
        # A loader that takes longer hangs.
        watchdog = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            log = self.log.read_text(encoding="utf-8", errors="replace")
            raise ArmError(f"{self.name} exited with {self.process.wait()}:\n{log[-2000:]}")
        return json.loads(line)
