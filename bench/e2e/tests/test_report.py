"""The report of a run, docs/BENCHMARKS.md and its sections."""

import os
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="it is in .venv-e2e", exc_type=ImportError)

from .. import report  # noqa: E402
from ..results import Cell, load  # noqa: E402
from ..scenario import KINDS  # noqa: E402
from .build import arm, cell, results, trial  # noqa: E402

FIXTURES = Path(__file__).parent / "fixtures"
DOCS = Path(__file__).resolve().parents[3] / "docs"


def section(text: str, title: str) -> str:
    """The text of a section of the second level."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(text: str) -> list[list[str]]:
    """The columns of the rows of its tables, without headings."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def speedups(*cells: Cell, kind: str = "read") -> list[list[str]]:
    return rows(section(report.markdown(results(*cells, kind=kind)), "Speed-up"))[1:]


def named(name: str, found: Cell) -> Cell:
    found.name = name
    return found


def test_the_report_equals_the_golden_file():
    """GOLDEN=write updates it."""
    found = report.markdown(load(FIXTURES / "run.json"), ["plots/speedup.svg"])
    golden = FIXTURES / "report.md"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_the_committed_pages_are_up_to_date(tmp_path: Path) -> None:
    """`make benchmarks-doc` updates them."""
    recorded = tmp_path / "figures/e2e.json"
    recorded.parent.mkdir()
    recorded.write_bytes((DOCS / "figures/e2e.json").read_bytes())
    written = report.write(load(recorded), recorded, tmp_path / "BENCHMARKS.md")
    committed = [DOCS / "BENCHMARKS.md", *(DOCS / "figures").glob("*.svg"), *(DOCS / "benchmarks").iterdir()]
    assert {path.relative_to(tmp_path) for path in written} == {path.relative_to(DOCS) for path in committed}
    for path in written:
        page = DOCS / path.relative_to(tmp_path)
        assert page.read_bytes() == path.read_bytes(), f"{page} is out of date: `make benchmarks-doc` writes it"


def test_the_pages_show_each_figure_and_link_to_each_section() -> None:
    first = (DOCS / "BENCHMARKS.md").read_text(encoding="utf-8")
    sections = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "benchmarks").iterdir()}
    shown = re.findall(r"\((?:../)?figures/([^)]*[.]svg)\)", first + "".join(sections.values()))
    assert sorted(shown) == sorted(path.name for path in (DOCS / "figures").glob("*.svg"))
    assert set(re.findall(r"\(benchmarks/([^)]*)\)", first)) == set(sections)


def test_the_first_page_fits_a_screen() -> None:
    assert len((DOCS / "BENCHMARKS.md").read_text(encoding="utf-8").splitlines()) <= 75


def test_a_paragraph_has_at_most_three_numbers() -> None:
    """Figures belong in tables."""
    page = (DOCS / "BENCHMARKS.md").read_text(encoding="utf-8")
    prose = re.sub(r"`[^`]*`|\([^)]*\)", "", page)
    paragraphs = [part for part in re.split(r"\n\n|\n(?=- )", prose) if not part.startswith(("|", "#", "!", "<"))]
    assert [part for part in paragraphs if len(re.findall(r"\d[\d.,]*", part)) > 3] == []


def test_each_kind_of_scenario_has_a_section() -> None:
    assert set(report.SECTIONS) == set(KINDS)


def test_sections_without_results_are_left_out() -> None:
    page = report.markdown(results(cell(plain=[1.0] * 3, auto=[0.5] * 3)))
    assert "## Photos" in page and "![" not in page
    for title in ("Tables", "Forwarding", "Tenants", "Transfer learning"):
        assert f"## {title}" not in page
    assert "| `auto` | 200 (200 to 200) | 2.00 (2.00 to 2.00) |" in page
    assert "## Speed-up" not in report.markdown(results(cell(plain=[1.0]), kind="growth"))


