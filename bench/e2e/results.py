"""What a run of the end-to-end benchmark found: dataclasses, and the JSON file that holds them (format 1).

Times are in seconds, sizes in bytes, links in bits per second. `Turn.samples` is per epoch and `Turn.seconds` has one entry
per epoch; CPU, bytes and stalls are those of all epochs of the turn together. Turn i of every arm belongs to round i. What an
arm cannot tell is null, never 0.

A file is read strictly: a name that is missing, unknown or of another type is an error that says where it is, since a figure
that is left out in silence would make a report that looks complete.
"""

import dataclasses
import json
import os
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1
KINDS = ("plain", "pushed", "auto", "again", "peer", "rival", "layout", "ceiling")
BOUNDS = ("store", "gateway", "link", "host", "trainer")
# Of another layout at rest, or of local files: no bound of what is read from the store as it is.
UNBOUND = ("layout", "ceiling")
OUTCOMES = ("pass", "fail", "undecided", "void", "given")
TIERS = ("store", "gateway", "host")


class ResultsError(Exception):
    """A file that holds no results of this format."""


@dataclass
class Turn:
    """One turn of an arm."""

    samples: int
    errors: int
    seconds: list[float]
    first_batch_seconds: float | None
    batch_wait_p50_seconds: float | None
    batch_wait_p99_seconds: float | None
    stall_seconds: float | None
    value_bytes: float | None
    stored_bytes: float | None
    wire_up: float | None
    wire_down: float | None
    cpu: dict[str, float]
    peak_bytes: dict[str, float | None]
    rows: int | None = None
    # Samples by how many steps they had behind them when they came.
    stages: dict[str, int] | None = None
    # Of the last epoch alone, where the reader tells: those before it pay for what comes once, and try other ways.
    last_stages: dict[str, int] | None = None
    last_cpu_seconds: float | None = None
    # Of the head that was trained on what the turn read: how good it is, and when it was there, reading included.
    balanced_accuracy: float | None = None
    trained_seconds: float | None = None

    def __post_init__(self) -> None:
        _check(len(self.seconds) > 0, "seconds: none found, expected one for each epoch")
        _check(self.samples >= 0 and self.errors >= 0, "samples and errors: expected 0 or more")
        for name in ("cpu", "peak_bytes"):
            unknown = sorted(set(getattr(self, name)) - set(TIERS))
            _check(unknown == [], f"{name}: {', '.join(unknown)} found, expected {', '.join(TIERS)}")


@dataclass
class Arm:
    """A way of getting the samples, with its turns."""

    kind: str
    settings: str
    turns: list[Turn] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check(self.kind in KINDS, f"kind: {self.kind} found, expected one of {', '.join(KINDS)}")


@dataclass
class Heat:
    """One turn of an arm before the rounds of a cell, which tells whether it goes on."""

    samples_per_second: float
    errors: int
    settings: str


@dataclass
class Bound:
    """What no arm of a cell should beat, by an estimate from costs that were measured, and what limits that."""

    samples_per_second: float
    by: str

    def __post_init__(self) -> None:
        _check(self.by in BOUNDS, f"by: {self.by} found, expected one of {', '.join(BOUNDS)}")
        _check(self.samples_per_second > 0, "samples_per_second: expected more than 0")


@dataclass
class Verdict:
    """Whether an arm does what is asked: its ratio is to be `asked` or more. `e2e.stats` tells what each rule is.

    `median`, `low` and `high` are null where nothing could be measured, and `note` says why.
    """

    rule: str
    arm: str
    against: str
    measure: str
    asked: float
    median: float | None
    low: float | None
    high: float | None
    rounds: int
    outcome: str
    note: str = ""

    def __post_init__(self) -> None:
        _check(self.outcome in OUTCOMES, f"outcome: {self.outcome} found, expected one of {', '.join(OUTCOMES)}")


