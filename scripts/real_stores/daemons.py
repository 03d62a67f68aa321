"""The processes of a store, which end with this one, however it ends."""

import ctypes
import dataclasses
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

# Longest time until a daemon serves, on a machine that also compiles.
LIMIT_SECONDS = 180
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class NotStarted(Exception):
    """The store cannot start; the text says why."""


@dataclasses.dataclass
class Account:
    """An account of a store."""

    access_key: str
    secret_key: str


class Daemons:
    """Runs the programs of a store in a folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.children = folder, {}

    def __enter__(self) -> "Daemons":
        return self

    def __exit__(self, *_: object) -> None:
        """Kills all: their data is not needed any more."""
        for child in self.children.values():
            child.kill()
        for child in self.children.values():
            child.wait()

    def start(self, name: str, command: list[str]) -> None:
        """Starts a program that stays in the foreground."""
        with (self.folder / f"{name}.log").open("wb") as log:
            self.children[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_end_with_the_parent
            )

    def run(self, command: list[str]) -> str:
        """Runs a program to its end, and returns its output."""
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise NotStarted(f"`{' '.join(command)}` did not end\n{self.logs()}") from None
        if ended.returncode != 0:
            text = f"`{' '.join(command)}` exited with {ended.returncode}: {ended.stderr[-2000:]}"
            raise NotStarted(f"{text}\n{self.logs()}")
        return ended.stdout

    def wait_until_http_answers(self, url: str) -> None:
        """Waits for any answer, and fails if a daemon ends."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                urllib.request.urlopen(url, timeout=5).close()
            except urllib.error.HTTPError:
                return
            except OSError as error:
                ended = [name for name, child in self.children.items() if child.poll() is not None]
                if ended or time.monotonic() > deadline:
                    what = f"{' and '.join(ended)} ended" if ended else f"no answer at {url}: {error}"
                    raise NotStarted(f"{what}\n{self.logs()}") from None
                time.sleep(0.05)
            else:
                return

    def logs(self) -> str:
        """The end of each daemon's log."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-2000:]}" for log in logs)


def program(name: str, where: pathlib.Path | None, setup: str) -> str:
    """The path of a program, in `where` or on PATH."""
    path = where / name if where else shutil.which(name)
    if path is None or not pathlib.Path(path).is_file():
        raise NotStarted(f"{name} is missing: run `scripts/setup.sh {setup}`")
    return str(path)


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


def _end_with_the_parent() -> None:
    """Has the kernel kill the program when its parent ends, even by SIGKILL."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