def test_speedups_and_targets_precede_the_plots_and_all_scenarios():
    text = report.markdown(load(FIXTURES / "run.json"), ["plots/speedup.svg"])
    places = [text.index(each) for each in ("\n## Speed-up\n", "\n## Targets\n", "\n![speedup]", "\n### Frozen features")]
    assert places == sorted(places) and places[0] == text.index("\n## ")


def test_a_speedup_has_epoch_seconds_the_limit_and_the_repetition():
    found = cell(x=0.3, bound=250, plain=[1.0] * 3, repeat=[1.0] * 3, loader=[0.8] * 3, pushed=[0.6] * 3, auto=[0.5] * 3)
    # The first epoch of `auto` does not count.
    found.arms["auto"].trials = [trial(9.0, 0.5)] * 3
    found.name = "group, 0.3 B = 5 Mbit/s"
    assert speedups(found) == [
        ["group", "0.3 B = 5 Mbit/s", "`loader` 800 ms", "`auto` 500 ms", "1.60 (1.60 to 1.60)", "gateway, 80 %", "1.00 (1.00 to 1.00)"]
    ]


def test_tables_are_compared_with_pyarrow_and_first_starts_with_pushing():
    scanned = cell(plain=[9.0] * 3, pyarrow=[1.0] * 3, auto=[0.5] * 3)
    assert speedups(scanned, kind="table")[0][2:5] == ["`pyarrow` 1.00 s", "`auto` 500 ms", "2.00 (2.00 to 2.00)"]
    start = cell(plain=[1.0], pushed=[2.0] * 3, **{"auto-first": [4.0] * 3})
    start.baseline = "pushed"
    del start.arms["plain"]
    assert speedups(start)[0][2:] == ["`pushed` 2.00 s", "`auto-first` 4.00 s", "0.500 (0.500 to 0.500)", "-", "-"]
    both = cell(plain=[1.0] * 3, **{"auto-first": [4.0] * 3, "auto": [0.5] * 3})
    assert [row[3] for row in speedups(both)] == ["`auto` 500 ms"]


def test_the_smallest_speedup_comes_first_and_failed_samples_before():
    cells = [
        named("ahead", cell(plain=[1.0] * 3, auto=[0.1] * 3)),
        named("slower", cell(plain=[1.0] * 3, auto=[1.1] * 3)),
        named("failed", cell(plain=[1.0] * 3, auto=arm("auto", [0.1] * 3, errors=1))),
        named("equal", cell(plain=[1.0] * 3, auto=[1.0] * 3)),
    ]
    found = speedups(*cells)
    assert [row[1] for row in found] == ["failed", "slower", "equal", "ahead"]
    assert found[0][3:5] == ["`auto` 100 ms, 3 failed", "-"]


def test_missed_targets_are_listed_and_others_counted():
    found = section(report.markdown(load(FIXTURES / "run.json")), "Targets")
    assert found.startswith("\n17 of 22 targets are met.\nA target is met if the median meets it.")
    missed = [row[2] for row in rows(found)[1:]]
    assert missed == ["wire bytes: `plain / auto`", "`auto / plain`", "`auto / best of plain, pushed`", "wire bytes: `plain / auto`",
                      "`auto / upper bound of the gateway`"]  # fmt: skip
    calm = report.markdown(results(cell(plain=[1.0] * 3, repeat=[1.0] * 3, auto=[0.5] * 3)))
    assert section(calm, "Targets").startswith("\n3 of 3 targets are met.") and "missed**" not in calm
    assert "No cell has a target." in report.markdown(results(cell(plain=[1.0])))


def test_a_comparison_has_its_ratio_range_rounds_and_target():
    found = report.markdown(results(cell(plain=[2.9, 3.1, 3.3], auto=[1.0] * 3)))
    assert "| `auto / plain` | 3.10 (2.90 to 3.30 over 3 rounds) | ≥ 0.97 |" in found
    slow = report.markdown(results(cell(plain=[1.0], auto=arm("auto", [2.0], errors=1))))
    assert "| `auto / plain` | 0.500 (0.500 to 0.500 over 1 round), 1 sample failed | ≥ 0.97: **missed** |" in slow


