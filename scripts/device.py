"""A network device of this machine that is shaped both ways, and given back however a run ends.

What a device receives can be shaped only as what another one sends: it is led through one that is made for it. That one bears
the number of the process, and tells by its alias which device it was made for, so that whoever clears up behind a process that
was killed needs to know nothing else.
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
    """Leads what a device receives through another one: that one's name."""
    back = f"{PREFIX}{os.getpid()}"
    queue = ["tc", "qdisc", "add", "dev", interface, "handle", "ffff:", "ingress"]
    every = ["protocol", "all", "u32", "match", "u32", "0", "0"]
    redirect = ["action", "mirred", "egress", "redirect", "dev", back]
    # Of a process that had this number before: in containers that share a network they are alike each time.
    restore(os.getpid())
    try:
        run("ip", "link", "add", "name", back, "type", "ifb")
        # Before the device is touched.
        run("ip", "link", "set", "dev", back, "alias", interface, "up")
        run(*queue)
        run("tc", "filter", "add", "dev", interface, "parent", "ffff:", *every, *redirect)
        yield back
    finally:
        restore(os.getpid())


def restore(process: int) -> None:
    """Gives back the device that a run has shaped, if it has."""
    back = f"{PREFIX}{process}"
    if process in runs():
        if interface := made_for(back):
            for queue in ("ingress", "root"):
                attempt("tc", "qdisc", "delete", "dev", interface, queue)
        # Last, since it is what tells of the others.
        attempt("ip", "link", "delete", "dev", back)


def runs() -> list[int]:
    """Processes whose devices are there. Whoever else calls a device so has no number there."""
    found = [name.removeprefix(PREFIX) for _, name in socket.if_nameindex() if name.startswith(PREFIX)]
    return [int(process) for process in found if process.isdecimal()]


def made_for(back: str) -> str:
    """The device whose packets go through this one."""
    show = ["ip", "-json", "link", "show", "dev", back]
    ended = subprocess.run(show, check=False, capture_output=True, text=True)
    return json.loads(ended.stdout or "[{}]")[0].get("ifalias", "")


def try_it(interface: str) -> None:
    """Shapes it, and leaves it as it was. In a container that may do so, no namespace can be made."""
    with shaped(interface):
        run("tc", "qdisc", "replace", "dev", interface, "root", *shaper(1e9))
