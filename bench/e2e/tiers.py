"""Store, gateway and trainer of a run, and what a turn takes of each: of what runs elsewhere only what it tells itself."""

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
from stack import HERE, RUNTIME, Stack

from .results import Turn
from .scenario import OPEN

# An arm that takes longer hangs.
PATIENCE = 900
MEBI = 1 << 20
# What Ethernet, IP and TCP with timestamps add to each packet.
HEADERS = 14 + 20 + 32
# The programs of each tier, by the names that they are started under.
PROGRAMS = {"store": ("weed", "tfdata"), "gateway": ("gateway", "nginx")}
# What a gateway tells of itself.
GATEWAY_CPU = "process_cpu_seconds_total"
# The kernel's number for the CPU clock of a whole process is made of the process's (CPUCLOCK_SCHED in Linux).
PROCESS_CLOCK = 2


class ArmError(Exception):
    """An arm that did not end well."""


class Tiers:
    """A stack, its link, and commands on the trainer's side."""

    def __init__(self, stack: Stack, here: set[int] = HERE) -> None:
        self.stack, self.link, self.here = stack, stack.link, here
        self.measured: dict[float, float] = {}

    def shape(self, bits: float, latency_ms: float = 0.0) -> float | None:
        """Sets the link, and returns what it lets through, which is measured once: none where it is open, or where no end of it
        is this run's to send from."""
        if not self.link.can_be_shaped:
            return None
        if bits < OPEN and self.link.gateway.command and bits not in self.measured:
            # Without latency, which makes a connection slow at first, and a link none the thinner.
            self.link.shape(bits)
            self.measured[bits] = measure(self.link, bits)
        self.link.shape(bits, latency_ms)
        return self.measured.get(bits)

    def run(self, command: list, **environment: str) -> dict:
        """Runs an arm on the trainer's cores; the figures that it prints as one line of JSON."""
        # An error is told in a line.
        env = os.environ | programs.KEYS | {"ORT_DYLIB_PATH": str(RUNTIME), "RUST_BACKTRACE": "0"} | environment
        pinned = lambda: os.sched_setaffinity(0, self.here)
        text = list(map(str, command))
        with tempfile.TemporaryFile("w+") as errors:
            ended = subprocess.run(
                text, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=pinned, timeout=PATIENCE
            )
            errors.seek(0)
            said = errors.read()[:2000]
        if ended.returncode != 0:
            raise ArmError(f"`{' '.join(text)}` ended with {ended.returncode}:\n{said}")
        try:
            return json.loads(ended.stdout)
        except ValueError as error:
            raise ArmError(f"`{' '.join(text)}` printed no JSON but {ended.stdout[:200]!r}") from error

    def turn(self, arm: Callable[[], dict]) -> Turn:
        """Runs an arm, and measures what that takes of all sides."""
        trees = self.beside()
        before = self.cpu(trees)
        wire = self.link.counters()
        figures, peaks = self.peaks(arm, trees)
        passed = {name: count - wire[name] for name, count in self.link.counters().items()}
        after = self.cpu(trees)
        spent = {tier: after[tier] - seconds for tier, seconds in before.items() if tier in after}
        epochs = figures["epoch_seconds"]
        last = figures.get("last_epoch", {})
        stall = figures.get("stall_seconds", figures.get("waiting_seconds"))
        return Turn(
            samples=round(figures["samples"] / len(epochs)),
            errors=figures["errors"],
            # Without the start, of which the first batch tells: it is no part of later epochs.
            seconds=epochs,
            first_batch_seconds=figures.get("first_batch_seconds"),
            batch_wait_p50_seconds=figures.get("batch_wait_p50_seconds"),
            batch_wait_p99_seconds=figures.get("batch_wait_p99_seconds"),
            stall_seconds=stall,
            value_bytes=figures["value_bytes"],
            stored_bytes=figures.get("stored_bytes"),
            # Without a link of its own only a reader that counts can tell.
            wire_up=passed.get("up", figures.get("wire_bytes_up")),
            wire_down=passed.get("down", figures.get("wire_bytes_down", figures["value_bytes"])),
            cpu=spent | {"host": figures["cpu_seconds"]},
            peak_bytes=peaks | {"host": figures.get("peak_bytes")},
            rows=figures.get("rows"),
            stages=figures.get("stages"),
            last_stages=last.get("stages"),
            last_cpu_seconds=last.get("cpu_seconds"),
        )

    @staticmethod
    def peaks(arm: Callable[[], dict], trees: dict[str, list[psutil.Process]]) -> tuple[dict, dict[str, int | None]]:
        """What an arm tells, and the most memory that the processes of each tier held meanwhile."""
        for processes in trees.values():
            forget_peaks(processes)
        figures = arm()
        return figures, {tier: peak_bytes(processes) for tier, processes in trees.items()}

    def beside(self) -> dict[str, list[psutil.Process]]:
        """The processes of store and gateway; none of what runs elsewhere."""
        return {tier: [] if tier in self.stack.elsewhere else self.trees(*names) for tier, names in PROGRAMS.items()}

    def cpu(self, trees: dict[str, list[psutil.Process]]) -> dict[str, float]:
        """CPU seconds so far of the tiers that can tell: those that run here, and a gateway elsewhere by its metrics."""
        found = {tier: cpu_seconds(processes) for tier, processes in trees.items() if processes}
        told = metric(self.stack.admin, GATEWAY_CPU) if "gateway" in self.stack.elsewhere else None
        return found if told is None else found | {"gateway": told}

    def trees(self, *names: str) -> list[psutil.Process]:
        """The processes that were started by these names, with those that they started."""
        roots = [psutil.Process(process.pid) for name, process in self.stack.started if name in names]
        return [each for root in roots for each in (root, *root.children(recursive=True))]


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """In user mode and in the kernel."""
    return sum(map(spent_by, processes))


