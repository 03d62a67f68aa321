"""docs/TROUBLESHOOTING.md: its Python code prints what the page says. Its commands are in tests/clients."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import sys
from collections.abc import Iterator

import pytest

from stores import ROOT, start_gateway
from transcripts import Addresses, Section, differs, environment_of, photos_of_the_page, run, sections

PAGE = (ROOT / "docs/TROUBLESHOOTING.md").read_text()
SECTIONS = [section for section in sections(PAGE) if "python" in section.fences]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a gateway that serves the objects of the page."""
    folder = tmp_path_factory.mktemp("page")
    photos_of_the_page(folder / "store", ROOT / "testkit/fixtures/photos")
    with contextlib.ExitStack() as running:
        settings = {"store": folder / "store", "access_key": "dev", "secret_key": "devsecret"}
        process, addresses = start_gateway(folder / "gateway", **settings)
        running.callback(process.stop)
        yield addresses["listen"]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_code_prints_what_the_page_says(section: Section, gateway: str, tmp_path: pathlib.Path) -> None:
    (_, code), (_, expected) = section.blocks
    assert [fence for fence, _ in section.blocks] == ["python", "text"]
    (tmp_path / "code.py").write_text(code)
    environment = environment_of(tmp_path) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    environment |= {"AWS_ACCESS_KEY_ID": "dev", "AWS_SECRET_ACCESS_KEY": "devsecret", "AWS_REGION": "us-east-1"}
    environment["AWS_ENDPOINT_URL_S3"] = f"http://{gateway}"
    printed = run([sys.executable, "code.py"], tmp_path, environment, Addresses({}))
    reason = differs(expected, printed)
    assert reason is None, reason


def test_the_page_has_python_code() -> None:
    assert len(SECTIONS) == len(re.findall(r"^```python$", PAGE, re.MULTILINE)) >= 4
