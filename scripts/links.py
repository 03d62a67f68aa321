"""A link that can be shaped: store, gateway and trainer in three network namespaces, where root may make them.

    trainer ==(shaped)== gateway ---- store

The gateway stands beside the store: what goes to the store directly takes the same shaped link. This process is the trainer's
side while the links are there, and so is what it starts.
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

# For benchmarks of network devices (RFC 2544): no one else's, and each run's namespaces have them for themselves.
TRAINER, GATEWAY, GATEWAY_BEHIND, STORE = "198.18.0.1", "198.18.0.2", "198.18.0.5", "198.18.0.6"
NAMES = "pushdown-{process}-{tier}"
NAMESPACES = pathlib.Path("/run/netns")
# SeaweedFS takes each port's twin so much higher, too.
GRPC = 10_000
NEW_NETWORK = 0x40000000
# What Linux does unless told otherwise, or else what every namespace may have: a kernel's own default can be one that makes
# its own rates.
CONTROLS = ("cubic", "reno")
# Up to here packets go one by one; a faster link would take too much of the CPUs so.
SINGLY = 250e6
# What a device hands on as one packet, in packets, where nothing is said.
SEGMENTS = 65_535


@dataclass
class Place:
    """Where a tier listens, and what stands before its commands."""

    address: str
    command: list[str] = field(default_factory=list)


@dataclass
class Links:
    """Where the tiers are. Without a reason the link between trainer and gateway can be shaped."""

    store: Place
    gateway: Place
    reason: str = ""
    # The device of this side, and the queues in either direction: a command's beginning, and a device.
    device: str = "trainer"
    ends: list[tuple[list[str], str]] = field(default_factory=list)
    # Devices between namespaces. A shaped link carries packets as Ethernet does; otherwise the kernel hands on up to 64 KB as
    # one, with one head, and what is sent in large pieces has more of the link than what is sent in small ones.
    devices: list[tuple[list[str], str]] = field(default_factory=list)

    @property
    def can_be_shaped(self) -> bool:
        return not self.reason

    def free_ports(self, count: int) -> list[int]:
        """Ports that are free, as their twins are; in a namespace of its own all are, and differ from those of other runs."""
        if self.store.command:
            first = 10_000 + os.getpid() % 4_000 * 10
            return list(range(first, first + count))
        found, held = [], []
        while len(found) < count:
            listener = socket.create_server((self.store.address, 0))
            held.append(listener)
            port = listener.getsockname()[1]
            if port + GRPC < 65_536:
                with contextlib.suppress(OSError):
                    held.append(socket.create_server((self.store.address, port + GRPC)))
                    found.append(port)
        for listener in held:
            listener.close()
        return found

    def shape(self, bits_per_second: float, latency_ms: float = 0.0) -> None:
        """Lets so much through, each way, and so much later: without a limit all of it, without latency at once."""
        self.open()
        for command, end in self.devices if bits_per_second <= SINGLY else []:
            run(*command, "ip", "link", "set", "dev", end, "gso_max_segs", "1")
        for command, end in self.ends:
            add, place = [*command, "tc", "qdisc", "add", "dev", end], ["root"]
            if bits_per_second < float("inf"):
                run(*add, "root", "handle", "1:", *shaper(bits_per_second))
                place = ["parent", "1:"]
            if latency_ms:
                run(*add, *place, "handle", "2:", "netem", "delay", f"{latency_ms}ms")

    def can_delay(self) -> bool:
        """Whether the kernel has netem, which is tried; the link is open afterwards."""
        try:
            self.shape(float("inf"), 1.0)
        except subprocess.CalledProcessError:
            return False
        finally:
            self.open()
        return True

    def open(self) -> None:
        """Lets everything through again."""
        for command, end in self.ends:
            attempt(*command, "tc", "qdisc", "delete", "dev", end, "root")
        for command, end in self.devices:
            run(*command, "ip", "link", "set", "dev", end, "gso_max_segs", str(SEGMENTS))
        if self.devices:
            # A connection keeps the limit under which it was made, and the gateway keeps those to the store: each piece of an
            # object as a packet of its own, over an open link, takes store and gateway three times the CPU.
            attempt(*self.store.command, "ss", "-K", "state", "established", "dst", GATEWAY_BEHIND)

    def counters(self) -> dict[str, int]:
        """Bytes and packets of the link so far, to this side and from it; none where there is no link."""
        for line in pathlib.Path("/proc/thread-self/net/dev").read_text().splitlines():
            name, _, numbers = line.partition(":")
            if self.can_be_shaped and name.strip() == self.device:
                fields = [int(number) for number in numbers.split()]
                return {"down": fields[0], "packets_down": fields[1], "up": fields[8], "packets_up": fields[9]}
        return {}


def name(tier: str, process: int | None = None) -> str:
    """The namespace of a tier of a run."""
    return NAMES.format(process=process or os.getpid(), tier=tier)


def enter(namespace: int) -> None:
    """This thread, and what it starts, is in that network from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def links(wanted: bool = True, interface: str | None = None) -> Iterator[Links]:
    """Three namespaces with shaped links, a device of this machine that is shaped, or its loopback."""
    loopback = Place("127.0.0.1"), Place("127.0.0.1")
    if reason := forbidden(interface) if wanted else "that was not asked for":
        yield Links(*loopback, reason)
        return
    if interface is not None:
        with device.shaped(interface) as back:
            yield Links(*loopback, device=interface, ends=[([], interface), ([], back)])
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        inside = {tier: ["ip", "netns", "exec", name(tier)] for tier in ("trainer", "gateway", "store")}
        connect(inside)
        trainer = os.open(NAMESPACES / name("trainer"), os.O_RDONLY)
        enter(trainer)
        os.close(trainer)
        ends = [([], "trainer"), (inside["gateway"], "gateway")]
        devices = [*ends, (inside["gateway"], "behind"), (inside["store"], "store")]
        yield Links(Place(STORE, inside["store"]), Place(GATEWAY, inside["gateway"]), ends=ends, devices=devices)
    finally:
        enter(home)
        os.close(home)
        remove(os.getpid())


