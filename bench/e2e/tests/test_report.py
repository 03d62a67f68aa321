"""The report of a run."""

import os
from pathlib import Path

from .. import report
from ..results import load
from .build import arm, cell, results

FIXTURES = Path(__file__).parent / "fixtures"


def section(text: str, title: str) -> str:
    """The text of a section of the second level."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_report_equals_the_golden_file():
    """GOLDEN=write updates it."""
    found = report.markdown(load(FIXTURES / "run.json"), ["plots/speedup.svg"])
    golden = FIXTURES / "report.md"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_losses_come_first_and_the_worst_before_others():
    text = report.markdown(load(FIXTURES / "run.json"))
    assert text.index("## Losses") == text.index("\n## ") + 1
    outcomes = [line.split("**")[1] for line in section(text, "Losses and undecided verdicts").splitlines() if "| **" in line]
    assert outcomes == sorted(outcomes, key=["fail", "undecided", "void"].index)
    assert {"fail", "undecided", "void"} == set(outcomes)


def test_the_overview_follows_the_losses_and_precedes_the_plots():
    text = report.markdown(load(FIXTURES / "run.json"), ["plots/speedup.svg"])
    first, second, third = (text.index(each) for each in ("\n## Losses", "\n## At a glance\n", "\n![speedup]"))
    assert first < second < third < text.index("\n## Frozen features")
    assert "## At a glance" not in report.markdown(results(cell(plain=[1.0]), kind="growth"))


def test_a_run_without_a_loss_says_so():
    text = report.markdown(results(cell(plain=[1.0] * 3, repeat=[1.0] * 3, auto=[0.5] * 3)))
    assert section(text, "Losses and undecided verdicts").strip() == "4 verdicts: 4 pass."
    assert "No cell has a verdict." in report.markdown(results(cell(plain=[1.0])))


def test_a_faster_layout_a_failed_sample_and_a_skipped_scenario_come_first():
    run = results(cell(plain=[1.0] * 3, resized=[0.2] * 3, auto=[0.5] * 3, loader=arm("loader", [1.0] * 3, errors=1)))
    run.scenarios.append(type(run.scenarios[0])("far", "Far", {}, "no netem"))
    first = section(report.markdown(run), "Losses and undecided verdicts")
    assert "`resized` has 2.500 (2.500 to 2.500) times the rate of `auto`" in first
    assert "`loader` failed 3 samples" in first
    assert "far was skipped: no netem" in first
    assert "## Far" not in report.markdown(run)


def test_arms_ahead_in_cpu_or_first_batch_come_first():
    run = results(cell(plain=[1.0] * 3, pushed=arm("pushed", [1.0] * 3, cpu=0.5), auto=[0.5] * 3))
    first = section(report.markdown(run), "Losses and undecided verdicts")
    assert "Less CPU than the gateway's arm, by the whole interval" in first
    assert "- s, cell: `auto` uses 2.000 (2.000 to 2.000) times the CPU seconds of `pushed`" in first
    assert "Faster than" not in first and "Earlier first batch" not in first
    for each in run.scenarios[0].cells[0].arms["plain"].trials:
        each.first_batch_seconds = 0.05
    first = section(report.markdown(run), "Losses and undecided verdicts")
    assert "- s, cell: `auto` waits 2.000 (2.000 to 2.000) times as long for it as `plain`" in first


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
    (row,) = [line for line in text.splitlines() if line.startswith("| `resized` |")]
    assert "of 50.0" not in row and text.count("of 50.0, gateway") == 2


def test_an_unshaped_link_and_uncommitted_changes_are_reported():
    run = results(cell(plain=[1.0]))
    assert "uncommitted" not in report.markdown(run) and "not shaped" not in report.markdown(run)
    run.dirty, run.environment.shaped, run.environment.shaping_error = True, False, "not root"
    head = report.markdown(run).split("\n## ")[0]
    assert "with uncommitted changes" in head
    assert "not shaped: not root. No figure applies to a limited link" in head


def test_a_missing_measurement_is_a_dash():
    run = results(cell(plain=[1.0]))
    only = run.scenarios[0].cells[0].arms["plain"].trials[0]
    only.stall_seconds = only.batch_wait_p50_seconds = only.batch_wait_p99_seconds = only.first_batch_seconds = None
    only.value_bytes, only.cpu_seconds, only.peak_bytes = None, {"host": 2.0}, {}
    (row,) = [line for line in report.markdown(run).splitlines() if line.startswith("| `plain`")]
    cells = dict(zip(report.COLUMNS, [part.strip() for part in row.strip("|").split("|")]))
    shown = {"arm": "`plain`", "samples/s": "100", "wire up": "0 B", "wire down": "1.00 KB"}
    shown |= {"CPU s: host": "20.0"}
    assert {name: part for name, part in cells.items() if part != "-"} == shown


def test_the_report_has_the_command_of_a_scenario_and_the_bound_of_a_cell():
    text = report.markdown(results(cell(x=0.3, bound=50, plain=[1.0] * 3, auto=[2.1] * 3)))
    assert "`make bench-e2e SCENARIO=s`" in text
    assert "upper bound about 50.0 samples/s (gateway)" in text
    assert "95 % of 50.0, gateway" in text


def test_the_report_explains_the_brackets_of_few_rounds():
    text = report.markdown(results(cell(plain=[1.0] * 3, auto=[0.5] * 3)))
    (row,) = [line for line in text.splitlines() if "rate to the fastest plain reader" in line and "**pass**" in line]
    assert "range of 3 rounds, 75 % confidence; no A/A in this cell" in row
    reading = " ".join(section(text, "How to read it").split())
    assert "With fewer than 6 rounds the brackets are the range of the rounds" in reading
    assert "75 % with 3, 87.5 % with 4, 93.8 % with 5" in reading


def test_only_photos_over_links_are_compared_with_published_results():
    found = cell(x=10, plain=[1.0] * 3, auto=[0.5] * 3)
    assert "## For orientation" in report.markdown(results(found))
    assert "## For orientation" not in report.markdown(results(found, kind="tenants"))


def test_bars_in_pipelines_are_escaped():
    run = results(cell(plain=[1.0] * 3, auto=[2.0] * 3))
    run.scenarios[0].cells[0].name = "decode | resize(8, 8)"
    rows = [line for line in report.markdown(run).splitlines() if line.startswith("| **fail**")]
    assert rows and all("decode \\| resize(8, 8)" in row for row in rows)
