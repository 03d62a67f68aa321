"""The functional tests of minio-py."""

import json
import pathlib
import subprocess

from stores import ACCESS, ROOT, SECRET
from suites.results import Results

DRIVER = ROOT / "scripts/suites/minio_py_driver.py"
PREFIX = "minio-py:"
# All tests take a minute. Some wait for their threads without a limit.
TIMEOUT_SECONDS = 900


class MinioPy:
    """The tests of a source of minio-py, run with an interpreter that has the same version of it."""

    name = ledger = "minio-py"
    is_complete = True

    def __init__(self, python: pathlib.Path, tests: pathlib.Path):
        self._python, self._tests = python, tests

    def run(self, address: str, folder: pathlib.Path, name_filter: str = "", tests: list[str] | None = None) -> Results:
        """Runs the tests whose names contain `name_filter`, or only `tests`. Their log goes to `folder`."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "SERVER_ENDPOINT": address,
            "ACCESS_KEY": ACCESS,
            "SECRET_KEY": SECRET,
            "ENABLE_HTTPS": "0",
            "MINT_MODE": "full",
        }
        command = [str(self._python), str(DRIVER), str(self._tests), f"--filter={name_filter}", *(tests or [])]
        log = folder / "tests.log"
        with log.open("wb") as output:
            ended = subprocess.run(
                command, cwd=folder, env=environment, stdout=output, stderr=output, timeout=TIMEOUT_SECONDS, check=False
            )
        if ended.returncode != 0:
            raise RuntimeError(f"minio-py: the tests exited with {ended.returncode}:\n{log.read_text()[-4000:]}")
        lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
        return {entry["name"].removeprefix(PREFIX): reason(entry) for entry in map(json.loads, lines)}


def reason(entry: dict) -> str | None:
    """Why a test failed."""
    if entry["status"] == "PASS":
        return None
    return entry.get("message") or entry.get("alert") or entry["status"]