def connect(inside: dict[str, list[str]]) -> None:
    """Makes the namespaces, and the two links between them."""
    for tier, command in inside.items():
        run("ip", "netns", "add", name(tier))
        run(*command, "ip", "link", "set", "lo", "up")
        # The first of them that is allowed; a connection is to know nothing of those before it, when the link was another.
        tried = [f"echo {control} 2>/dev/null > tcp_congestion_control" for control in CONTROLS]
        run(*command, "sh", "-c", f"cd /proc/sys/net/ipv4; echo 1 > tcp_no_metrics_save; {' || '.join(tried)}")
    for ends in (
        (("trainer", "trainer", TRAINER), ("gateway", "gateway", GATEWAY)),
        (("gateway", "behind", GATEWAY_BEHIND), ("store", "store", STORE)),
    ):
        (tier, device, _), (other, peer, _) = ends
        run(*inside[tier], "ip", "link", "add", "name", device, "type", "veth", "peer", "name", peer, "netns", name(other))
        for at, end, address in ends:
            run(*inside[at], "ip", "address", "add", f"{address}/30", "dev", end)
            run(*inside[at], "ip", "link", "set", end, "up")
    run(*inside["gateway"], "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    run(*inside["trainer"], "ip", "route", "add", "default", "via", GATEWAY)
    run(*inside["store"], "ip", "route", "add", "default", "via", GATEWAY_BEHIND)


def remove(process: int) -> None:
    """Takes away what a run has made. Links go with their namespaces; a device that was there before is given back."""
    for tier in ("trainer", "gateway", "store"):
        if (NAMESPACES / name(tier, process)).exists():
            attempt("ip", "netns", "delete", name(tier, process))
    device.restore(process)


def sweep() -> None:
    """Takes away what runs have left behind that could not do so themselves."""
    namespaces = NAMESPACES.glob(NAMES.format(process="*", tier="*"))
    found = (namespace.name.split("-")[1] for namespace in namespaces)
    # Whoever else calls a namespace so has no number there.
    for process in {*(int(each) for each in found if each.isdecimal()), *device.runs()}:
        try:
            os.kill(process, signal.SIG_DFL)
        except ProcessLookupError:
            remove(process)


def forbidden(interface: str | None = None) -> str:
    """Why no link can be shaped here, if so: that is tried, once nothing of earlier runs is in the way."""
    if os.geteuid() != 0:
        return "that takes root"
    if not (shutil.which("ip") and shutil.which("tc")):
        return "iproute2 is not installed"
    sweep()
    try:
        try_namespace() if interface is None else device.try_it(interface)
    except subprocess.CalledProcessError as error:
        return f"`{' '.join(error.cmd)}`: {error.stderr.strip()}"
    return ""


def try_namespace() -> None:
    """Makes a namespace with a link in it that is shaped, and takes it away again."""
    trial = name("trial")
    try:
        run("ip", "netns", "add", trial)
        inside = ["ip", "netns", "exec", trial]
        run(*inside, "ip", "link", "add", "name", "try0", "type", "veth", "peer", "name", "try1")
        run(*inside, "tc", "qdisc", "add", "dev", "try0", "root", *shaper(1e6))
        run(*inside, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    finally:
        attempt("ip", "netns", "delete", trial)
