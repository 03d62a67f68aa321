"""The arms of a scenario: ways of getting the same samples, each a command that prints its figures."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import programs
from stack import BUCKET

from .data import Data
from .scenario import Scenario
from .tiers import Tiers, started

FOLDER = Path(__file__).parent / "peers"
PUSHDOWN = programs.BINARIES / "pushdown"
# Ours: what each is, and what the command is told.
OURS = {
    "plain": ("plain", ["--plain"]),
    "again": ("again", ["--plain"]),
    "pushed": ("pushed", ["--split", "full"]),
    "smallest": ("pushed", ["--split", "smallest"]),
    "auto": ("auto", ["--auto"]),
    "auto-first": ("auto", ["--auto"]),
    "kept": ("layout", ["--auto", "--keep"]),
    "resized": ("layout", ["--plain"]),
}
# The whole pipeline in one process, on files of this side's disk: no reader of ours is faster.
LOCAL = "local"
# Others': what each is, and in which environment it is installed.
PEERS = {
    "boto3": ("peer", ".venv-e2e"),
    "urllib3": ("peer", ".venv-e2e"),
    "webdataset": ("peer", ".venv-e2e"),
    "files": ("ceiling", ".venv-e2e"),
    "s3torchconnector": ("peer", ".venv-e2e-torch"),
    "tfdata": ("rival", ".venv-e2e-tf"),
}
# Those of them that read from the store and leave all else to the host: with our own reader in `plain` mode they are what
# plain reading is.
CONTENDERS = ("boto3", "s3torchconnector", "webdataset")
# A fixed split, of which there is one for each number of steps that the gateway runs.
SPLIT = "split:K"
# Any of them once more, for an A/A test of its own. `again` alone is plain reading once more.
AGAIN = "again:NAME"
FAMILIES = {SPLIT: "split:[1-9][0-9]*", AGAIN: "again:.+"}
NAMES = (*OURS, AGAIN, SPLIT, LOCAL, *PEERS)


@dataclass
class Arm:
    """A way of getting the samples."""

    name: str
    kind: str
    settings: str
    command: list
    environment: dict[str, str]
    # Folders that no turn finds filled: what an earlier one has left there would be no cost of this one.
    fresh: tuple[Path, ...] = ()

    def before(self) -> None:
        """What is done before each turn."""
        for folder in self.fresh:
            shutil.rmtree(folder, ignore_errors=True)


def family(name: str) -> str:
    """What an arm is called where all that there are are listed."""
    if name in FAMILIES:
        return ""
    return next((each for each, pattern in FAMILIES.items() if re.fullmatch(pattern, name)), name)


def once(name: str) -> str:
    """What is run: of `again:NAME` it is NAME."""
    return name.partition("again:")[2] or name


def missing(name: str, elsewhere: Sequence[str]) -> str:
    """Why an arm cannot be run here, if so, with those tiers on other machines."""
    name = once(name)
    if name == "tfdata" and "store" in elsewhere:
        return f"{name} is left out: its workers run beside the store, which is elsewhere"
    if name in PEERS:
        python = programs.ROOT / PEERS[name][1] / "bin/python"
        if not python.exists():
            return f"{name} is left out: {PEERS[name][1]} is not installed"
    return ""


def of(name: str, scenario: Scenario, tiers: Tiers, data: Data, folder: Path) -> Arm:
    """The arm of that name."""
    if once(name) != name:
        return replace(of(once(name), scenario, tiers, data, folder), name=name, kind="again")
    if name in PEERS:
        return peer(name, scenario, tiers, data)
    return local(scenario, tiers, data) if name == LOCAL else ours(name, scenario, tiers, data, folder)


def ours(name: str, scenario: Scenario, tiers: Tiers, data: Data, folder: Path) -> Arm:
    """One of our own reader's ways."""
    kind, flags = OURS[name] if name in OURS else ("pushed", ["--split", name.partition(":")[2]])
    pipeline, prefix = scenario.pipeline, data.photos(scenario.data, scenario.samples)
    if name == "resized":
        prefix = data.resized(scenario.data, scenario.samples, short_side(pipeline))
    kept = folder / f"kept-{scenario.name}"
    flags = [*flags, kept] if name == "kept" else flags
    fresh = (kept,) if name == "kept" else ()
    plain = "--plain" in flags
    endpoint = tiers.stack.store if plain else tiers.stack.gateway
    command = [PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", pipeline, "--endpoint-url", endpoint]
    # A way that is fixed is the same in every epoch: one of them tells.
    epochs = scenario.epochs if kind in ("auto", "layout") else 1
    command += ["--epochs", epochs, "--batch-size", scenario.batch_size, "--step-ms", scenario.trainer_step_ms]
    environment = {}
    if name == "auto-first":
        # Nothing is here yet: weights come over the link, where a plan has use for them.
        environment["XDG_CACHE_HOME"] = str(folder / "cache")
        fresh = (folder / "cache",)
    elif scenario.models:
        command += ["--models", tiers.stack.model_folder(list(scenario.models))]
    told = " ".join(str(flag) for flag in flags if flag != kept)
    where = "straight to the store" if plain else "to the gateway"
    return Arm(name, kind, f"`pushdown read {told}` {where}", [*command, *flags, "--json"], environment, fresh)


def local(scenario: Scenario, tiers: Tiers, data: Data) -> Arm:
    """The ceiling: nothing is fetched."""
    command = [programs.BINARIES / "file-reader", data.folder(scenario.data, scenario.samples), "--pipeline", scenario.pipeline]
    if scenario.models:
        command += ["--models", tiers.stack.model_folder(list(scenario.models))]
    return Arm(LOCAL, "ceiling", "`file-reader`, which runs the pipeline on local files", command, {})


def peer(name: str, scenario: Scenario, tiers: Tiers, data: Data) -> Arm:
    """One of the loaders that others use."""
    kind, venv = PEERS[name]
    endpoint, prefix = tiers.stack.store, data.photos(scenario.data, scenario.samples)
    if name == "webdataset":
        prefix = data.shards(scenario.data, scenario.samples)
    elif name == "files":
        prefix = data.folder(scenario.data, scenario.samples)
    elif name == "tfdata":
        endpoint = f"grpc://{service(tiers)}"
    command = [programs.ROOT / venv / "bin/python", FOLDER / "loader.py", name, "--endpoint", endpoint, "--bucket", BUCKET]
    command += ["--prefix", prefix, "--work", work(scenario.pipeline), "--batch-size", scenario.batch_size]
    command += ["--step-ms", scenario.trainer_step_ms]
    command += ["--models", tiers.stack.model_folder(list(scenario.models))]
    return Arm(name, kind, "", command, {})


def service(tiers: Tiers) -> str:
    """Where tf.data service listens; its worker has the next port."""
    return f"{tiers.link.gateway.address}:{tiers.stack.spare_port}"


@contextmanager
def beside_the_store(name: str, scenario: Scenario, tiers: Tiers, data: Data, folder: Path) -> Iterator[None]:
    """Runs what an arm needs beside the store: of all arms only tf.data service."""
    if name != "tfdata":
        yield
        return
    ready = folder / f"tfdata-{scenario.name}"
    address, _, port = service(tiers).rpartition(":")
    pixels = work(scenario.pipeline)
    python = programs.ROOT / PEERS[name][1] / "bin/python"
    command = [*tiers.link.gateway.command, python, FOLDER / "tfdata_server.py"]
    command += ["--endpoint", tiers.stack.store, "--bucket", BUCKET, "--batch-size", scenario.batch_size]
    command += ["--prefix", data.photos(scenario.data, scenario.samples), "--ready-file", ready]
    command += ["--work", pixels if pixels.startswith("pixels") else "pixels:256:224", "--address", address, "--port", port]
    # By the environment: anyone may look at a command line.
    with started(tiers, "tfdata", command, **programs.KEYS):
        tiers.stack.wait("tf.data service", ready.exists)
        yield
    ready.unlink()


def by_others(pipeline: str) -> bool:
    """Whether others' loaders can do the same: they make pixels, and run models on them."""
    return work(pipeline) != "bytes"


def work(pipeline: str) -> str:
    """What others' loaders are told to do: the same. Where photos are cropped at random they cut from the middle."""
    if "model(" in pipeline:
        return pipeline.rpartition("| model(")[2].partition(")")[0].partition(",")[0]
    _, _, crop = pipeline.partition("center_crop(")
    return f"pixels:{short_side(pipeline)}:{crop.partition(')')[0]}" if crop else "bytes"


def cores(tiers: Tiers) -> str:
    """Which cores are whose."""
    there, here, elsewhere = sorted(tiers.stack.there), sorted(tiers.here), tiers.stack.elsewhere
    if there == here and not elsewhere:
        return "one core for all"
    said = lambda which: f"core{'' if len(which) == 1 else 's'} {', '.join(map(str, which))}"
    beside = [tier for tier in ("store", "gateway") if tier not in elsewhere]
    places = [(elsewhere, "elsewhere"), (beside, f"on {said(there)}"), (["reader", "trainer"], f"on {said(here)}")]
    return ", ".join(f"{' and '.join(who)} {where}" for who, where in places if who)


def short_side(pipeline: str) -> int:
    """What a pipeline resizes the short side to."""
    _, _, rest = pipeline.partition("resize(short=")
    return int(rest.partition(")")[0])
