"""Store, gateway and trainer of a run, and the resources that a trial uses on each. External tiers report only their metrics."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

import links
import programs
from shaping import BURST_BYTES
from stack import HOST_CORES, RUNTIME, Stack

from .clocks import cpu_seconds_of
from .results import Trial
from .scenario import OPEN

# An arm that takes longer hangs.
TIMEOUT_SECONDS = 900
MEBIBYTE = 1 << 20
# Headers of Ethernet, IP and TCP with timestamps, per packet.
HEADER_BYTES = 14 + 20 + 32
# The programs of each tier, by the names in `Stack.started` without a number such as that of `replica-1`.
PROGRAMS = {"store": ("weed", "tfdata"), "gateway": ("gateway", "nginx", "replica")}
# The metric of an external gateway's CPU.
GATEWAY_CPU = "process_cpu_seconds_total"


class ArmError(Exception):
    """An arm failed."""


class Tiers:
    """A stack, its link, and commands on the trainer's side."""

    def __init__(self, stack: Stack, host_cores: set[int] = HOST_CORES) -> None:
        self.stack, self.link, self.host_cores = stack, stack.link, host_cores
        self.measured: dict[float, float] = {}

    def shape(self, bits: float, latency_ms: float = 0.0) -> float | None:
        """Sets the link. Returns the measured bits per second: measured once per rate; None for an open link, or if this run
        has no sender on the other end."""
        if not self.link.can_be_shaped:
            return None
        if bits < OPEN and self.link.gateway.command and bits not in self.measured:
            # Without latency, which slows a new connection but does not narrow the link.
            self.link.shape(bits)
            self.measured[bits] = measure_bandwidth(self.link, bits)
        self.link.shape(bits, latency_ms)
        return self.measured.get(bits)

    def run(self, command: list, statuses: tuple[int, ...] = (0,), **environment: str) -> dict:
        """Runs an arm on the trainer's cores, which ends with one of these statuses. Returns the figures that it prints as one line of
        JSON."""
        # Without a backtrace an error is one line.
        env = os.environ | programs.KEYS | {"ORT_DYLIB_PATH": str(RUNTIME), "RUST_BACKTRACE": "0"} | environment
        pinned = lambda: os.sched_setaffinity(0, self.host_cores)
        text = list(map(str, command))
        with tempfile.TemporaryFile("w+") as errors:
            ended = subprocess.run(
                text, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=pinned, timeout=TIMEOUT_SECONDS
            )
            errors.seek(0)
            message = errors.read()[:2000]
        if ended.returncode not in statuses:
            raise ArmError(f"`{' '.join(text)}` exited with {ended.returncode}:\n{message}")
        try:
            return json.loads(ended.stdout)
        except ValueError as error:
            raise ArmError(f"`{' '.join(text)}`: expected JSON on stdout, found {ended.stdout[:200]!r}") from error

    def run_trial(self, arm: Callable[[], dict]) -> Trial:
        """Runs an arm, and measures what it uses on all tiers."""
        trees = self.store_side_processes()
        before = self.cpu_seconds(trees)
        wire = self.link.counters()
        figures, peaks = self.measure_peaks(arm, trees)
        passed = {name: count - wire[name] for name, count in self.link.counters().items()}
        after = self.cpu_seconds(trees)
        used = {tier: after[tier] - seconds for tier, seconds in before.items() if tier in after}
        epochs = figures["epoch_seconds"]
        last = figures.get("last_epoch", {})
        stall = figures.get("stall_seconds", figures.get("waiting_seconds"))
        return Trial(
            samples=round(figures["samples"] / len(epochs)),
            errors=figures["errors"],
            # Without the program's start, which is part of the first batch only.
            epoch_seconds=epochs,
            first_batch_seconds=figures.get("first_batch_seconds"),
            batch_wait_p50_seconds=figures.get("batch_wait_p50_seconds"),
            batch_wait_p99_seconds=figures.get("batch_wait_p99_seconds"),
            stall_seconds=stall,
            value_bytes=figures["value_bytes"],
            stored_bytes=figures.get("stored_bytes"),
            # Without a link of its own the run relies on readers that count bytes.
            wire_up_bytes=passed.get("up", figures.get("wire_bytes_up")),
            wire_down_bytes=passed.get("down", figures.get("wire_bytes_down", figures["value_bytes"])),
            cpu_seconds=used | {"host": figures["cpu_seconds"]},
            peak_bytes=peaks | {"host": figures.get("peak_bytes")},
            rows=figures.get("rows"),
            stages=figures.get("stages"),
            last_epoch_stages=last.get("stages"),
            last_epoch_cpu_seconds=last.get("cpu_seconds"),
        )

    @staticmethod
    def measure_peaks(arm: Callable[[], dict], trees: dict[str, list[psutil.Process]]) -> tuple[dict, dict[str, int | None]]:
        """The figures of an arm, and the peak memory of each tier's processes during its run."""
        for processes in trees.values():
            reset_peaks(processes)
        figures = arm()
        return figures, {tier: peak_bytes(processes) for tier, processes in trees.items()}

    def store_side_processes(self) -> dict[str, list[psutil.Process]]:
        """The processes of store and gateway; an empty list for an external tier."""
        external = self.stack.external_tiers
        return {tier: [] if tier in external else self.process_trees(*names) for tier, names in PROGRAMS.items()}

    def cpu_seconds(self, trees: dict[str, list[psutil.Process]]) -> dict[str, float]:
        """CPU seconds so far, by tier: of local processes, and of an external gateway from its metrics."""
        used = {tier: cpu_seconds(processes) for tier, processes in trees.items() if processes}
        reported = read_metric(self.stack.admin, GATEWAY_CPU) if "gateway" in self.stack.external_tiers else None
        return used if reported is None else used | {"gateway": reported}

    def process_trees(self, *names: str) -> list[psutil.Process]:
        """The processes started under these names, and their descendants."""
        started = ((name.partition("-")[0], process) for name, process in self.stack.started)
        roots = [psutil.Process(process.pid) for name, process in started if name in names]
        return [each for root in roots for each in (root, *root.children(recursive=True))]


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """CPU seconds in user mode and in the kernel."""
    return sum(map(cpu_seconds_of, processes))


