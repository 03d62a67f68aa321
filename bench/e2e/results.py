"""The results of a run of the end-to-end benchmark: dataclasses, and the JSON file that stores them (format 2, all files of which
can be read).

Times are in seconds, sizes in bytes, links in bits per second. `Trial.samples` counts one epoch and `Trial.epoch_seconds` has one
entry per epoch; CPU, bytes and stalls cover all epochs of the trial. Trial i of every arm belongs to round i. A value that an arm
does not measure is null, never 0.
"""

import dataclasses
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import json_reader
from .json_reader import check

FORMAT = 2
KINDS = ("plain", "pushed", "auto", "repeat", "peer", "alternative", "layout", "ceiling")
# Kinds by their names in older files.
RENAMED_KINDS = {"rival": "alternative"}
BOUNDS = ("store", "gateway", "link", "host", "trainer")
# Arms that read another layout or local files: the upper bound does not apply to them.
UNBOUND = ("layout", "ceiling")
TIERS = ("store", "gateway", "host")
# Where the gateway's values come from.
ORIGINS = ("computed", "memory", "disk", "shared", "prefix")


@dataclass
class Trial:
    """One trial of an arm: what it delivered, how long it took, and what it used."""

    samples: int
    errors: int
    epoch_seconds: list[float]
    first_batch_seconds: float | None
    batch_wait_p50_seconds: float | None
    batch_wait_p99_seconds: float | None
    stall_seconds: float | None
    value_bytes: float | None
    stored_bytes: float | None
    wire_up_bytes: float | None
    wire_down_bytes: float | None
    cpu_seconds: dict[str, float]
    peak_bytes: dict[str, float | None]
    rows: int | None = None
    # Samples by stage: the number of steps that the gateway had applied.
    stages: dict[str, int] | None = None
    # The last epoch alone, if the reader reports it: earlier epochs include one-time costs and probing.
    last_epoch_stages: dict[str, int] | None = None
    last_epoch_cpu_seconds: float | None = None
    # The classifier head trained on the trial's samples: its accuracy, and the seconds until it was trained, reading included.
    balanced_accuracy: float | None = None
    trained_seconds: float | None = None
    # Bytes of answers that the gateway received from the store, and the gateway's values by where they came from.
    store_bytes: float | None = None
    cache_values: dict[str, float] | None = None
    # The ratio of cached values that the gateway announced before the trial.
    cached_ratio: float | None = None

    def __post_init__(self) -> None:
        check(len(self.epoch_seconds) > 0, "epoch_seconds: expected one for each epoch, found none")
        check(self.samples >= 0 and self.errors >= 0, "samples and errors: expected 0 or more")
        for name in ("cpu_seconds", "peak_bytes"):
            unknown = sorted(set(getattr(self, name)) - set(TIERS))
            check(unknown == [], f"{name}: expected {', '.join(TIERS)}, found {', '.join(unknown)}")

    @property
    def samples_read(self) -> int:
        """Samples of all epochs."""
        return self.samples * len(self.epoch_seconds)


@dataclass
class Arm:
    """A method of reading the samples, with its trials."""

    kind: str
    settings: str
    trials: list[Trial] = field(default_factory=list)

    @property
    def failed_samples(self) -> int:
        """Samples that were not delivered."""
        return sum(trial.errors for trial in self.trials)

    def __post_init__(self) -> None:
        self.kind = RENAMED_KINDS.get(self.kind, self.kind)
        check(self.kind in KINDS, f"kind: expected one of {', '.join(KINDS)}, found {self.kind}")


@dataclass
class QualifyingRun:
    """One run of an arm before the rounds of a cell. It decides whether the arm takes part in the rounds."""

    samples_per_second: float
    errors: int
    settings: str


@dataclass
class Bound:
    """The estimated upper bound of a cell's rate, from measured costs, and the tier that limits it."""

    samples_per_second: float
    limited_by: str

    def __post_init__(self) -> None:
        check(self.limited_by in BOUNDS, f"limited_by: expected one of {', '.join(BOUNDS)}, found {self.limited_by}")
        check(self.samples_per_second > 0, "samples_per_second: expected more than 0")


@dataclass
class Cell:
    """Arms that are compared with each other: one pipeline over one link."""

    name: str
    group: str
    x: float | None
    x_label: str
    requested_bits_per_second: float | None
    measured_bits_per_second: float | None
    crossover_bits_per_second: float | None
    baseline: str
    notes: list[str]
    bound: Bound | None
    arms: dict[str, Arm]
    # What older runs recorded about their requirements. Reports compare the trials instead.
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    # Seconds of an epoch by the planner's simulator, one entry per round, for the arms that it models.
    simulated_epoch_seconds: dict[str, list[float]] = field(default_factory=dict)
    # The qualifying runs of plain readers, by arm.
    qualifying: dict[str, QualifyingRun] = field(default_factory=dict)
    # Requirements that differ between scenarios, by rule.
    required: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.arms == {} or self.baseline in self.arms
        check(known, f"baseline: expected one of {', '.join(self.arms)}, found {self.baseline}")

    @property
    def bandwidth(self) -> float | None:
        """Bits per second of the link: measured, else requested. None for an open link."""
        return self.requested_bits_per_second if self.measured_bits_per_second is None else self.measured_bits_per_second


@dataclass
class Scenario:
    """Cells that belong together. `skip_reason` says why this machine cannot measure them; `error` is the failure that ended the
    scenario, after the cells that it has. `duration_seconds` includes the set-up."""

    name: str
    title: str
    settings: dict[str, Any]
    skip_reason: str = ""
    cells: list[Cell] = field(default_factory=list)
    error: str = ""
    duration_seconds: float | None = None


@dataclass
class Environment:
    """The machine and the installed versions."""

    cpu: str
    cores: int
    memory_bytes: int
    kernel: str
    python: str
    shaped: bool
    shaping_error: str
    supports_latency: bool
    load_average: list[float]
    versions: dict[str, str]
    # An external store, and the flags of the command line that apply to all scenarios.
    store: str = ""
    flags: list[str] = field(default_factory=list)


@dataclass
class Results:
    """A run."""

    commit: str
    dirty: bool
    started_at: str
    duration_seconds: float
    environment: Environment
    scenarios: list[Scenario] = field(default_factory=list)


def load(path: Path) -> Results:
    """Reads the results of a file."""
    return json_reader.read(Results, path, FORMAT)


def save(results: Results, path: Path) -> None:
    """Writes the file atomically: a long run saves many times and can be interrupted at any of them."""
    text = json.dumps({"format": FORMAT} | dataclasses.asdict(results), indent=1, allow_nan=False, ensure_ascii=False)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text + "\n", encoding="utf-8")
    unfinished.replace(path)
