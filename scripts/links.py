"""A link that can be shaped: store, gateway and trainer in three network namespaces, if root may create them.

    trainer ==(shaped)== gateway ---- store

The gateway runs next to the store. Direct traffic to the store crosses the same shaped link. This process, and the programs
that it starts, are on the trainer's side while the links exist.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

import device
from shaping import attempt, run, shaper

# Addresses for benchmarks of network devices (RFC 2544). Every run has them in its own namespaces.
TRAINER, GATEWAY, GATEWAY_INNER, STORE = "198.18.0.1", "198.18.0.2", "198.18.0.5", "198.18.0.6"
NAMES = "pushdown-{process}-{tier}"
NAMESPACES = pathlib.Path("/run/netns")
# SeaweedFS also listens on each port plus this offset.
GRPC_PORT_OFFSET = 10_000
CLONE_NEWNET = 0x40000000
# Linux's default congestion control, or the one that every namespace may use. A kernel's own default can pace by itself.
CONGESTION_CONTROLS = ("cubic", "reno")
# Up to this rate packets are sent one by one. Above, that would take too much CPU.
MAX_SINGLE_PACKET_BITS_PER_SECOND = 250e6
# The kernel's default of segments per packet.
DEFAULT_SEGMENTS = 65_535


@dataclass
class Endpoint:
    """The address of a tier, and the prefix of commands that run there."""

    address: str
    command: list[str] = field(default_factory=list)


@dataclass
class Links:
    """The endpoints of the tiers. The link between trainer and gateway can be shaped if `reason` is empty."""

    store: Endpoint
    gateway: Endpoint
    reason: str = ""
    # The device on this side, and the ends of the link as command prefix and device.
    device: str = "trainer"
    ends: list[tuple[list[str], str]] = field(default_factory=list)
    # Devices between namespaces. By default the kernel passes up to 64 KB as one packet with one header, so large writes would
    # get more of a shaped link than small ones. A shaped link therefore carries Ethernet-sized packets.
    devices: list[tuple[list[str], str]] = field(default_factory=list)

    @property
    def can_be_shaped(self) -> bool:
        return not self.reason

    def free_ports(self, count: int) -> list[int]:
        """Free ports whose ports at the gRPC offset are free too. In a namespace all are free; they differ between runs."""
        if self.store.command:
            # Below the ports of outgoing connections, with the gRPC offset too.
            first = 10_000 + os.getpid() % 1_200 * 10
            return list(range(first, first + count))
        found, held = [], []
        while len(found) < count:
            listener = socket.create_server((self.store.address, 0))
            held.append(listener)
            port = listener.getsockname()[1]
            if port + GRPC_PORT_OFFSET < 65_536:
                with contextlib.suppress(OSError):
                    held.append(socket.create_server((self.store.address, port + GRPC_PORT_OFFSET)))
                    found.append(port)
        for listener in held:
            listener.close()
        return found

    def shape(self, bits_per_second: float, latency_ms: float = 0.0) -> None:
        """Limits the link to this rate and adds this latency, in each direction. An infinite rate sets no limit."""
        self.remove_limits()
        for command, end in self.devices if bits_per_second <= MAX_SINGLE_PACKET_BITS_PER_SECOND else []:
            run(*command, "ip", "link", "set", "dev", end, "gso_max_segs", "1")
        for command, end in self.ends:
            add, parent = [*command, "tc", "qdisc", "add", "dev", end], ["root"]
            if bits_per_second < float("inf"):
                run(*add, "root", "handle", "1:", *shaper(bits_per_second))
                parent = ["parent", "1:"]
            if latency_ms:
                run(*add, *parent, "handle", "2:", "netem", "delay", f"{latency_ms}ms")

    def can_delay(self) -> bool:
        """Whether the kernel has netem. Tries it; afterwards the link has no limits."""
        try:
            self.shape(float("inf"), 1.0)
        except subprocess.CalledProcessError:
            return False
        finally:
            self.remove_limits()
        return True

    def remove_limits(self) -> None:
        """Removes rate and latency."""
        for command, end in self.ends:
            attempt(*command, "tc", "qdisc", "delete", "dev", end, "root")
        for command, end in self.devices:
            run(*command, "ip", "link", "set", "dev", end, "gso_max_segs", str(DEFAULT_SEGMENTS))
        if self.devices:
            # A connection keeps the segment limit of its creation, and the gateway keeps its connections to the store. Over an
            # open link, single packets would triple the CPU of store and gateway.
            attempt(*self.store.command, "ss", "-K", "state", "established", "dst", GATEWAY_INNER)

    def counters(self) -> dict[str, int]:
        """Bytes and packets of the link so far, in both directions; empty without a link."""
        for line in pathlib.Path("/proc/thread-self/net/dev").read_text().splitlines():
            name, _, numbers = line.partition(":")
            if self.can_be_shaped and name.strip() == self.device:
                fields = [int(number) for number in numbers.split()]
                return {"down": fields[0], "packets_down": fields[1], "up": fields[8], "packets_up": fields[9]}
        return {}


def namespace_name(tier: str, process: int | None = None) -> str:
    """The namespace of a tier of a run."""
    return NAMES.format(process=process or os.getpid(), tier=tier)


def enter(namespace: int) -> None:
    """Moves this thread, and what it starts, into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def create(shaping: bool = True, interface: str | None = None) -> Iterator[Links]:
    """Three namespaces with shaped links, a shaped device of this machine, or its loopback."""
    loopback = Endpoint("127.0.0.1"), Endpoint("127.0.0.1")
    if reason := why_not_shapeable(interface) if shaping else "shaping was not requested":
        yield Links(*loopback, reason)
        return
    if interface is not None:
        with device.shaped(interface) as ingress:
            yield Links(*loopback, device=interface, ends=[([], interface), ([], ingress)])
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        inside = {tier: ["ip", "netns", "exec", namespace_name(tier)] for tier in ("trainer", "gateway", "store")}
        connect(inside)
        trainer = os.open(NAMESPACES / namespace_name("trainer"), os.O_RDONLY)
        enter(trainer)
        os.close(trainer)
        ends = [([], "trainer"), (inside["gateway"], "gateway")]
        devices = [*ends, (inside["gateway"], "inner"), (inside["store"], "store")]
        yield Links(Endpoint(STORE, inside["store"]), Endpoint(GATEWAY, inside["gateway"]), ends=ends, devices=devices)
    finally:
        enter(home)
        os.close(home)
        remove(os.getpid())


