"""An existing network device is shaped in both directions, and restored however a run ends.

The device is one of a pair in the tests' own namespaces, which requires root and kernel support.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import device
import links
import programs
import pytest

from . import wire
from .processes import descendants, wait

LOCAL, REMOTE = "198.18.1.1", "198.18.1.2"
WHY_NOT = links.why_not_shapeable()
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{programs.ROOT / 'bench'}:{programs.ROOT / 'scripts'}"}
# A minimal run: guarded, it shapes a device, reports that, and waits until it is ended.
RUN = """
import signal, sys, time
import links
from e2e import guard

if sys.argv[1] == "watch":
    sys.exit(guard.run_watched([sys.executable, "-c", sys.orig_argv[2], "inside", sys.argv[2]]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
with links.create(interface=sys.argv[2]) as link:
    link.shape(50e6)
    print(link.reason, flush=True)
    time.sleep(60)
"""
SWEEP = "import links, sys; sys.exit(links.why_not_shapeable(sys.argv[1]) or 0)"


@dataclass
class Pair:
    """Two namespaces with a device in each, and the command prefixes that run in them."""

    name: str
    local: list[str]
    remote: list[str]

    def leftovers(self) -> list[str]:
        """Devices that a run added, and the queues of the device."""
        show = lambda *what: json.loads(subprocess.check_output([*self.local, *what]))
        added = [each["ifname"] for each in show("ip", "-json", "link", "show") if each["ifname"].startswith(device.PREFIX)]
        return added + [each["kind"] for each in show("tc", "-json", "qdisc", "show", "dev", "dev0") if each["kind"] != "noqueue"]


@pytest.fixture(name="pair")
def pair_() -> Iterator[Pair]:
    """Two connected devices."""
    # A name that no run takes for its own.
    names = [f"e2e-{end}-{os.getpid()}" for end in ("local", "remote")]
    pair = Pair(names[0], *(["ip", "netns", "exec", name] for name in names))
    try:
        for name in names:
            links.run("ip", "netns", "add", name)
        links.run(*pair.local, "ip", "link", "add", "dev0", "type", "veth", "peer", "name", "dev1", "netns", names[1])
        for command, end, address in ((pair.local, "dev0", LOCAL), (pair.remote, "dev1", REMOTE)):
            links.run(*command, "ip", "address", "add", f"{address}/30", "dev", end)
            links.run(*command, "ip", "link", "set", end, "up")
        with inside(pair):
            if reason := links.why_not_shapeable("dev0"):
                pytest.skip(f"no device can be shaped: {reason}")
        yield pair
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@contextmanager
def inside(pair: Pair) -> Iterator[None]:
    """Runs this thread in the device's namespace."""
    home, namespace = (os.open(path, os.O_RDONLY) for path in ("/proc/thread-self/ns/net", links.NAMESPACES / pair.name))
    try:
        links.enter(namespace)
        yield
    finally:
        links.enter(home)
        os.close(home)
        os.close(namespace)


pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"links cannot be shaped: {WHY_NOT}")


def test_a_shaped_device_has_its_rate_in_both_directions(pair: Pair) -> None:
    with inside(pair), links.create(interface="dev0") as link:
        link.shape(100e6)
        assert wire.down(pair.remote, REMOTE, 12_500_000) == pytest.approx(100e6, rel=0.05)
        assert wire.up(pair.remote, REMOTE, 12_500_000) == pytest.approx(100e6, rel=0.05)
        link.remove_limits()
        assert wire.down(pair.remote, REMOTE, 50_000_000) > 300e6
        link.shape(100e6)
    assert pair.leftovers() == []


@pytest.mark.parametrize(
    "killed, number",
    [
        (["outer"], signal.SIGTERM),
        (["outer"], signal.SIGKILL),
        (["inner"], signal.SIGKILL),
        (["outer", "inner"], signal.SIGKILL),
    ],
)
def test_a_killed_run_restores_its_device(pair: Pair, tmp_path: Path, killed: list[str], number: signal.Signals) -> None:
    command = [*pair.local, sys.executable, "-c", RUN, "watch", "dev0"]
    # If both processes are killed, their folder is removed with the test's.
    env = ENVIRONMENT | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, cwd=programs.ROOT, stdout=subprocess.PIPE, text=True) as outer:
        line, found = outer.stdout.readline(), pair.leftovers()
        (inner,) = descendants(outer.pid)
        # The inner process first: otherwise the kernel would signal the outer one's death to it.
        for process in [inner] * ("inner" in killed) + [outer.pid] * ("outer" in killed):
            os.kill(process, number)
    assert line == "\n" and {"tbf", "ingress", f"{device.PREFIX}{inner}"} <= set(found)
    wait("the run has ended", lambda: not Path(f"/proc/{inner}").exists())
    if len(killed) == 2:
        # Neither could clean up: the next run does, before it checks whether the device can be shaped.
        subprocess.run([*pair.local, sys.executable, "-c", SWEEP, "dev0"], env=ENVIRONMENT, cwd=programs.ROOT, check=True)
    wait("nothing is left", lambda: pair.leftovers() == [])
