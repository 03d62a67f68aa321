"""Shapes a network device of this machine in both directions, and restores it however a run ends.

`tc` shapes only what a device sends. To shape what it receives, the packets are redirected through a second device. The second
device carries the process id of the run in its name, and the name of the shaped device as its alias, so the next run can clean up
after a killed one.
"""

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator

from shaping import attempt, run, shaper

PREFIX = "pd"


@contextlib.contextmanager
def shaped(interface: str) -> Iterator[str]:
    """Redirects what a device receives through a second device. Yields the second device's name."""
    ingress = f"{PREFIX}{os.getpid()}"
    queue = ["tc", "qdisc", "add", "dev", interface, "handle", "ffff:", "ingress"]
    every = ["protocol", "all", "u32", "match", "u32", "0", "0"]
    redirect = ["action", "mirred", "egress", "redirect", "dev", ingress]
    # An earlier process may have had the same id: containers that share a network repeat them.
    restore(os.getpid())
    try:
        run("ip", "link", "add", "name", ingress, "type", "ifb")
        # The alias comes first, so that cleaning up is possible from here on.
        run("ip", "link", "set", "dev", ingress, "alias", interface, "up")
        run(*queue)
        run("tc", "filter", "add", "dev", interface, "parent", "ffff:", *every, *redirect)
        yield ingress
    finally:
        restore(os.getpid())


def restore(process: int) -> None:
    """Restores the device that a run has shaped, if any."""
    ingress = f"{PREFIX}{process}"
    if process in running_processes():
        if interface := shaped_interface(ingress):
            for queue in ("ingress", "root"):
                attempt("tc", "qdisc", "delete", "dev", interface, queue)
        # Last: it records which device to restore.
        attempt("ip", "link", "delete", "dev", ingress)


def running_processes() -> list[int]:
    """Process ids of the second devices that exist. Devices of others with this prefix have no number."""
    suffixes = [name.removeprefix(PREFIX) for _, name in socket.if_nameindex() if name.startswith(PREFIX)]
    return [int(process) for process in suffixes if process.isdecimal()]


def shaped_interface(ingress: str) -> str:
    """The device whose received packets pass through this one."""
    show = ["ip", "-json", "link", "show", "dev", ingress]
    ended = subprocess.run(show, check=False, capture_output=True, text=True)
    return json.loads(ended.stdout or "[{}]")[0].get("ifalias", "")


def try_shaping(interface: str) -> None:
    """Shapes a device and restores it. A container may be allowed to do this but not to create a namespace."""
    with shaped(interface):
        run("tc", "qdisc", "replace", "dev", interface, "root", *shaper(1e9))
