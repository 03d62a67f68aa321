"""What a suite reports, and how two runs of it differ."""

import dataclasses
from collections.abc import Iterable

# Each test by its id, with the reason of its failure, or `None` if it passed. A skipped test has not passed.
Results = dict[str, str | None]


@dataclasses.dataclass
class Comparison:
    """A run through the gateway, next to a run directly at the store. Tests are ids, `stale` are names."""

    # Tests that pass directly only, and are not expected to.
    lost: set[str]
    # Tests that pass directly only, as expected.
    expected: set[str]
    # Tests that pass through the gateway only.
    gained: set[str]
    # Names of expected losses that are none.
    stale: set[str]


def name_of(test: str) -> str:
    """The name of a test, by which the ledger lists it: its id without module and class."""
    return test.rpartition("::")[2]


def passed(results: Results) -> set[str]:
    """The tests that have passed."""
    return {test for test, reason in results.items() if reason is None}


def require_passed(suite: str, direct: Results) -> None:
    """Checks that a run can show losses. Raises `ValueError` if no test passed directly."""
    if not passed(direct):
        expected = f"expected at least 1 of {len(direct)}"
        raise ValueError(f"{suite}: no test passed directly: {expected}; see the logs in .cache/suites, and check --suite and --filter")


def compare(direct: Results, through: Results, expected: Iterable[str]) -> Comparison:
    """Compares two runs. `expected` are the names of expected losses."""
    names = set(expected)
    lost = passed(direct) - passed(through)
    known = {test for test in lost if name_of(test) in names}
    return Comparison(
        lost=lost - known,
        expected=known,
        gained=passed(through) - passed(direct),
        stale=names - {name_of(test) for test in known},
    )
