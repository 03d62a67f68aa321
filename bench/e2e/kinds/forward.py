"""Plain GETs: from the store, through the gateway, and through nginx."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import programs
from stack import BUCKET

from ..results import Arm, Cell
from ..scenario import Link, Scenario
from ..tiers import Tiers, running
from . import RunContext, build_cell, cell_notes, interleave

NGINX = Path("/usr/sbin/nginx")
TEMPLATE = programs.ROOT / "bench/nginx.conf"
# The approximate bytes of a trial, and its most requests.
TRIAL_BYTES, MAX_REQUESTS = 256 << 20, 4_000
OBJECTS = 16
CONNECTIONS = 8


def cells(scenario: Scenario, context: RunContext) -> Iterator[Cell]:
    """A cell for each object size and each link."""
    with ExitStack() as stack:
        tiers = context.tiers
        proxies = {"plain": tiers.stack.store, "repeat": tiers.stack.store, "gateway": tiers.stack.gateway}
        notes = cell_notes(scenario, context)
        if reason := nginx_unavailable_reason(tiers):
            notes.append(f"nginx is left out: {reason}")
        else:
            proxies["nginx"] = start_nginx(tiers, context.folder, stack)
        for text in scenario.links:
            link = Link.parse(text)
            for size in scenario.sizes:
                yield measure_cell(scenario, context, link, size, proxies, notes)


def measure_cell(scenario: Scenario, context: RunContext, link: Link, size: int, proxies: dict[str, str],
                 notes: list[str]) -> Cell:
    """GETs of one object size."""
    requests = min(max(TRIAL_BYTES // size, CONNECTIONS), MAX_REQUESTS)
    objects = min(OBJECTS, requests)
    prefix = context.data.blobs(size, objects)
    measured = context.tiers.shape(link.bits(None), scenario.latency_ms)
    kinds = {"plain": "plain", "repeat": "repeat", "gateway": "pushed", "nginx": "peer"}
    measured_arms = {name: Arm(kinds[name], describe_arm(name)) for name in proxies}

    def run_trial(name: str) -> None:
        command = reader_command(proxies[name], prefix, objects, size, requests, CONNECTIONS)
        measured_arms[name].trials.append(context.tiers.run_trial(lambda: context.tiers.run(command)))

    interleave(list(measured_arms), scenario.rounds, run_trial, context.progress)
    what = [*notes, f"{requests} requests per trial over {CONNECTIONS} connections"]
    name = f"GET of {format_size(size)}, {link.text} link"
    return build_cell(name, "forwarding", measured_arms, what, requested=link.bits(None), measured=measured)


def reader_command(endpoint: str, prefix: str, objects: int, size: int, requests: int, connections: int) -> list:
    """The command that GETs objects at full speed."""
    counts = ["--objects", objects, "--bytes", size, "--requests", requests, "--connections", connections]
    return [programs.BINARIES / "object-reader", endpoint, BUCKET, prefix, *counts]


def describe_arm(name: str) -> str:
    """The proxy of an arm."""
    return {"gateway": "through `pushdown-gateway`", "nginx": "through nginx: `proxy_pass`, one worker, bench/nginx.conf"}.get(
        name, "from the store"
    )


def nginx_unavailable_reason(tiers: Tiers) -> str:
    """Why nginx cannot be compared with the gateway; empty if it can."""
    if "gateway" in tiers.stack.external_tiers:
        return "it runs next to the gateway, and the gateway is external"
    if not tiers.stack.store.startswith("http://"):
        return "the store does not speak plain HTTP"
    return "" if NGINX.exists() else "it is not installed"


def start_nginx(tiers: Tiers, folder: Path, stack: ExitStack) -> str:
    """Starts nginx next to the gateway, on the same core. Returns its URL."""
    place = folder / "nginx"
    place.mkdir()
    address = f"{tiers.link.gateway.address}:{tiers.stack.spare_port}"
    text = TEMPLATE.read_text(encoding="utf-8")
    values = {"DIR": place, "LISTEN": address, "STORE": tiers.stack.store.removeprefix("http://"), "BUFFERING": "on"}
    text = re.sub("@([A-Z]+)@", lambda found: str(values[found[1]]), text)
    (place / "nginx.conf").write_text(text, encoding="utf-8")
    command = [*tiers.link.gateway.command, NGINX, "-c", place / "nginx.conf", "-p", place]
    # Root's worker would run as another user, which a container may forbid and which could not read these folders.
    command += ["-g", "user root;"] if os.geteuid() == 0 else []
    stack.enter_context(running(tiers, "nginx", command))
    tiers.stack.wait("nginx", lambda: tiers.stack.is_listening(address))
    return f"http://{address}"


def format_size(size: int) -> str:
    """A readable size."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size / 1000:.0f} KB"