@dataclass
class Cell:
    """The arms that are compared with each other: one pipeline over one link."""

    name: str
    group: str
    x: float | None
    x_label: str
    asked_link_bits: float | None
    link_bits: float | None
    crossover_bits: float | None
    baseline: str
    notes: list[str]
    bound: Bound | None
    arms: dict[str, Arm]
    verdicts: list[Verdict] = field(default_factory=list)
    # Seconds of an epoch by the planner's simulator, of each round, for the ways that it knows.
    simulated: dict[str, list[float]] = field(default_factory=dict)
    # Everyone who was tried as plain reading beside those that the scenario names.
    heats: dict[str, Heat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.arms == {} or self.baseline in self.arms
        _check(known, f"baseline: {self.baseline} found, expected one of {', '.join(self.arms)}")

    @property
    def width(self) -> float | None:
        """Bits per second of the link: as measured, or else as asked. None of an open link."""
        return self.asked_link_bits if self.link_bits is None else self.link_bits


@dataclass
class Scenario:
    """Cells that belong together. `skipped` says why there are none, where this machine cannot measure them; `broke` what went
    wrong, behind those that there are. `seconds` is how long all of it took, set-up included."""

    name: str
    title: str
    settings: dict[str, Any]
    skipped: str = ""
    cells: list[Cell] = field(default_factory=list)
    broke: str = ""
    seconds: float | None = None


@dataclass
class Environment:
    """The machine, and what ran on it."""

    cpu: str
    cores: int
    memory_bytes: int
    kernel: str
    python: str
    shaped: bool
    why_not_shaped: str
    latency: bool
    load_average: list[float]
    versions: dict[str, str]
    # A store that ran already, and what the command line said of all scenarios.
    store: str = ""
    flags: list[str] = field(default_factory=list)


@dataclass
class Results:
    """A run."""

    commit: str
    dirty: bool
    started: str
    seconds: float
    environment: Environment
    scenarios: list[Scenario] = field(default_factory=list)


def load(path: Path) -> Results:
    """The results that a file holds."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_constant)
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(document, dict) or "format" not in document:
        raise ResultsError(f"{path}: no results of the benchmark, expected an object with a format")
    found = document.pop("format")
    if found != FORMAT:
        raise ResultsError(f"{path}: format {found!r} found, expected {FORMAT}")
    try:
        return _dataclass(Results, document, "")
    except ValueError as error:
        raise ResultsError(f"{path}: {error}") from error


def save(results: Results, path: Path) -> None:
    """Write the file, whole or not at all: a long run is saved many times, and may be broken off at any."""
    text = json.dumps({"format": FORMAT} | dataclasses.asdict(results), indent=1, allow_nan=False, ensure_ascii=False)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text + "\n", encoding="utf-8")
    unfinished.replace(path)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _dataclass(kind: type, value: Any, where: str) -> Any:
    """An instance of a dataclass by an object of JSON."""
    if not isinstance(value, dict):
        raise _mistyped("an object", value, where)
    hints = typing.get_type_hints(kind)
    fields = {each.name: each for each in dataclasses.fields(kind)}
    unknown = sorted(set(value) - set(fields))
    _check(unknown == [], f"{where or 'file'}: unknown: {', '.join(unknown)}")
    optional = lambda each: (each.default, each.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
    missing = [name for name, each in fields.items() if name not in value and not optional(each)]
    _check(missing == [], f"{where or 'file'}: missing: {', '.join(missing)}")
    parts = {name: _value(hints[name], part, f"{where}.{name}".lstrip(".")) for name, part in value.items()}
    try:
        return kind(**parts)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _value(kind: Any, value: Any, where: str) -> Any:
    """A value of the type that a field is annotated with."""
    if isinstance(kind, types.UnionType):
        return None if value is None else _value(kind.__args__[0], value, where)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and isinstance(value, list):
        return [_value(arguments[0], part, f"{where}[{index}]") for index, part in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {name: _value(arguments[1], part, f"{where}.{name}") for name, part in value.items()}
    accepted = {float: (int, float), int: (int,), str: (str,), bool: (bool,), Any: (object,)}.get(kind, ())
    # To Python, true is a number.
    if isinstance(value, accepted) and (kind not in (int, float) or not isinstance(value, bool)):
        return value
    raise _mistyped(getattr(origin or kind, "__name__", str(kind)), value, where)


def _mistyped(expected: str, value: Any, where: str) -> ValueError:
    found = "null" if value is None else f"{type(value).__name__} {json.dumps(value)[:40]}"
    return ValueError(f"{where or 'file'}: {found} found, expected {expected}")
