"""A program under test, as a process of its own that ends with the test."""

import pathlib
import socket
import subprocess
import time
from collections.abc import Callable

# SeaweedFS gives each of its ports a gRPC twin this much higher.
TWIN = 10_000


class Process:
    """A running program. Its output goes to a file, which a failure shows."""

    def __init__(self, command: list[str], log: pathlib.Path, env: dict[str, str] | None = None):
        self.log = log
        with log.open("wb") as output:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=env
            )

    def wait_until(self, what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Waits until `ready`, and fails at once when the program has ended. A failure leaves nothing running."""
        deadline = time.monotonic() + seconds
        try:
            while not ready():
                ended = self.child.poll()
                if ended is not None or time.monotonic() > deadline:
                    why = f"ended with {ended}" if ended is not None else f"not within {seconds} s"
                    raise RuntimeError(f"{what}: {why}\n{self.log.read_text(errors='replace')[-4000:]}")
                time.sleep(0.05)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kills it: there is nothing worth waiting for."""
        self.child.kill()
        self.child.wait()


def free_ports(count: int) -> list[int]:
    """Free ports whose twins are free too."""
    held, ports = [], []
    try:
        while len(ports) < count:
            first = socket.socket()
            held.append(first)
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            if port + TWIN > 65_535:
                continue
            twin = socket.socket()
            held.append(twin)
            try:
                twin.bind(("127.0.0.1", port + TWIN))
            except OSError:
                continue
            ports.append(port)
    finally:
        for one in held:
            one.close()
    return ports