def spent_by(process: psutil.Process) -> float:
    """Of one process by the kernel's clock, which counts nanoseconds; where there is none by `/proc`, which counts in 10 ms."""
    try:
        return time.clock_gettime((~process.pid << 3) | PROCESS_CLOCK)
    except OSError:
        return sum(process.cpu_times()[:2])


def metric(admin: str, name: str) -> float | None:
    """A number of the page of metrics at an admin port; none where nobody tells it."""
    try:
        with urllib.request.urlopen(f"{admin}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)
    except (OSError, ValueError):
        return None


def forget_peaks(processes: list[psutil.Process]) -> None:
    """From now on the most memory held is counted anew, where the kernel lets us say so."""
    for process in processes:
        try:
            Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            continue


def peak_bytes(processes: list[psutil.Process]) -> int | None:
    """The most memory held since."""
    found = []
    for process in processes:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        found += [int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:")]
    return sum(found) if found else None


SENDER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
connection.sendall(bytes(int(sys.argv[2])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""


def measure(link: links.Links, bits: float) -> float:
    """Bits per second that come over the link while one connection sends as much as it can, by the counters that tell of an
    arm's bytes: above `links.SINGLY` they count a head for many frames, which makes it 4 % less than the frames take."""
    # Long enough that what passes at once does not count: a second, or what a bucket holds fifty times.
    size = max(int(bits / 8), 50 * BURST_BYTES)
    command = [*link.gateway.command, sys.executable, "-c", SENDER, link.gateway.address, str(size)]
    sender = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(sender.stdout.readline())
        with socket.create_connection((link.gateway.address, port), timeout=60) as connection:
            buffer, received = bytearray(MEBI), 0
            # The bucket is full at first: what it holds passes at once, and neither it nor its time counts.
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
def started(tiers: Tiers, name: str, command: list, **environment: str) -> Iterator[subprocess.Popen]:
    """A further program on the store's side, while it is needed."""
    tiers.stack.start(name, command, **environment)
    entry = tiers.stack.started[-1]
    try:
        yield entry[1]
    finally:
        programs.end(entry[1])
        tiers.stack.started.remove(entry)