def read_metric(admin: str, name: str) -> float | None:
    """A value of the metrics page of an admin port; None if the port does not answer or lacks the metric."""
    try:
        with urllib.request.urlopen(f"{admin}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)
    except (OSError, ValueError):
        return None


def reset_peaks(processes: list[psutil.Process]) -> None:
    """Resets the peak memory of the processes, if the kernel permits it."""
    for process in processes:
        try:
            Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            continue


def peak_bytes(processes: list[psutil.Process]) -> int | None:
    """The sum of the peak memory of the processes since the last reset; of those that still run."""
    peaks = []
    for process in processes:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            continue
        peaks += [int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:")]
    return sum(peaks) if peaks else None


SENDER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
connection.sendall(bytes(int(sys.argv[2])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""


def measure_bandwidth(link: links.Links, bits: float) -> float:
    """Bits per second over the link while one connection sends at full speed, from the counters that also measure an arm's
    bytes. Above `links.MAX_SINGLE_PACKET_BITS_PER_SECOND` these count one header for many frames, so the rate is 4 % below
    that of the frames."""
    # One second, or 50 bursts, so that the initial burst does not matter.
    size = max(int(bits / 8), 50 * BURST_BYTES)
    command = [*link.gateway.command, sys.executable, "-c", SENDER, link.gateway.address, str(size)]
    sender = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(sender.stdout.readline())
        with socket.create_connection((link.gateway.address, port), timeout=60) as connection:
            buffer, received = bytearray(MEBIBYTE), 0
            # The token bucket starts full: skip its bytes and their time.
            while received < 2 * BURST_BYTES:
                received += connection.recv_into(buffer)
            before, started = link.counters()["down"], time.perf_counter()
            while connection.recv_into(buffer):
                pass
            return (link.counters()["down"] - before) * 8 / (time.perf_counter() - started)
    finally:
        sender.kill()
        sender.wait()


@contextmanager
def running(tiers: Tiers, name: str, command: list, **environment: str) -> Iterator[subprocess.Popen]:
    """Runs a further program on the store's side."""
    tiers.stack.start(name, command, **environment)
    entry = tiers.stack.started[-1]
    try:
        yield entry[1]
    finally:
        programs.end(entry[1])
        tiers.stack.started.remove(entry)
