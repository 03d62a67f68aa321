"""docs/ADDING_AN_OPTION.md: its code runs, and prints what the page says. Options in other pages are those of the declarations."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pushdown
from pushdown.options import Options
from pushdown.store import Connection

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    "README.md",
    "python/README.md",
    "examples/pytorch/README.md",
    "docs/PYTHON.md",
    "docs/SHARDS.md",
    "docs/TROUBLESHOOTING.md",
    "docs/ADDING_AN_OPTION.md",
    "docs/CONNECTING.md",
]
READERS = ("Reader", "TableReader", "Loader", "Dataset", "MapDataset")
GROUPS: dict[str, Any] = {
    name: getattr(pushdown, name) for name in ("Sampling", "Store", "Plan", "IO", "ValueCache")
}
CALLS: dict[str, list[str]] = {
    "get": ["member", "index", "seed", "epoch", "split"],
    "get_many": ["seed", "epoch", "split"],
    "read_table": ["seed", "epoch"],
    "list": ["index", "column", "columns", "include_hidden", "inventory"],
    "index": ["path"],
    "check": ["size", "nbytes"],
    "materialize": ["format", "labels", "seed", "epoch", "target_store", "samples_per_part", "append", "local", "models", "include_hidden", "dry_run", "progress"],
    "warm": ["index", "column", "keep", "stage", "include_hidden", "progress"],
    "explain": ["index", "column", "include_hidden", "samples", "bandwidth", "store_bandwidth", "gateway_cores", "gateways", "batch_size", "host_cores", "cached", "epochs", "seed", "epoch"],
}


def blocks(page: str, fence: str) -> list[str]:
    return re.findall(rf"^```{fence}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_prints_what_the_page_says() -> None:
    page = "docs/ADDING_AN_OPTION.md"
    code, printed = blocks(page, "python"), blocks(page, "text")
    assert len(code) == len(printed) == 2
    names: dict[str, Any] = {"__name__": "__main__"}
    for block, expected in zip(code, printed, strict=True):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block, page, "exec", dont_inherit=True), names)
        assert output.getvalue() == expected


def calls(page: str) -> Iterator[tuple[str, list[str]]]:
    """Every call in the Python code of a page: the last part of its name, and its keyword arguments."""
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                yield name, [keyword.arg for keyword in node.keywords if keyword.arg is not None]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_pages_has_arguments_that_are_declared(page: str) -> None:
    options = [field.name for field in dataclasses.fields(Options)]
    connection = [field.name for field in dataclasses.fields(Connection)]
    found = list(calls(page))
    assert found
    for name, given in found:
        if name in READERS:
            allowed = [*options, "pin_memory"]
        elif name in GROUPS:
            allowed = [field.name for field in dataclasses.fields(GROUPS[name])]
        elif name in CALLS:
            allowed = [*CALLS[name], *connection]
        else:
            continue
        assert set(given) <= set(allowed), (page, name)


@pytest.mark.parametrize("call", CALLS)
def test_the_calls_have_these_arguments(call: str) -> None:
    function: Any = getattr(pushdown, call)
    known = function.__signature__.parameters.values()
    named = [each.name for each in known if each.kind is each.KEYWORD_ONLY or each.name == "path"]
    assert sorted(named) == sorted([*CALLS[call], "gateway", "store"])
