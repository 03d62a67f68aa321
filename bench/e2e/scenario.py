"""A scenario: a TOML file with the settings of a measurement, read strictly."""

import dataclasses
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "scenarios"
KINDS = ("read", "forward", "table", "scans", "tenants", "growth", "transfer", "sharing", "second-epoch", "layouts", "replicas")
KINDS += ("materialize", "materialize-replicas", "warm-link")
# Kinds that require a pipeline, and kinds that require arms.
PIPELINE_KINDS = ("read", "layouts", "tenants", "growth", "sharing", "second-epoch", "replicas")
PIPELINE_KINDS += ("materialize", "materialize-replicas", "warm-link")
ARM_KINDS = ("read", "layouts", "tenants", "table", "sharing", "second-epoch", "materialize")
# Layouts of the kind `layouts`, with their names in cells.
LAYOUTS = {
    "objects": "loose objects", "shards": "tar shards", "shard-order": "tar shards in shard order", "image-column": "image column",
}  # fmt: skip
OPEN = float("inf")
LINK = re.compile(r"(?P<number>[0-9.]+) *(?P<unit>B|Mbit/s)|open")


class ScenarioError(Exception):
    """The file does not describe a scenario."""


@dataclass(frozen=True)
class Link:
    """A setting of the link: bits per second, a multiple of the crossover bandwidth, or open."""

    text: str
    factor: float | None
    bits_per_second: float | None

    @classmethod
    def parse(cls, text: str) -> "Link":
        """`0.3 B`, `100 Mbit/s` or `open`."""
        found = LINK.fullmatch(text)
        if found is None:
            raise ValueError(f"links: expected a link such as '0.3 B', '100 Mbit/s' or 'open', found {text!r}")
        if found["unit"] == "B":
            return cls(text, float(found["number"]), None)
        return cls(text, None, float(found["number"]) * 1e6 if found["unit"] else OPEN)

    def bits(self, crossover: float | None) -> float:
        """Bits per second, for a crossover in bits per second."""
        if self.bits_per_second is not None:
            return self.bits_per_second
        return (self.factor or 0.0) * (crossover or 0.0)


def repeated_arm(name: str) -> str | None:
    """The arm that a repetition repeats: `plain` for `repeat`, NAME for `repeat:NAME`. None for other arms."""
    arm, _, named = name.partition(":")
    return (named or "plain") if arm == "repeat" else None


