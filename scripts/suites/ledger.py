"""The ledger: tests that pass directly at the store and not through the gateway, with the reason."""

import pathlib
import tomllib

from suites.modes import GATEWAY_MODES

FIELDS = {"suite", "modes", "reason", "tests"}


class Ledger:
    """The expected losses of all suites."""

    def __init__(self, reasons: dict[tuple[str, str, str], str]):
        self._reasons = reasons

    @classmethod
    def read(cls, path: pathlib.Path, suites: set[str]) -> "Ledger":
        """Reads a file. `suites` are the names that it may use. Raises `ValueError` for an invalid entry."""
        table = tomllib.loads(path.read_text())
        reasons: dict[tuple[str, str, str], str] = {}
        for number, entry in enumerate(table.pop("lost", []), 1):
            place = f"{path}, entry {number}"
            if set(entry) != FIELDS:
                raise ValueError(f"{place}: expected {', '.join(sorted(FIELDS))}, found {', '.join(sorted(entry))}")
            if not entry["reason"]:
                raise ValueError(f"{place}: expected a reason")
            for kind, found, known in (("suite", {entry["suite"]}, suites), ("modes", set(entry["modes"]), set(GATEWAY_MODES))):
                if found - known:
                    raise ValueError(f"{place}, {kind}: expected {', '.join(sorted(known))}, found {', '.join(sorted(found - known))}")
            for mode in entry["modes"]:
                for test in entry["tests"]:
                    if (entry["suite"], mode, test) in reasons:
                        raise ValueError(f"{place}: {test} is listed twice for {mode}")
                    reasons[entry["suite"], mode, test] = entry["reason"]
        if table:
            raise ValueError(f"{path}: expected [[lost]] only, found {', '.join(sorted(table))}")
        return cls(reasons)

    def names(self, suite: str, mode: str) -> set[str]:
        """The names of the tests of a suite that are expected to be lost in a mode."""
        return {test for listed, at, test in self._reasons if (listed, at) == (suite, mode)}