def test_failed_samples_and_skipped_scenarios_come_before_the_sections():
    run = results(cell(plain=[1.0] * 3, auto=[0.5] * 3, loader=arm("loader", [1.0] * 3, errors=1)))
    run.scenarios.append(type(run.scenarios[0])("far", "Far", {}, "no netem"))
    first = section(report.markdown(run), "Targets")
    assert "`loader` failed 3 samples" in first
    assert "far was skipped: no netem" in first
    assert "# Far" not in report.markdown(run)


def test_arms_ahead_of_the_gateways_arm_are_counted_and_named():
    run = results(cell(plain=[1.0] * 3, pushed=arm("pushed", [1.0] * 3, cpu=0.5), resized=[0.2] * 3, auto=[0.5] * 3))
    text = report.markdown(run)
    assert rows(section(text, "All measurements"))[1] == ["[Photos](#photos)", "1", "2.00", "1", "1", "0"]
    assert (
        "- cell: ahead of `auto` in every round: rate: `resized` by 2.50 (2.50 to 2.50 over 3 rounds); "
        "CPU seconds: `pushed` by 2.00 (2.00 to 2.00 over 3 rounds)." in text
    )
    for each in run.scenarios[0].cells[0].arms["plain"].trials:
        each.first_batch_seconds = 0.05
    assert "; first batch: `plain` by 2.00 (2.00 to 2.00 over 3 rounds)." in report.markdown(run)


def test_an_unmeasured_link_is_reported_as_not_measured():
    run = results(cell(plain=[1.0]))
    run.scenarios[0].cells[0].requested_bits_per_second = 100e6
    assert "link: 100 Mbit/s requested, not measured; upper bound: -." in report.markdown(run)
    run.scenarios[0].cells[0].measured_bits_per_second = 98e6
    assert "link: 100 Mbit/s requested, 98.0 Mbit/s measured; upper bound: -." in report.markdown(run)


def test_rates_have_their_range_and_scenarios_their_duration():
    run = results(cell(plain=[1.0, 2.0, 4.0]))
    assert "| `plain` | 50.0 (25.0 to 100) |" in report.markdown(run)
    assert "`make bench-e2e SCENARIO=s`\n" in report.markdown(run)
    run.scenarios[0].duration_seconds = 61.5
    assert "`make bench-e2e SCENARIO=s`; took 61.5 s, set-up included\n" in report.markdown(run)


def test_candidate_plain_readers_are_named():
    text = report.markdown(results(cell(plain=[1.0] * 3, loader=[1.0] * 3, resized=[1.0] * 3, auto=[0.5] * 3)))
    assert "- plain is the fastest of `plain`, `loader`" in text
    text = report.markdown(results(cell(plain=[1.0] * 3, resized=[1.0] * 3, auto=[0.5] * 3)))
    assert "- no loader of others was tried as plain" in text


def test_another_layout_has_no_share_of_the_bound():
    text = report.markdown(results(cell(x=1, bound=50, plain=[1.0] * 3, resized=[0.01] * 3, auto=[2.1] * 3)))
    shares = {row[0]: row[3] for row in rows(section(text, "Photos")) if row[0] in ("`plain`", "`resized`", "`auto`") and " to " in row[1]}
    assert shares == {"`plain`": "200 %", "`resized`": "-", "`auto`": "95 %"}


def test_an_unshaped_link_and_uncommitted_changes_are_reported():
    run = results(cell(plain=[1.0]))
    assert "uncommitted" not in report.markdown(run) and "not shaped" not in report.markdown(run)
    run.dirty, run.environment.shaped, run.environment.shaping_error = True, False, "not root"
    head = section(report.markdown(run), "The run")
    assert "with uncommitted changes" in head
    assert "not shaped: not root. No figure applies to a limited link" in head


