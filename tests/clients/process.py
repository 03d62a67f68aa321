"""A program under test in its own process, which ends with the test."""

import pathlib
import socket
import subprocess
import time
from collections.abc import Callable

# SeaweedFS opens a gRPC port at this offset from each of its ports.
GRPC_OFFSET = 10_000


class Process:
    """A running program. Its output goes to a file; failures show its end."""

    STDIN = subprocess.DEVNULL

    def __init__(self, command: list[str], log: pathlib.Path, env: dict[str, str] | None = None):
        self.log = log
        with log.open("wb") as output:
            self.child = subprocess.Popen(command, stdin=self.STDIN, stdout=output, stderr=subprocess.STDOUT, env=env)

    def wait_until(self, what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Waits until `ready`, and fails immediately if the program ends. The program is stopped on failure."""
        deadline = time.monotonic() + seconds
        try:
            while not ready():
                ended = self.child.poll()
                if ended is not None or time.monotonic() > deadline:
                    reason = f"ended with {ended}" if ended is not None else f"not within {seconds} s"
                    raise RuntimeError(f"{what}: {reason}\n{self.log.read_text(errors='replace')[-4000:]}")
                time.sleep(0.05)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kills the program: a graceful shutdown is not needed."""
        self.child.kill()
        self.child.wait()


class Launcher(Process):
    """A program that ends when its stdin closes, and then removes what it started and wrote."""

    STDIN = subprocess.PIPE

    def stop(self) -> None:
        self.child.stdin.close()
        self.child.wait(60)


def free_ports(count: int) -> list[int]:
    """Free ports whose gRPC ports are free too."""
    sockets, ports = [], []
    try:
        while len(ports) < count:
            first = socket.socket()
            sockets.append(first)
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            if port + GRPC_OFFSET > 65_535:
                continue
            grpc = socket.socket()
            sockets.append(grpc)
            try:
                grpc.bind(("127.0.0.1", port + GRPC_OFFSET))
            except OSError:
                continue
            ports.append(port)
    finally:
        for held_socket in sockets:
            held_socket.close()
    return ports