def connect(inside: dict[str, list[str]]) -> None:
    """Creates the namespaces and the two links between them."""
    for tier, command in inside.items():
        run("ip", "netns", "add", namespace_name(tier))
        run(*command, "ip", "link", "set", "lo", "up")
        # The first allowed congestion control; no metrics cached from connections over an earlier link.
        tried = [f"echo {control} 2>/dev/null > tcp_congestion_control" for control in CONGESTION_CONTROLS]
        run(*command, "sh", "-c", f"cd /proc/sys/net/ipv4; echo 1 > tcp_no_metrics_save; {' || '.join(tried)}")
    for ends in (
        (("trainer", "trainer", TRAINER), ("gateway", "gateway", GATEWAY)),
        (("gateway", "inner", GATEWAY_INNER), ("store", "store", STORE)),
    ):
        (tier, device, _), (other, peer, _) = ends
        add = ["ip", "link", "add", "name", device, "type", "veth", "peer", "name", peer, "netns", namespace_name(other)]
        run(*inside[tier], *add)
        for at, end, address in ends:
            run(*inside[at], "ip", "address", "add", f"{address}/30", "dev", end)
            run(*inside[at], "ip", "link", "set", end, "up")
    run(*inside["gateway"], "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    run(*inside["trainer"], "ip", "route", "add", "default", "via", GATEWAY)
    run(*inside["store"], "ip", "route", "add", "default", "via", GATEWAY_INNER)


def remove(process: int) -> None:
    """Removes the namespaces of a run, and their links with them. Restores a device that it shaped."""
    for tier in ("trainer", "gateway", "store"):
        if (NAMESPACES / namespace_name(tier, process)).exists():
            attempt("ip", "netns", "delete", namespace_name(tier, process))
    device.restore(process)


def sweep() -> None:
    """Cleans up after runs that were killed."""
    namespaces = NAMESPACES.glob(NAMES.format(process="*", tier="*"))
    found = (namespace.name.split("-")[1] for namespace in namespaces)
    # Namespaces of others with this prefix have no number there.
    for process in {*(int(each) for each in found if each.isdecimal()), *device.running_processes()}:
        try:
            os.kill(process, signal.SIG_DFL)
        except ProcessLookupError:
            remove(process)


def why_not_shapeable(interface: str | None = None) -> str:
    """Why links cannot be shaped on this machine; empty if they can. Tries it, after cleaning up after earlier runs."""
    if os.geteuid() != 0:
        return "shaping requires root"
    if not (shutil.which("ip") and shutil.which("tc")):
        return "iproute2 is not installed"
    sweep()
    try:
        try_namespace() if interface is None else device.try_shaping(interface)
    except subprocess.CalledProcessError as error:
        return f"`{' '.join(error.cmd)}`: {error.stderr.strip()}"
    return ""


def try_namespace() -> None:
    """Creates a namespace with a shaped link in it, and deletes it."""
    trial = namespace_name("trial")
    try:
        run("ip", "netns", "add", trial)
        inside = ["ip", "netns", "exec", trial]
        run(*inside, "ip", "link", "add", "name", "try0", "type", "veth", "peer", "name", "try1")
        run(*inside, "tc", "qdisc", "add", "dev", "try0", "root", *shaper(1e6))
        run(*inside, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    finally:
        attempt("ip", "netns", "delete", trial)
