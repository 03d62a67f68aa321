"""A scenario: a TOML file that says what is measured, read strictly."""

import dataclasses
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "scenarios"
KINDS = ("read", "forward", "table", "scans", "tenants", "growth", "transfer")
# These read through a pipeline; and these by whatever arms are named.
PIPED = ("read", "tenants", "growth")
BY_ARMS = ("read", "tenants", "table")
OPEN = float("inf")
LINK = re.compile(r"(?P<number>[0-9.]+) *(?P<unit>b\*|Mbit/s)|open")


class ScenarioError(Exception):
    """A file that describes no scenario."""


@dataclass(frozen=True)
class Link:
    """A setting of the link: so many bits per second, or so many times the crossover, or no limit."""

    text: str
    factor: float | None
    bits_per_second: float | None

    @classmethod
    def parse(cls, text: str) -> "Link":
        """`0.3 b*`, `100 Mbit/s` or `open`."""
        found = LINK.fullmatch(text)
        if found is None:
            raise ValueError(f"links: {text!r} found, expected a link such as '0.3 b*', '100 Mbit/s' or 'open'")
        if found["unit"] == "b*":
            return cls(text, float(found["number"]), None)
        return cls(text, None, float(found["number"]) * 1e6 if found["unit"] else OPEN)

    def bits(self, crossover: float | None) -> float:
        """Bits per second, where the crossover is as given."""
        if self.bits_per_second is not None:
            return self.bits_per_second
        return (self.factor or 0.0) * (crossover or 0.0)


def again(name: str) -> str | None:
    """Which arm an A/A arm runs once more: plain reading, or the one that it names. None of other arms."""
    arm, _, named = name.partition(":")
    return (named or "plain") if arm == "again" else None


@dataclass(frozen=True)
class Scenario:
    """What is measured. What a kind has no use for stays as it is by default."""

    name: str
    title: str
    kind: str
    # Part of the default matrix; the others come with FULL=1, or by name.
    default: bool
    # What the cells are called together, as a line of a plot.
    group: str = ""
    # A folder of photos under .cache/photos, or a pattern from the repository's root, and how many of them, again and again
    # where there are fewer; or which table.
    data: str = "imagenet"
    samples: int = 200
    pipeline: str = ""
    arms: tuple[str, ...] = ()
    links: tuple[str, ...] = ("open",)
    latency_ms: float = 0.0
    batch_size: int = 32
    epochs: int = 1
    repeats: int = 3
    # Cores of store and gateway together, and of reader and trainer.
    store_cores: int = 1
    host_cores: int = 1
    # An accelerator that takes so long for a batch.
    trainer_step_ms: int = 0
    # Sizes of objects, numbers of tenants or of keys.
    sizes: tuple[int, ...] = ()
    # Of what grows, a cell each behind those of keys.
    connections: tuple[int, ...] = (1, 4, 16, 64)
    gateway_flags: tuple[str, ...] = ()
    # Models that the gateway serves.
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lone = [name for name in self.arms if again(name) not in (None, *self.arms)]
        problems = [
            (self.kind in KINDS, f"kind: {self.kind!r} found, expected one of {', '.join(KINDS)}"),
            (self.samples > 0, "samples: expected more than 0"),
            (self.batch_size > 0, "batch_size: expected more than 0"),
            (self.epochs > 0, "epochs: expected more than 0"),
            (self.repeats > 0, "repeats: expected more than 0"),
            (self.store_cores > 0, "store_cores: expected more than 0"),
            (self.host_cores > 0, "host_cores: expected more than 0"),
            (self.trainer_step_ms >= 0, "trainer_step_ms: expected 0 or more"),
            (self.kind not in PIPED or self.pipeline, f"pipeline: none found, expected one for the kind {self.kind}"),
            (self.kind not in BY_ARMS or self.arms, f"arms: none found, expected some for the kind {self.kind}"),
            (not lone, f"arms: {', '.join(lone)} found without what is run once more"),
        ]
        for holds, problem in problems:
            if not holds:
                raise ValueError(problem)
        for link in self.links:
            Link.parse(link)

    @property
    def trainer_seconds(self) -> float:
        """What the accelerator takes for one sample; the last batch of an epoch may be a small one."""
        return -(-self.samples // self.batch_size) * self.trainer_step_ms / 1000 / self.samples

    @property
    def settings(self) -> dict:
        """What the results say of it."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in ("name", "title")}


def load(file: Path) -> Scenario:
    """The scenario of a file; its name is the file's."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{file}: {error}") from error
    known = {each.name: each for each in dataclasses.fields(Scenario) if each.name != "name"}
    if unknown := sorted(set(found) - set(known)):
        raise ScenarioError(f"{file}: unknown: {', '.join(unknown)}; expected {', '.join(known)}")
    if missing := sorted({"title", "kind", "default"} - set(found)):
        raise ScenarioError(f"{file}: missing: {', '.join(missing)}")
    for name, value in found.items():
        kind = known[name].type
        wanted = tuple if str(kind).startswith("tuple") else {float: (int, float)}.get(kind, kind)
        value = found[name] = tuple(value) if isinstance(value, list) else value
        if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
            raise ScenarioError(f"{file}: {name}: {value!r} found, expected {getattr(kind, '__name__', kind)}")
    try:
        return Scenario(name=file.stem, **found)
    except ValueError as error:
        raise ScenarioError(f"{file}: {error}") from error


def shaped(scenario: Scenario) -> bool:
    """Whether it needs a link that can be shaped."""
    return scenario.latency_ms > 0 or any(Link.parse(text).bits(1.0) != OPEN for text in scenario.links)


def unshaped(scenario: Scenario, known: dict[str, Scenario]) -> Scenario | None:
    """What measures the same over an open link where it needs a shaped one, if anything does."""
    what = lambda each: (each.kind, each.group, each.data, each.pipeline)
    others = (other for other in known.values() if what(other) == what(scenario) and not shaped(other))
    return next(others, None) if shaped(scenario) else None


def all_of() -> dict[str, Scenario]:
    """Every scenario that there is, by name."""
    return {file.stem: load(file) for file in sorted(FOLDER.glob("*.toml"))}
