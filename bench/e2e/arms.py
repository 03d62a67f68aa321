"""The arms of a scenario: methods of reading the same samples, each a command that prints its figures."""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import programs
from stack import BUCKET

from .data import StoredData
from .scenario import Scenario
from .tiers import Tiers, running

FOLDER = Path(__file__).parent / "peers"
PUSHDOWN = programs.BINARIES / "pushdown"
# Our own reader: the kind of each arm, and its flags.
READERS = {
    "plain": ("plain", ["--plain"]),
    "repeat": ("repeat", ["--plain"]),
    "pushed": ("pushed", ["--split", "full"]),
    "smallest": ("pushed", ["--split", "smallest"]),
    "auto": ("auto", ["--auto"]),
    "auto-first": ("auto", ["--auto"]),
    "value-cache": ("layout", ["--auto", "--value-cache"]),
    "resized": ("layout", ["--plain"]),
}
# `auto` of the Python package.
PYTHON_READER = "auto-python"
# The whole pipeline in one process on local files: the ceiling of our reader.
LOCAL = "local"
# Loaders of others: the kind of each, and the environment with its packages.
PEERS = {
    "boto3": ("peer", ".venv-e2e"),
    "urllib3": ("peer", ".venv-e2e"),
    "webdataset": ("peer", ".venv-e2e"),
    "files": ("ceiling", ".venv-e2e"),
    "s3torchconnector": ("peer", ".venv-e2e-torch"),
    "tfdata": ("alternative", ".venv-e2e-tf"),
}
# Peers that read from the store and run the pipeline on the host. With our own reader in `plain` mode they compete for the
# baseline of plain reading.
CONTENDERS = ("boto3", "s3torchconnector", "webdataset")
# A fixed split after K steps at the gateway.
SPLIT = "split:K"
# The repetition of an arm. `repeat` alone repeats plain reading.
REPEAT = "repeat:NAME"
FAMILIES = {SPLIT: "split:[1-9][0-9]*", REPEAT: "repeat:.+"}
ALL = (*READERS, PYTHON_READER, REPEAT, SPLIT, LOCAL, *PEERS)
NATIVE_MODULE = programs.BINARIES / "lib_native.so"


@dataclass
class Arm:
    """A method of reading the samples."""

    name: str
    kind: str
    settings: str
    command: list
    environment: dict[str, str]
    # Folders that each trial finds empty: files of an earlier trial would hide costs of this one.
    scratch_folders: tuple[Path, ...] = ()

    def prepare(self) -> None:
        """Empties the scratch folders before a trial."""
        for folder in self.scratch_folders:
            shutil.rmtree(folder, ignore_errors=True)


def listed_name(name: str) -> str:
    """The name of an arm in `ALL`: `split:K` for `split:3`."""
    if name in FAMILIES:
        return ""
    return next((each for each, pattern in FAMILIES.items() if re.fullmatch(pattern, name)), name)


def base_name(name: str) -> str:
    """The arm that runs: NAME for `repeat:NAME`."""
    return name.partition("repeat:")[2] or name


def unavailable_reason(name: str, external_tiers: Sequence[str]) -> str:
    """Why an arm cannot run on this machine with these external tiers; empty if it can."""
    name = base_name(name)
    if name == "tfdata" and "store" in external_tiers:
        return f"{name} is left out: its workers run next to the store, and the store is external"
    if name == PYTHON_READER and not NATIVE_MODULE.exists():
        return f"{name} is left out: {NATIVE_MODULE} is not built"
    if name in PEERS:
        python = programs.ROOT / PEERS[name][1] / "bin/python"
        if not python.exists():
            return f"{name} is left out: {PEERS[name][1]} is not installed"
    return ""


def build(name: str, scenario: Scenario, tiers: Tiers, data: StoredData, folder: Path) -> Arm:
    """Builds the arm of that name."""
    if base_name(name) != name:
        return replace(build(base_name(name), scenario, tiers, data, folder), name=name, kind="repeat")
    if name in PEERS:
        return build_peer(name, scenario, tiers, data)
    if name == PYTHON_READER:
        return build_python_reader(scenario, tiers, data)
    return build_local(scenario, tiers, data) if name == LOCAL else build_reader(name, scenario, tiers, data, folder)


def build_reader(name: str, scenario: Scenario, tiers: Tiers, data: StoredData, folder: Path) -> Arm:
    """An arm of our own reader."""
    kind, flags = READERS[name] if name in READERS else ("pushed", ["--split", name.partition(":")[2]])
    pipeline, prefix = scenario.pipeline, data.photos(scenario.data, scenario.samples)
    if name == "resized":
        prefix = data.resized(scenario.data, scenario.samples, short_side(pipeline))
    cache = folder / f"value-cache-{scenario.name}"
    flags = [*flags, cache] if name == "value-cache" else flags
    scratch_folders = (cache,) if name == "value-cache" else ()
    plain = "--plain" in flags
    endpoint = tiers.stack.store if plain else tiers.stack.gateway
    command = [PUSHDOWN, "read", f"s3://{BUCKET}/{prefix}", "--pipeline", pipeline, "--endpoint-url", endpoint]
    # All epochs of a fixed split are alike: one is enough.
    epochs = scenario.epochs if kind in ("auto", "layout") else 1
    command += ["--epochs", epochs, "--batch-size", scenario.batch_size, "--step-ms", scenario.trainer_step_ms]
    environment = {}
    if name == "auto-first":
        # Start without weights: they cross the link if the plan needs them.
        environment["XDG_CACHE_HOME"] = str(folder / "cache")
        scratch_folders = (folder / "cache",)
    elif scenario.models:
        command += ["--models", tiers.stack.model_folder(list(scenario.models))]
    shown = " ".join(str(flag) for flag in flags if flag != cache)
    target = "from the store" if plain else "from the gateway"
    return Arm(name, kind, f"`pushdown read {shown}` {target}", [*command, *flags, "--json"], environment, scratch_folders)


