"""Compares two runs: ratios of the medians of the first to those of the second.

The rounds of two runs do not alternate, so changes of the machine between them are part of the ratios, and their rounds do
not pair up. Cells and arms match by name. The report lists what only one run has, and names different machines and settings
before any figure.
"""

import json
from collections.abc import Iterator
from typing import Any

from . import text, trials
from .ratios import Ratio, unpaired
from .results import Arm, Cell, Results

# The compared columns of `trials`, with their titles.
MEASURES = {"seconds": "seconds", "cpu": "CPU", "wire_bytes": "bytes on the wire"}
COLUMNS = ["scenario", "cell", "arm", "rounds", *MEASURES.values()]
# Each run measures its own crossover, and sets links by it.
LINK_TOLERANCE = 0.02
READING = """Medians of the first run (A) to those of the second (B), per sample: above 1 means that B needs less. Brackets
are the most that single rounds of the two runs differ by. **Bold** is a difference between all rounds of both. The runs did not
alternate, so a machine that was slower during one of them shows up in the ratios."""


def markdown(a: Results, b: Results) -> str:
    """The comparison."""
    lines = ["# Two runs", "", _head("A", a), _head("B", b), "", *_differences(a, b)]
    ours, theirs = dict(_arms(a)), dict(_arms(b))
    rows, better, worse = [], 0, 0
    for key in (key for key in ours if key in theirs):
        measured = [trials.table(cell).xs(key[2], level="arm") for cell, _ in (ours[key], theirs[key])]
        ratios = {name: unpaired(*(of_run[name] for of_run in measured)) for name in MEASURES}
        seconds = ratios["seconds"]
        better += seconds is not None and seconds.low > 1
        worse += seconds is not None and seconds.high < 1
        rounds = f"{len(ours[key][1].trials)}, {len(theirs[key][1].trials)}"
        rows.append([*key, rounds, *map(_shown, ratios.values())])
    if rows:
        lines += [f"By the clock B is slower in {worse}, faster in {better} of {text.count(len(rows), 'arm')}.", ""]
        lines += [*text.table(COLUMNS, rows), "", READING, ""]
    else:
        lines += ["**The runs have no arm in common.**", ""]
    for name, mine, other in (("A", ours, theirs), ("B", theirs, ours)):
        only = [key for key in mine if key not in other]
        if only:
            lines += [f"Only in {name}:", "", *(f"- {', '.join(key)}" for key in only), ""]
    return "\n".join(lines)


def _head(name: str, run: Results) -> str:
    changed = ", **with uncommitted changes**" if run.dirty else ""
    return f"- {name}: commit {run.commit}{changed}; {run.started_at}"


def _arms(run: Results) -> Iterator[tuple[tuple[str, str, str], tuple[Cell, Arm]]]:
    """The arms that ran, by scenario, cell and name."""
    for scenario in run.scenarios:
        for cell in scenario.cells:
            for name, arm in cell.arms.items():
                if arm.trials:
                    yield (scenario.name, cell.name, name), (cell, arm)


def _shown(ratio: Ratio | None) -> str:
    excluded = ratio is not None and (ratio.low > 1 or ratio.high < 1)
    return f"**{text.ratio(ratio)}**" if excluded else text.ratio(ratio)


def _differences(a: Results, b: Results) -> list[str]:
    """Differences that make the runs incomparable or limit the comparison."""
    varying = ("load_average", "versions", "flags")
    machine = lambda run: {name: value for name, value in vars(run.environment).items() if name not in varying}
    sections = [("**THE MACHINES DIFFER**", _differing(machine(a), machine(b)))]
    sections.append(("**The versions differ**", _differing(a.environment.versions, b.environment.versions)))
    theirs = {scenario.name: scenario for scenario in b.scenarios}
    for scenario in a.scenarios:
        if scenario.name in theirs:
            changed = _differing(_flat(scenario.settings), _flat(theirs[scenario.name].settings))
            sections.append((f"**THE SETTINGS OF {scenario.name} DIFFER**", changed))
    ours, others = dict(_arms(a)), dict(_arms(b))
    for key in (key for key in ours if key in others):
        values = lambda arm: {
            "settings": arm.settings, "kind": arm.kind, "samples": sorted({trial.samples for trial in arm.trials}),
            "epochs": sorted({len(trial.epoch_seconds) for trial in arm.trials}), "failed samples": arm.failed_samples,
        }
        sections.append((f"**{', '.join(key)} DIFFERS**", _differing(values(ours[key][1]), values(others[key][1]))))
    cells = {key[:2]: (ours[key][0], others[key][0]) for key in ours if key in others}
    links = [(", ".join(key), cell.bandwidth, other.bandwidth) for key, (cell, other) in cells.items()]
    changed = [f"{name} {text.rate(mine)} in A, {text.rate(other)} in B" for name, mine, other in links if _far(mine, other)]
    sections.append(("**THE LINKS DIFFER**", changed))
    lines = []
    for title, differences in sections:
        lines += [f"> {title}: " + "; ".join(differences), ""] if differences else []
    return lines


def _differing(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    show = lambda values, name: json.dumps(values[name], ensure_ascii=False) if name in values else "nothing"
    changed = (name for name in dict.fromkeys([*a, *b]) if show(a, name) != show(b, name))
    return [f"{name} {show(a, name)} in A, {show(b, name)} in B" for name in changed]


def _far(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is not b
    return abs(a - b) > LINK_TOLERANCE * max(a, b)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Settings by dotted name, so that a difference is reported alone."""
    if not isinstance(value, dict) or not value:
        return {name: value} if name else {}
    flat = {}
    for key, part in value.items():
        flat |= _flat(part, f"{name}.{key}".lstrip("."))
    return flat