@dataclass(frozen=True)
class Scenario:
    """The settings of a measurement. A kind ignores settings that it does not use."""

    name: str
    title: str
    kind: str
    # Part of the default matrix. FULL=1 or the name selects other scenarios.
    default: bool
    # The group of the cells: a line of a plot.
    group: str = ""
    # A folder under .cache/photos, or a glob pattern from the repository's root, and the number of photos; they repeat if there
    # are fewer files. For tables: which table; of the kind `replicas`: the photos of each replica.
    data: str = "imagenet"
    samples: int = 200
    pipeline: str = ""
    arms: tuple[str, ...] = ()
    # Of the kind `layouts`: one cell each.
    layouts: tuple[str, ...] = ()
    # Of the layout `shard-order`: number of samples in the shuffle buffer.
    buffer: int = 1000
    links: tuple[str, ...] = ("open",)
    latency_ms: float = 0.0
    batch_size: int = 32
    epochs: int = 1
    rounds: int = 3
    # Cores that store and gateway share, and cores of reader and trainer.
    store_cores: int = 1
    host_cores: int = 1
    # Time that the simulated accelerator takes for a batch.
    trainer_step_ms: int = 0
    # Object sizes, or numbers of tenants, jobs, keys, scans or replicas.
    sizes: tuple[int, ...] = ()
    # Numbers of connections of the kind `growth`: one cell each, after the cells of keys.
    connections: tuple[int, ...] = (1, 4, 16, 64)
    gateway_flags: tuple[str, ...] = ()
    # Models that the gateway serves.
    models: tuple[str, ...] = ()
    # Of the kind `sharing`, 0 for no requirement: CPU seconds of four jobs to those of one, and CPU seconds of store and gateway
    # in a later epoch to those in the first one.
    max_jobs_cpu_ratio: float = 0.0
    max_later_cpu_ratio: float = 0.0
    # Of the kind `materialize`, 0 for no requirement: CPU seconds of the best program of others to ours.
    min_peer_ratio: float = 0.0

    def __post_init__(self) -> None:
        unpaired = [name for name in self.arms if repeated_arm(name) not in (None, *self.arms)]
        unknown = [name for name in self.layouts if name not in LAYOUTS]
        checks = [
            (self.kind in KINDS, f"kind: expected one of {', '.join(KINDS)}, found {self.kind!r}"),
            (self.samples > 0, "samples: expected more than 0"),
            (self.batch_size > 0, "batch_size: expected more than 0"),
            (self.buffer > 0, "buffer: expected more than 0"),
            (self.epochs > 0, "epochs: expected more than 0"),
            (self.rounds > 0, "rounds: expected more than 0"),
            (self.store_cores > 0, "store_cores: expected more than 0"),
            (self.host_cores > 0, "host_cores: expected more than 0"),
            (self.trainer_step_ms >= 0, "trainer_step_ms: expected 0 or more"),
            (self.max_jobs_cpu_ratio >= 0, "max_jobs_cpu_ratio: expected 0 or more"),
            (self.max_later_cpu_ratio >= 0, "max_later_cpu_ratio: expected 0 or more"),
            (self.min_peer_ratio >= 0, "min_peer_ratio: expected 0 or more"),
            (self.kind not in PIPELINE_KINDS or self.pipeline, f"pipeline: expected one for the kind {self.kind}, found none"),
            (self.kind not in ARM_KINDS or self.arms, f"arms: expected some for the kind {self.kind}, found none"),
            (self.kind != "layouts" or self.layouts, "layouts: expected some for the kind layouts, found none"),
            (not unknown, f"layouts: expected some of {', '.join(LAYOUTS)}, found {', '.join(unknown)}"),
            (not unpaired, f"arms: {', '.join(unpaired)} repeats an arm that is not in the list"),
        ]
        for holds, problem in checks:
            if not holds:
                raise ValueError(problem)
        for link in self.links:
            Link.parse(link)

    @property
    def trainer_seconds(self) -> float:
        """Seconds of the accelerator per sample. The last batch of an epoch may be smaller and takes as long."""
        return -(-self.samples // self.batch_size) * self.trainer_step_ms / 1000 / self.samples

    @property
    def settings(self) -> dict:
        """The settings as recorded in the results."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in ("name", "title")}


def load(file: Path) -> Scenario:
    """Reads the scenario of a file; its name is the file's name."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{file}: {error}") from error
    known = {each.name: each for each in dataclasses.fields(Scenario) if each.name != "name"}
    if unknown := sorted(set(document) - set(known)):
        raise ScenarioError(f"{file}: unknown: {', '.join(unknown)}; expected {', '.join(known)}")
    if missing := sorted({"title", "kind", "default"} - set(document)):
        raise ScenarioError(f"{file}: missing: {', '.join(missing)}")
    for name, value in document.items():
        kind = known[name].type
        accepted = tuple if str(kind).startswith("tuple") else {float: (int, float)}.get(kind, kind)
        value = document[name] = tuple(value) if isinstance(value, list) else value
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise ScenarioError(f"{file}: {name}: expected {getattr(kind, '__name__', kind)}, found {value!r}")
    try:
        return Scenario(name=file.stem, **document)
    except ValueError as error:
        raise ScenarioError(f"{file}: {error}") from error


def needs_shaping(scenario: Scenario) -> bool:
    """Whether the scenario needs a shaped link."""
    return scenario.latency_ms > 0 or any(Link.parse(text).bits(1.0) != OPEN for text in scenario.links)


def open_link_variant(scenario: Scenario, known: dict[str, Scenario]) -> Scenario | None:
    """For a scenario that needs a shaped link: the scenario that measures the same over an open link, if there is one."""
    what = lambda each: (each.kind, each.group, each.data, each.pipeline)
    others = (other for other in known.values() if what(other) == what(scenario) and not needs_shaping(other))
    return next(others, None) if needs_shaping(scenario) else None


def load_all() -> dict[str, Scenario]:
    """All scenarios of the repository, by name."""
    return {file.stem: load(file) for file in sorted(FOLDER.glob("*.toml"))}
