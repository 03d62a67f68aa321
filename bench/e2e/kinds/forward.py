"""Objects that are forwarded as they are: straight from the store, through the gateway, and through nginx."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import programs
from stack import BUCKET

from ..results import Arm, Cell
from ..scenario import Link, Scenario
from ..tiers import Tiers, started
from . import Run, cell_of, circumstances, in_turns

NGINX = Path("/usr/sbin/nginx")
TEMPLATE = programs.ROOT / "bench/nginx.conf"
# A turn moves about so many bytes, in at most so many requests.
VOLUME, MOST = 256 << 20, 4_000
OBJECTS = 16
CONNECTIONS = 8


def cells(scenario: Scenario, run: Run) -> Iterator[Cell]:
    """A cell for each size of objects and each link."""
    with ExitStack() as stack:
        proxies = {"plain": run.tiers.stack.store, "again": run.tiers.stack.store, "gateway": run.tiers.stack.gateway}
        notes = circumstances(scenario, run)
        if why := without_nginx(run.tiers):
            notes.append(f"nginx is left out: {why}")
        else:
            proxies["nginx"] = nginx(run.tiers, run.folder, stack)
        for text in scenario.links:
            link = Link.parse(text)
            for size in scenario.sizes:
                yield cell(scenario, run, link, size, proxies, notes)


def cell(scenario: Scenario, run: Run, link: Link, size: int, proxies: dict[str, str], notes: list[str]) -> Cell:
    """Objects of one size."""
    requests = min(max(VOLUME // size, CONNECTIONS), MOST)
    objects = min(OBJECTS, requests)
    prefix = run.data.blobs(size, objects)
    measured = run.tiers.shape(link.bits(None), scenario.latency_ms)
    kinds = {"plain": "plain", "again": "again", "gateway": "pushed", "nginx": "peer"}
    found = {name: Arm(kinds[name], settings(name)) for name in proxies}

    def turn(name: str) -> None:
        command = reader(proxies[name], prefix, objects, size, requests, CONNECTIONS)
        found[name].turns.append(run.tiers.turn(lambda: run.tiers.run(command)))

    in_turns(list(found), scenario.repeats, turn, run.progress)
    what = [*notes, f"{requests} requests a turn over {CONNECTIONS} connections"]
    name = f"GET of {human(size)}, {link.text} link"
    return cell_of(name, "forwarding", found, what, asked=link.bits(None), measured=measured)


def reader(endpoint: str, prefix: str, objects: int, size: int, requests: int, connections: int) -> list:
    """What reads objects as fast as they come."""
    counts = ["--objects", objects, "--bytes", size, "--requests", requests, "--connections", connections]
    return [programs.BINARIES / "object-reader", endpoint, BUCKET, prefix, *counts]


def settings(name: str) -> str:
    """What stands in the way."""
    return {"gateway": "`pushdown-gateway` forwards", "nginx": "`proxy_pass`, one worker, bench/nginx.conf"}.get(
        name, "straight from the store"
    )


def without_nginx(tiers: Tiers) -> str:
    """Why nginx cannot be held against the gateway here, if so."""
    if "gateway" in tiers.stack.elsewhere:
        return "it would stand beside the gateway, which is elsewhere"
    if not tiers.stack.store.startswith("http://"):
        return "the store is not one of plain HTTP"
    return "" if NGINX.exists() else "it is not installed"


def nginx(tiers: Tiers, folder: Path, stack: ExitStack) -> str:
    """nginx beside the gateway, on its core; its address."""
    place = folder / "nginx"
    place.mkdir()
    address = f"{tiers.link.gateway.address}:{tiers.stack.spare_port}"
    text = TEMPLATE.read_text(encoding="utf-8")
    values = {"DIR": place, "LISTEN": address, "STORE": tiers.stack.store.removeprefix("http://"), "BUFFERING": "on"}
    text = re.sub("@([A-Z]+)@", lambda found: str(values[found[1]]), text)
    (place / "nginx.conf").write_text(text, encoding="utf-8")
    command = [*tiers.link.gateway.command, NGINX, "-c", place / "nginx.conf", "-p", place]
    # Root's worker would be another user's, which a container may not let it be, and which could not read its folders.
    command += ["-g", "user root;"] if os.geteuid() == 0 else []
    stack.enter_context(started(tiers, "nginx", command))
    tiers.stack.wait("nginx", lambda: tiers.stack.accepts(address))
    return f"http://{address}"


def human(size: int) -> str:
    """A size for people."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size / 1000:.0f} KB"
