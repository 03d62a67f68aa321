"""The tests of `pushdown.torch` need PyTorch."""

from __future__ import annotations

import importlib.util


def pytest_report_header() -> list[str]:
    if importlib.util.find_spec("torch") is not None:
        return []
    return ["SKIPPED: tests of pushdown.torch, because torch is not installed"]
