"""The comparison of two runs."""

import copy
import re

from .. import compare
from ..results import Results
from .build import arm, cell, results


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith("| s |") and f"| {name} |" in line]
    return [part.strip() for part in line.strip("|").split("|")]


def numbers(part: str) -> list[float]:
    return [float(each) for each in re.findall(r"[0-9.]+", part)]


def test_a_run_compared_with_itself_has_ratio_one():
    run = results(cell(plain=[1.0, 1.1, 1.2, 1.05], auto=[0.5, 0.55, 0.5, 0.6]))
    text = compare.markdown(run, copy.deepcopy(run))
    assert "DIFFER" not in text and "Only in" not in text
    assert "By the clock B is slower in 0, faster in 0 of 2 arms." in text
    for name in ("plain", "auto"):
        middle, low, high = numbers(row(text, name)[4])
        assert middle == 1 and low < 1 < high


def test_ratios_are_first_to_second_per_sample():
    a = results(cell(plain=arm("plain", [2.0, 2.1, 1.9], wire=300, cpu=1.0)))
    b = results(cell(plain=arm("plain", [2.0, 2.1, 1.9], wire=100, cpu=4.0, samples=200)))
    assert "B is slower in 0, faster in 1 of 1 arm." in compare.markdown(a, b)
    assert "B is slower in 1, faster in 0 of 1 arm." in compare.markdown(b, a)
    *_, seconds, cpu, wire = row(compare.markdown(a, b), "plain")
    assert numbers(seconds)[0] == 2.0 and numbers(cpu)[0] == 0.5 and numbers(wire)[0] == 3.0
    assert numbers(seconds)[1] < 2.0 < numbers(seconds)[2]
    assert cpu.startswith("**")


def test_equal_rounds_are_neither_faster_nor_slower():
    run = results(cell(plain=[1.0, 1.0, 1.0]))
    assert "B is slower in 0, faster in 0 of 1 arm." in compare.markdown(run, run)


def test_rounds_are_not_paired():
    a, b = results(cell(plain=[1.0, 2.0, 3.0])), results(cell(plain=[3.0, 1.0, 2.0, 2.0, 2.0]))
    found = row(compare.markdown(a, b), "plain")
    assert found[3] == "3, 5"
    middle, low, high = numbers(found[4])
    assert middle == 1 and low < 0.7 and high > 1.3


def test_arms_of_only_one_run_are_listed():
    a, b = results(cell(plain=[1.0], pushed=[1.0])), results(cell(plain=[1.0], auto=[1.0]))
    text = compare.markdown(a, b)
    assert "Only in A:\n\n- s, cell, pushed" in text
    assert "Only in B:\n\n- s, cell, auto" in text
    b.scenarios[0].name = "other"
    assert "**The runs have no arm in common.**" in compare.markdown(a, b)


def test_differences_of_machine_versions_and_settings_come_first():
    a = results(cell(plain=[1.0]))
    assert "> " not in compare.markdown(a, copy.deepcopy(a)).split("| scenario")[0]
    b = copy.deepcopy(a)
    b.environment.cores, b.environment.versions = 4, {"pushdown": "0.2.0"}
    b.environment.load_average = [9.0, 9.0, 9.0]
    b.scenarios[0].settings = {"kind": "read", "samples": 200, "link": {"bits": 5}}
    b.scenarios[0].cells[0].arms["plain"].settings = "8 workers"
    before = compare.markdown(a, b).split("| scenario")[0]
    assert "> **THE MACHINES DIFFER**: cores 2 in A, 4 in B\n" in before
    assert 'pushdown "0.1.0" in A, "0.2.0" in B' in before
    assert "> **THE SETTINGS OF s DIFFER**: samples 100 in A, 200 in B; link.bits nothing in A, 5 in B" in before
    assert '> **s, cell, plain DIFFERS**: settings "" in A, "8 workers" in B' in before


def with_link(bits: float | None) -> Results:
    run = results(cell(plain=[1.0]))
    run.scenarios[0].cells[0].measured_bits_per_second = bits
    return run


def test_different_links_are_reported():
    assert "LINKS DIFFER" not in compare.markdown(with_link(100e6), with_link(101e6))
    assert "s, cell 100 Mbit/s in A, 105 Mbit/s in B" in compare.markdown(with_link(100e6), with_link(105e6))
    assert "s, cell 100 Mbit/s in A, - in B" in compare.markdown(with_link(100e6), with_link(None))


def test_an_arm_that_was_not_measured_has_no_ratio():
    a, b = results(cell(plain=arm("plain", [1.0], wire=0))), results(cell(plain=arm("plain", [1.0], wire=0)))
    assert row(compare.markdown(a, b), "plain")[-1] == "-"