def test_a_missing_measurement_has_no_column_or_a_dash():
    run = results(cell(plain=[1.0], pushed=[1.0]))
    only = run.scenarios[0].cells[0].arms["plain"].trials[0]
    other = run.scenarios[0].cells[0].arms["pushed"].trials[0]
    only.stall_seconds = only.batch_wait_p50_seconds = only.batch_wait_p99_seconds = only.first_batch_seconds = None
    only.value_bytes, only.cpu_seconds, only.peak_bytes = None, {"host": 2.0}, {}
    other.stall_seconds = None
    header, plain, _ = rows(report.markdown(run).split("<details>")[1])
    assert "stall" not in header
    shown = {"arm": "`plain`", "wire up": "0 B", "wire down": "1.00 KB", "CPU: host": "20.0 ms"}
    assert {name: part for name, part in zip(header, plain) if part != "-"} == shown


def test_tables_have_seconds_cpu_and_bytes_of_a_read():
    found = cell(plain=arm("plain", [3.0, 2.0, 4.0], wire=2e6, cpu=4.0, samples=1), pyarrow=arm("pyarrow", [0.9] * 3, errors=1, samples=1))
    text = report.markdown(results(found, kind="table"))
    assert "| `plain` | 0.333 (0.250 to 0.500) | - | - | 3.00 s | 2.00 MB | 4.00 s |" in text
    assert "- cell: `pyarrow` failed 3 samples" in text


def test_the_report_has_the_command_of_a_scenario_and_the_bound_of_a_cell():
    text = report.markdown(results(cell(x=0.3, bound=50, plain=[1.0] * 3, auto=[2.1] * 3)))
    assert "`make bench-e2e SCENARIO=s`" in text
    assert "upper bound about 50.0 samples/s (gateway)" in text


def test_an_arm_above_the_bound_shows_it():
    text = report.markdown(results(cell(bound=90, plain=[1.0] * 3, auto=[2.0] * 3)))
    assert "| - | 111 % |" in text and "| 0.500 (0.500 to 0.500) | 56 % |" in text


def test_only_photos_over_links_are_compared_with_published_results():
    found = cell(x=10, plain=[1.0] * 3, auto=[0.5] * 3)
    assert "## For orientation" in report.markdown(results(found))
    assert "## For orientation" not in report.markdown(results(found, kind="tenants"))


def test_bars_in_pipelines_are_escaped():
    run = results(cell(plain=[1.0] * 3, auto=[2.0] * 3))
    run.scenarios[0].cells[0].name = "decode | resize(8, 8)"
    missed = [line for line in section(report.markdown(run), "Targets").splitlines() if "**missed**" in line]
    assert missed and all("decode \\| resize(8, 8)" in line for line in missed)


def trained(**arms: list[tuple[float | None, float | None]]) -> Cell:
    """A cell of arms, with the accuracy and the seconds of each round."""
    found = cell(**{name: [1.0] * len(rounds) for name, rounds in arms.items()})
    for name, rounds in arms.items():
        for one, (accuracy, seconds) in zip(found.arms[name].trials, rounds):
            one.balanced_accuracy, one.trained_seconds = accuracy, seconds
    return found


def test_each_method_has_its_accuracy_and_the_time_until_its_head_is_trained():
    text = report.markdown(results(trained(plain=[(0.75, 9.0), (0.75, 8.0), (0.75, 7.0)], auto=[(0.75, 1.0), (0.75, 4.0), (0.75, 2.0)]),
                                   kind="transfer"))
    assert "| time to the trained head | balanced accuracy |" in text
    assert text.count("| 8.00 s | 0.750 |") == 1 and text.count("| 2.00 s | 0.750 |") == 1
    assert "| s to the trained head: `plain / auto` | 3.50 (2.00 to 9.00 over 3 rounds) | - |" in text
    assert "balanced accuracy" not in report.markdown(results(cell(plain=[1.0])))
