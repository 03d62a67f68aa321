"""docs/BENCHMARKS.md and its figures match the recorded run."""

import re
from pathlib import Path

import pytest

from ..results import load
from .build import cell, results

pytest.importorskip("matplotlib", reason="it is in .venv-e2e", exc_type=ImportError)
from .. import document  # noqa: E402

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_committed_page_is_up_to_date(tmp_path: Path) -> None:
    """`make benchmarks-doc` updates it."""
    recorded = tmp_path / "figures/e2e.json"
    recorded.parent.mkdir()
    recorded.write_bytes((DOCS / "figures/e2e.json").read_bytes())
    written = document.write(load(recorded), recorded, tmp_path / "BENCHMARKS.md")
    assert {path.name for path in written} == {"BENCHMARKS.md", *(path.name for path in (DOCS / "figures").glob("*.svg"))}
    for path in written:
        committed = DOCS / path.relative_to(tmp_path)
        assert committed.read_bytes() == path.read_bytes(), f"{committed} is out of date: `make benchmarks-doc` writes it"


def test_the_page_shows_each_figure_in_the_folder(tmp_path: Path) -> None:
    page = (DOCS / "BENCHMARKS.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(figures/([^)]*[.]svg)\)", page)) == {path.name for path in (DOCS / "figures").glob("*.svg")}


def test_a_paragraph_has_at_most_three_numbers() -> None:
    """Figures belong in tables."""
    page = (DOCS / "BENCHMARKS.md").read_text(encoding="utf-8")
    prose = re.sub(r"`[^`]*`|\([^)]*\)", "", page)
    paragraphs = [part for part in re.split(r"\n\n|\n(?=- )", prose) if not part.startswith(("|", "#", "!", "<"))]
    assert [part for part in paragraphs if len(re.findall(r"\d[\d.,]*", part)) > 3] == []


def test_sections_without_results_are_left_out() -> None:
    page = document.markdown(results(cell(plain=[1.0] * 3, auto=[0.5] * 3)), {})
    assert "## Photos" in page and "![" not in page
    for title in ("Tables", "Forwarding", "Tenants", "Transfer learning", "Planner's simulator"):
        assert f"## {title}" not in page
    assert "| cell | `auto` | 200 | 2.000 (2.000 to 2.000) |" in page


def test_a_noisy_cell_is_marked_and_a_loss_comes_first() -> None:
    page = document.markdown(results(cell(plain=[1.0] * 3, repeat=[1.0, 1.2, 0.9], pushed=[0.4] * 3, auto=[0.5] * 3)), {})
    assert page.index("## Losses and undecided verdicts") < page.index("## Photos")
    assert "| s | cell | `pushed` | `auto` | 1.250 (1.250 to 1.250)* |" in page
    assert "| cell | `pushed` | 250 | 2.500 (2.500 to 2.500)* |" in page