def build_python_reader(scenario: Scenario, tiers: Tiers, data: StoredData) -> Arm:
    """`auto` of the Python package: the same reader, called from Python."""
    source = f"s3://{BUCKET}/{data.photos(scenario.data, scenario.samples)}"
    command = [programs.ROOT / "scripts/python.sh", sys.executable, FOLDER / "python_reader.py", source]
    command += ["--pipeline", scenario.pipeline, "--endpoint", tiers.stack.gateway, "--epochs", scenario.epochs]
    command += ["--batch-size", scenario.batch_size, "--step-ms", scenario.trainer_step_ms]
    if scenario.models:
        command += ["--models", tiers.stack.model_folder(list(scenario.models))]
    return Arm(PYTHON_READER, "auto", "", command, {"NATIVE": str(NATIVE_MODULE)})


def build_local(scenario: Scenario, tiers: Tiers, data: StoredData) -> Arm:
    """The ceiling: local files."""
    command = [programs.BINARIES / "file-reader", data.local_folder(scenario.data, scenario.samples)]
    command += ["--pipeline", scenario.pipeline]
    if scenario.models:
        command += ["--models", tiers.stack.model_folder(list(scenario.models))]
    return Arm(LOCAL, "ceiling", "`file-reader`: the pipeline on local files", command, {})


def build_peer(name: str, scenario: Scenario, tiers: Tiers, data: StoredData) -> Arm:
    """A loader of others."""
    kind, venv = PEERS[name]
    endpoint, prefix = tiers.stack.store, data.photos(scenario.data, scenario.samples)
    if name == "webdataset":
        prefix = data.shards(scenario.data, scenario.samples)
    elif name == "files":
        prefix = data.local_folder(scenario.data, scenario.samples)
    elif name == "tfdata":
        endpoint = f"grpc://{tfdata_address(tiers)}"
    command = [programs.ROOT / venv / "bin/python", FOLDER / "loader.py", name, "--endpoint", endpoint, "--bucket", BUCKET]
    command += ["--prefix", prefix, "--work", peer_work(scenario.pipeline), "--batch-size", scenario.batch_size]
    command += ["--step-ms", scenario.trainer_step_ms]
    command += ["--models", tiers.stack.model_folder(list(scenario.models))]
    return Arm(name, kind, "", command, {})


def tfdata_address(tiers: Tiers) -> str:
    """The address of tf.data service; its worker uses the next port."""
    return f"{tiers.link.gateway.address}:{tiers.stack.spare_port}"


@contextmanager
def store_side_programs(name: str, scenario: Scenario, tiers: Tiers, data: StoredData, folder: Path) -> Iterator[None]:
    """Runs the programs that an arm needs next to the store. Only tf.data service has one."""
    if name != "tfdata":
        yield
        return
    ready = folder / f"tfdata-{scenario.name}"
    address, _, port = tfdata_address(tiers).rpartition(":")
    work = peer_work(scenario.pipeline)
    python = programs.ROOT / PEERS[name][1] / "bin/python"
    command = [*tiers.link.gateway.command, python, FOLDER / "tfdata_server.py"]
    command += ["--endpoint", tiers.stack.store, "--bucket", BUCKET, "--batch-size", scenario.batch_size]
    command += ["--prefix", data.photos(scenario.data, scenario.samples), "--ready-file", ready]
    command += ["--work", work if work.startswith("pixels") else "pixels:256:224", "--address", address, "--port", port]
    # Keys go into the environment: command lines are readable by every user.
    with running(tiers, "tfdata", command, **programs.KEYS):
        tiers.stack.wait("tf.data service", ready.exists)
        yield
    ready.unlink()


def peers_can_run(pipeline: str) -> bool:
    """Whether loaders of others can run the pipeline: they decode to pixels and run models."""
    return peer_work(pipeline) != "bytes"


def peer_work(pipeline: str) -> str:
    """The work of a loader of others for this pipeline. In place of a random crop it crops the centre."""
    if "model(" in pipeline:
        return pipeline.rpartition("| model(")[2].partition(")")[0].partition(",")[0]
    _, _, crop = pipeline.partition("center_crop(")
    return f"pixels:{short_side(pipeline)}:{crop.partition(')')[0]}" if crop else "bytes"


def describe_cores(tiers: Tiers) -> str:
    """Which tier runs on which cores."""
    store_cores, host_cores = sorted(tiers.stack.store_cores), sorted(tiers.host_cores)
    external = tiers.stack.external_tiers
    if store_cores == host_cores and not external:
        return "one core for all"
    shown = lambda cores: f"core{'' if len(cores) == 1 else 's'} {', '.join(map(str, cores))}"
    local = [tier for tier in ("store", "gateway") if tier not in external]
    places = [(external, "external"), (local, f"on {shown(store_cores)}"), (["reader", "trainer"], f"on {shown(host_cores)}")]
    return ", ".join(f"{' and '.join(names)} {place}" for names, place in places if names)


def short_side(pipeline: str) -> int:
    """The short side to which a pipeline resizes."""
    _, _, rest = pipeline.partition("resize(short=")
    return int(rest.partition(")")[0])
