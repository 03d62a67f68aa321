"""The overview tables of the report."""

from .. import overview
from ..results import Cell
from .build import arm, cell, results, trial

# Repetitions: with the first the clock decides, with the second it does not.
CALM, NOISY = [1.0, 1.0, 1.0], [1.0, 1.2, 0.9]


def named(name: str, found: Cell) -> Cell:
    found.name = name
    return found


def test_photos_show_epoch_seconds_and_rates_of_auto():
    found = cell(x=0.3, bound=250, plain=[1.0] * 3, repeat=CALM, loader=[0.8] * 3, pushed=[0.6] * 3, auto=[0.5] * 3)
    # The first epoch of `auto` does not count.
    found.arms["auto"].trials = [trial(9.0, 0.5)] * 3
    rates = ["1.600 (1.600 to 1.600)", "1.200 (1.200 to 1.200)", "0.800 (0.800 to 0.800)"]
    assert overview.photos([found]) == [["cell", "800 ms", "600 ms", "500 ms", *rates]]


def test_a_star_marks_verdicts_that_are_void_by_noise():
    arms = {"plain": [1.0] * 3, "pushed": [0.6] * 3, "auto": [0.5] * 3}
    cells = [named("noisy", cell(repeat=NOISY, **arms)), named("calm", cell(repeat=CALM, **arms)), named("alone", cell(**arms))]
    rates = {row[0]: row[4:] for row in overview.photos(cells)}
    found = ["2.000 (2.000 to 2.000)", "1.200 (1.200 to 1.200)"]
    assert rates == {"noisy": [*(f"{rate}*" for rate in found), "-"], "calm": [*found, "-"], "alone": [*found, "-"]}


def test_auto_first_replaces_auto_and_a_missing_arm_is_a_dash():
    start = cell(plain=[1.0], pushed=[2.0] * 3, **{"auto-first": [4.0] * 3})
    start.baseline = "pushed"
    del start.arms["plain"]
    assert overview.photos([start]) == [["cell", "-", "2.00 s", "4.00 s", "-", "0.500 (0.500 to 0.500)", "-"]]
    both = cell(plain=[1.0] * 3, **{"auto-first": [4.0] * 3, "auto": [0.5] * 3})
    assert [row[2:5] for row in overview.photos([both])] == [["-", "500 ms", "2.000 (2.000 to 2.000)"]]
    assert overview.photos([cell(plain=[1.0] * 3, auto=[])]) == [["cell", "1.00 s", *["-"] * 5]]


def test_failed_samples_are_reported_and_yield_no_rate():
    found = cell(plain=[1.0] * 3, repeat=NOISY, pushed=arm("pushed", [0.2] * 3, errors=1), auto=arm("auto", [0.1] * 3, errors=2))
    assert overview.photos([found]) == [["cell", "1.00 s", "200 ms, 3 failed", "100 ms, 6 failed", "void", "void", "-"]]


def test_the_smallest_margin_comes_first():
    cells = [
        named("without", cell(plain=[1.0] * 3, pushed=[0.5] * 3)),
        named("ahead", cell(plain=[1.0] * 3, auto=[0.1] * 3)),
        # The requirement is 0.85 of the bound, and 0.97 of plain reading.
        named("near the bound", cell(x=0.1, bound=100, plain=[9.0] * 3, auto=[1.1] * 3)),
        named("slower", cell(plain=[1.0] * 3, auto=[1.1] * 3)),
        named("failed", cell(plain=[1.0] * 3, auto=arm("auto", [0.1] * 3, errors=1))),
    ]
    assert [row[0] for row in overview.photos(cells)] == ["failed", "slower", "near the bound", "ahead", "without"]


def test_tables_have_a_row_for_each_arm_and_columns_for_each_cell():
    narrow = cell(plain=arm("plain", [3.0, 2.0, 4.0], wire=2e6, cpu=4.0), repeat=CALM, auto=arm("auto", [0.5], wire=1e6, cpu=1.0))
    open_link = cell(plain=arm("plain", [1.0] * 3, wire=3e6), pyarrow=arm("pyarrow", [0.9] * 3, wire=2e6, errors=1))
    assert overview.tables([narrow, open_link]) == [
        ["`plain`", "3.00 s", "3.00 s (2.00 s to 4.00 s)", "200 MB", "750 ms", "1.00 s (1.00 s to 1.00 s)", "300 MB"],
        ["`auto`", "750 ms", "500 ms", "100 MB", "-", "-", "-"],
        ["`pyarrow`", "-", "-", "-", "750 ms", "900 ms (900 ms to 900 ms), 3 failed", "200 MB"],
    ]


def test_a_missing_measurement_of_a_table_is_a_dash():
    found = cell(plain=[1.0])
    only = found.arms["plain"].trials[0]
    only.cpu_seconds, only.wire_up_bytes = {"host": 1.0}, None
    assert overview.tables([found]) == [["`plain`", "-", "1.00 s", "-"]]
    only.cpu_seconds = {"gateway": 0.0, "host": 1.0}
    assert overview.tables([found]) == [["`plain`", "1.00 s", "1.00 s", "-"]]


def test_a_run_has_tables_of_its_kinds():
    one = cell(plain=[1.0] * 3, auto=[0.5] * 3)
    read, scanned, other = ("\n".join(overview.section(results(one, kind=kind))) for kind in ("read", "table", "tenants"))
    assert "## At a glance" in read and "Photos:" in read and "Tables:" not in read
    assert "## At a glance" in scanned and "Photos:" not in scanned and "Tables:" in scanned
    assert "| arm | cell: CPU | seconds | on the wire |" in scanned
    assert other == "" and overview.section(results()) == []
