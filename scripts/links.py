"""A store's side behind a link that can be shaped: a network namespace, where root may make one."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
from collections.abc import Iterator

# For benchmarks of network devices (RFC 2544): no one else's. Two demos at a time have two.
NETWORK = f"198.18.{os.getpid() % 256}"
# SeaweedFS takes each port's twin so much higher, too.
GRPC = 10_000


class Side:
    """Where the store's side is, and how commands get there."""

    def __init__(self, address: str, command: list[str], reason: str) -> None:
        """Without a reason the link can be shaped."""
        self.address, self.command, self.reason = address, command, reason
        self.can_be_shaped = not reason

    def free_ports(self, count: int) -> list[int]:
        """Ports that are free, as their twins are; in a namespace of its own all are."""
        if self.can_be_shaped:
            return list(range(9000, 9000 + count))
        found, held = [], []
        while len(found) < count:
            listener = socket.create_server((self.address, 0))
            held.append(listener)
            port = listener.getsockname()[1]
            if port + GRPC < 65_536:
                with contextlib.suppress(OSError):
                    held.append(socket.create_server((self.address, port + GRPC)))
                    found.append(port)
        for listener in held:
            listener.close()
        return found

    def shape(self, bits_per_second: float) -> None:
        """Lets so much through, each way."""
        shape = shaper(bits_per_second)
        run("tc", "qdisc", "replace", "dev", device("h"), "root", *shape)
        run(*self.command, "tc", "qdisc", "replace", "dev", device("s"), "root", *shape)

    def open(self) -> None:
        """Lets everything through again."""
        for command in ([], self.command):
            end = device("s" if command else "h")
            # Fails where there is nothing to take away.
            subprocess.run([*command, "tc", "qdisc", "delete", "dev", end, "root"], check=False, capture_output=True)

    def received(self) -> int:
        """Bytes that the link has brought here so far; none where there is no link."""
        counter = pathlib.Path(f"/sys/class/net/{device('h')}/statistics/rx_bytes")
        return int(counter.read_text()) if counter.exists() else 0


def shaper(bits_per_second: float) -> list[str]:
    """A queueing discipline for `tc`."""
    return ["tbf", "rate", f"{bits_per_second:.0f}bit", "burst", "32kb", "latency", "200ms"]


def device(end: str) -> str:
    """The name of an end of the link."""
    return f"pd{os.getpid()}{end}"


def run(*command: str) -> None:
    """Runs a command that says nothing when it is well."""
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextlib.contextmanager
def side() -> Iterator[Side]:
    """The store's side: a namespace with a link to this one, or this machine's loopback."""
    if reason := forbidden():
        yield Side("127.0.0.1", [], reason)
        return
    name = f"pushdown-{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    try:
        run("ip", "netns", "add", name)
        run("ip", "link", "add", device("h"), "type", "veth", "peer", "name", device("s"), "netns", name)
        run("ip", "address", "add", f"{NETWORK}.1/30", "dev", device("h"))
        run("ip", "link", "set", device("h"), "up")
        run(*inside, "ip", "address", "add", f"{NETWORK}.2/30", "dev", device("s"))
        run(*inside, "ip", "link", "set", device("s"), "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        yield Side(f"{NETWORK}.2", inside, "")
    finally:
        # The link goes with its end in the namespace, at once where the other end is asked.
        for command in (("ip", "link", "delete", device("h")), ("ip", "netns", "delete", name)):
            subprocess.run(command, check=False, capture_output=True)


def forbidden() -> str:
    """Why no link can be shaped here, if so."""
    if os.geteuid() != 0:
        return "that takes root"
    if not (shutil.which("ip") and shutil.which("tc")):
        return "iproute2 is not installed"
    name = f"pushdown-try-{os.getpid()}"
    try:
        run("ip", "netns", "add", name)
        inside = ["ip", "netns", "exec", name]
        run(*inside, "ip", "link", "add", "try0", "type", "veth", "peer", "name", "try1")
        run(*inside, "tc", "qdisc", "add", "dev", "try0", "root", *shaper(1e6))
    except subprocess.CalledProcessError as error:
        return f"`{' '.join(error.cmd)}`: {error.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
    return ""
