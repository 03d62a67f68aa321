"""Two runs beside each other: ratios of the first to the second, with intervals.

The runs were not in turns: what the machine did meanwhile is in the ratios, and rounds of one have nothing to do with those of
the other. So both medians are drawn for themselves. Cells and arms go by their names; what only one run has is listed, and
other machines and settings are told before any figure.
"""

import json
from collections.abc import Iterator
from typing import Any

from . import stats, text
from .results import Arm, Cell, Results

MEASURES = {"seconds": "seconds", "cpu": "CPU", "wire": "bytes on the wire"}
COLUMNS = ["scenario", "cell", "arm", "rounds", *MEASURES.values()]
# Links are set by a crossover that each run measures anew.
SAME_LINK = 0.02
READING = """Medians of the first run (A) to those of the second (B), per sample: above 1 is less in B. In brackets is the 95 %
interval, where both medians are drawn for themselves; with fewer than 4 rounds it is the least to the greatest. **Bold** is an
interval that excludes 1. The runs were not in turns, so that a machine that was slower in one of them shows here, too."""


def markdown(a: Results, b: Results) -> str:
    """The comparison."""
    lines = ["# Two runs", "", _head("A", a), _head("B", b), "", *_differences(a, b)]
    ours, theirs = dict(_arms(a)), dict(_arms(b))
    rows, better, worse = [], 0, 0
    for key in (key for key in ours if key in theirs):
        ratios = {name: _ratio(ours[key][1], theirs[key][1], name) for name in MEASURES}
        took = ratios["seconds"]
        better += took is not None and took.low > 1
        worse += took is not None and took.high < 1
        rounds = f"{len(ours[key][1].turns)}, {len(theirs[key][1].turns)}"
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
    changed = ", **with changes that are not committed**" if run.dirty else ""
    return f"- {name}: commit {run.commit}{changed}; {run.started}"


def _arms(run: Results) -> Iterator[tuple[tuple[str, str, str], tuple[Cell, Arm]]]:
    """Arms that ran, by scenario, cell and name."""
    for scenario in run.scenarios:
        for cell in scenario.cells:
            for name, arm in cell.arms.items():
                if arm.turns:
                    yield (scenario.name, cell.name, name), (cell, arm)


def _ratio(a: Arm, b: Arm, measure: str) -> stats.Interval | None:
    get = stats.MEASURES[measure]
    return stats.unpaired(stats.measured(a, get), stats.measured(b, get))


def _shown(found: stats.Interval | None) -> str:
    excluded = found is not None and (found.low > 1 or found.high < 1)
    return f"**{text.ratio(found)}**" if excluded else text.ratio(found)


def _differences(a: Results, b: Results) -> list[str]:
    """What makes the runs incomparable, or at least others."""
    varying = ("load_average", "versions", "flags")
    machine = lambda run: {name: value for name, value in vars(run.environment).items() if name not in varying}
    found = [("**THE MACHINES DIFFER**", _differing(machine(a), machine(b)))]
    found.append(("**The versions differ**", _differing(a.environment.versions, b.environment.versions)))
    theirs = {scenario.name: scenario for scenario in b.scenarios}
    for scenario in a.scenarios:
        if scenario.name in theirs:
            changed = _differing(_flat(scenario.settings), _flat(theirs[scenario.name].settings))
            found.append((f"**THE SETTINGS OF {scenario.name} DIFFER**", changed))
    ours, others = dict(_arms(a)), dict(_arms(b))
    for key in (key for key in ours if key in others):
        values = lambda arm: {
            "settings": arm.settings, "kind": arm.kind, "samples": sorted({turn.samples for turn in arm.turns}),
            "epochs": sorted({len(turn.seconds) for turn in arm.turns}), "failed samples": stats.failed(arm),
        }
        found.append((f"**{', '.join(key)} DIFFERS**", _differing(values(ours[key][1]), values(others[key][1]))))
    cells = {key[:2]: (ours[key][0], others[key][0]) for key in ours if key in others}
    links = [(", ".join(key), cell.width, other.width) for key, (cell, other) in cells.items()]
    changed = [f"{name} {text.rate(mine)} in A, {text.rate(other)} in B" for name, mine, other in links if _far(mine, other)]
    found.append(("**THE LINKS DIFFER**", changed))
    lines = []
    for title, differences in found:
        lines += [f"> {title}: " + "; ".join(differences), ""] if differences else []
    return lines


def _differing(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    show = lambda values, name: json.dumps(values[name], ensure_ascii=False) if name in values else "nothing"
    changed = (name for name in dict.fromkeys([*a, *b]) if show(a, name) != show(b, name))
    return [f"{name} {show(a, name)} in A, {show(b, name)} in B" for name in changed]


def _far(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is not b
    return abs(a - b) > SAME_LINK * max(a, b)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Settings by their dotted names, so that one that differs is told alone."""
    if not isinstance(value, dict) or not value:
        return {name: value} if name else {}
    found = {}
    for key, part in value.items():
        found |= _flat(part, f"{name}.{key}".lstrip("."))
    return found
