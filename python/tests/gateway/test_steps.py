"""`pushdown.ops` is generated from the native table of steps."""

from __future__ import annotations

import json
import pathlib

from pushdown import _native

STEPS = pathlib.Path(__file__).parents[1] / "unit/data/steps.json"


def test_the_unit_tests_use_the_table_of_the_native_module() -> None:
    assert json.loads(_native.steps_json()) == json.loads(STEPS.read_text())
