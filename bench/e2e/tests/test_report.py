"""The report of a run."""

import os
from pathlib import Path

from .. import report
from ..results import load
from .build import arm, cell, results

FIXTURES = Path(__file__).parent / "fixtures"


def section(text: str, title: str) -> str:
    """What stands under a heading of the second level."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_report_of_a_run_is_the_golden_one():
    """GOLDEN=write writes it anew."""
    found = report.markdown(load(FIXTURES / "run.json"), ["plots/speedup.svg"])
    golden = FIXTURES / "report.md"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_what_is_lost_comes_before_anything_else_and_the_worst_first():
    text = report.markdown(load(FIXTURES / "run.json"))
    assert text.index("## What we lose") == text.index("\n## ") + 1
    outcomes = [line.split("**")[1] for line in section(text, "What we lose or cannot decide").splitlines() if "| **" in line]
    assert outcomes == sorted(outcomes, key=["fail", "undecided", "void"].index)
    assert {"fail", "undecided", "void"} == set(outcomes)


def test_the_run_at_a_glance_comes_behind_what_is_lost_and_before_plots():
    text = report.markdown(load(FIXTURES / "run.json"), ["plots/speedup.svg"])
    first, second, third = (text.index(each) for each in ("\n## What we lose", "\n## At a glance\n", "\n![speedup]"))
    assert first < second < third < text.index("\n## Frozen features")
    assert "## At a glance" not in report.markdown(results(cell(plain=[1.0]), kind="growth"))


def test_a_run_without_a_loss_says_so():
    text = report.markdown(results(cell(plain=[1.0] * 3, again=[1.0] * 3, auto=[0.5] * 3)))
    assert section(text, "What we lose or cannot decide").strip() == "4 verdicts: 4 pass."
    assert "No cell has a verdict." in report.markdown(results(cell(plain=[1.0])))


def test_a_faster_layout_a_failed_sample_and_a_skipped_scenario_are_told_first():
    run = results(cell(plain=[1.0] * 3, resized=[0.2] * 3, auto=[0.5] * 3, loader=arm("loader", [1.0] * 3, errors=1)))
    run.scenarios.append(type(run.scenarios[0])("far", "Far", {}, "no netem"))
    first = section(report.markdown(run), "What we lose or cannot decide")
    assert "`resized` is 2.500 (2.500 to 2.500) times as fast as `auto`" in first
    assert "`loader` failed 3 samples" in first
    assert "far was skipped: no netem" in first
    assert "## Far" not in report.markdown(run)


def test_who_is_ahead_by_cpu_or_with_the_first_batch_is_told_first_too():
    run = results(cell(plain=[1.0] * 3, pushed=arm("pushed", [1.0] * 3, cpu=0.5), auto=[0.5] * 3))
    first = section(report.markdown(run), "What we lose or cannot decide")
    assert "Sparer with CPU seconds than ours by its whole interval" in first
    assert "- s, cell: `auto` takes 2.000 (2.000 to 2.000) times those of `pushed`" in first
    assert "Faster than ours" not in first and "Sooner with the first batch" not in first
    for each in run.scenarios[0].cells[0].arms["plain"].turns:
        each.first_batch_seconds = 0.05
    first = section(report.markdown(run), "What we lose or cannot decide")
    assert "- s, cell: `auto` waits 2.000 (2.000 to 2.000) times as long for it as `plain`" in first


def test_a_link_that_nobody_measured_is_not_called_measured():
    run = results(cell(plain=[1.0]))
    run.scenarios[0].cells[0].asked_link_bits = 100e6
    assert "link: 100 Mbit/s asked, not measured; bound: -." in report.markdown(run)
    run.scenarios[0].cells[0].link_bits = 98e6
    assert "link: 100 Mbit/s asked, 98.0 Mbit/s measured; bound: -." in report.markdown(run)


def test_rates_have_their_spread_and_scenarios_the_time_that_they_took():
    run = results(cell(plain=[1.0, 2.0, 4.0]))
    assert "| `plain` | 50.0 (25.0 to 100) |" in report.markdown(run)
    assert "`make bench-e2e SCENARIO=s`\n" in report.markdown(run)
    run.scenarios[0].seconds = 61.5
    assert "`make bench-e2e SCENARIO=s`; took 61.5 s, set-up included\n" in report.markdown(run)


def test_the_loaders_of_others_that_were_tried_are_named():
    text = report.markdown(results(cell(plain=[1.0] * 3, loader=[1.0] * 3, resized=[1.0] * 3, auto=[0.5] * 3)))
    assert "- plain is the fastest of `plain`, `loader`" in text
    text = report.markdown(results(cell(plain=[1.0] * 3, resized=[1.0] * 3, auto=[0.5] * 3)))
    assert "- no loader of others was tried as plain" in text


def test_another_layout_has_no_part_of_the_bound():
    text = report.markdown(results(cell(x=1, bound=50, plain=[1.0] * 3, resized=[0.01] * 3, auto=[2.1] * 3)))
    (row,) = [line for line in text.splitlines() if line.startswith("| `resized` |")]
    assert "of 50.0" not in row and text.count("of 50.0, gateway") == 2


def test_a_link_that_is_not_shaped_and_changes_that_are_not_committed_are_told():
    run = results(cell(plain=[1.0]))
    assert "not committed" not in report.markdown(run) and "not shaped" not in report.markdown(run)
    run.dirty, run.environment.shaped, run.environment.why_not_shaped = True, False, "not root"
    head = report.markdown(run).split("\n## ")[0]
    assert "with changes that are not committed" in head
    assert "not shaped: not root. No figure here is one of a link" in head


def test_what_an_arm_cannot_tell_is_a_dash():
    run = results(cell(plain=[1.0]))
    only = run.scenarios[0].cells[0].arms["plain"].turns[0]
    only.stall_seconds = only.batch_wait_p50_seconds = only.batch_wait_p99_seconds = only.first_batch_seconds = None
    only.value_bytes, only.cpu, only.peak_bytes = None, {"host": 2.0}, {}
    (row,) = [line for line in report.markdown(run).splitlines() if line.startswith("| `plain`")]
    cells = dict(zip(report.COLUMNS, [part.strip() for part in row.strip("|").split("|")]))
    told = {"arm": "`plain`", "samples/s": "100", "wire up": "0 B", "wire down": "1.00 KB"}
    told |= {"CPU s: host": "20.0"}
    assert {name: part for name, part in cells.items() if part != "-"} == told


def test_the_command_that_runs_a_scenario_again_and_the_bound_of_a_cell_are_there():
    text = report.markdown(results(cell(x=0.3, bound=50, plain=[1.0] * 3, auto=[2.1] * 3)))
    assert "`make bench-e2e SCENARIO=s`" in text
    assert "cannot beat about 50.0 samples/s (gateway)" in text
    assert "95 % of 50.0, gateway" in text


def test_the_report_says_what_the_brackets_of_few_rounds_are():
    text = report.markdown(results(cell(plain=[1.0] * 3, auto=[0.5] * 3)))
    (row,) = [line for line in text.splitlines() if "rate to the fastest plain arm" in line and "**pass**" in line]
    assert "least to greatest of 3 rounds, 75 % sure; no A/A in this cell" in row
    reading = " ".join(section(text, "How to read it").split())
    assert "With fewer than 6 rounds these brackets are no 95 % interval but the least to the greatest round" in reading
    assert "75 % with 3, 87.5 % with 4, 93.8 % with 5" in reading


def test_only_photos_over_links_stand_beside_what_others_published():
    found = cell(x=10, plain=[1.0] * 3, auto=[0.5] * 3)
    assert "## For orientation" in report.markdown(results(found))
    assert "## For orientation" not in report.markdown(results(found, kind="tenants"))


def test_bars_of_pipelines_do_not_end_a_column():
    run = results(cell(plain=[1.0] * 3, auto=[2.0] * 3))
    run.scenarios[0].cells[0].name = "decode | resize(8, 8)"
    rows = [line for line in report.markdown(run).splitlines() if line.startswith("| **fail**")]
    assert rows and all("decode \\| resize(8, 8)" in row for row in rows)
