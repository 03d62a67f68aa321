"""SeaweedFS with the gateway beside it, both on the cores of the store's side, and commands run on this side."""

import json
import os
import pathlib
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions

import links
import programs
from programs import BINARIES, KEYS, ROOT

MODELS = ROOT / ".cache/models"
RUNTIME = ROOT / ".cache/onnxruntime/libonnxruntime.so"
BUCKET = "samples"
# SeaweedFS's, and where a stack keeps the names of their sockets.
PARTS = ("master", "volume", "filer", "s3")
SOCKETS = "sockets"
CORES = sorted(os.sched_getaffinity(0))


def sides(store: int = 1, host: int = 1) -> tuple[set[int], set[int]]:
    """Cores of this side, from the last one on, and of the store's, from the first one on.

    They do not take each other's: on one machine every split looks alike otherwise. A single core is of both.
    """
    if len(CORES) == 1 and store == host == 1:
        return set(CORES), set(CORES)
    if store + host > len(CORES):
        raise ValueError(f"{len(CORES)} cores found, expected {store} for the store's side and {host} for this one")
    return set(CORES[-host:]), set(CORES[:store])


HERE, THERE = sides()


class NotStarted(SystemExit):
    """A program that did not start: ends a script with what it said, unless whoever has more to do catches it."""


def tenants() -> list[dict[str, str]]:
    """Who may read and write: the first one does so where nothing is said, and the others have that one's secret."""
    return [KEYS, *(KEYS | {"AWS_ACCESS_KEY_ID": f"tenant{number}"} for number in range(1, 10))]


def identity(keys: dict[str, str]) -> dict:
    """A tenant, as SeaweedFS is told of one."""
    credentials = {"accessKey": keys["AWS_ACCESS_KEY_ID"], "secretKey": keys["AWS_SECRET_ACCESS_KEY"]}
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    return {"name": keys["AWS_ACCESS_KEY_ID"], "actions": actions, "credentials": [credentials]}


def forget_sockets(folder: pathlib.Path) -> None:
    """Takes away what SeaweedFS of a stack leaves outside of its folder."""
    if (folder / SOCKETS).exists():
        for path in (folder / SOCKETS).read_text().splitlines():
            pathlib.Path(path).unlink(missing_ok=True)


class Stack:
    """The store and the gateway beside it."""

    def __init__(
        self,
        folder: pathlib.Path,
        link: links.Links,
        models: list[str],
        *flags: str,
        store: str | None = None,
        gateway: str | None = None,
        admin: str | None = None,
        there: set[int] = THERE,
    ) -> None:
        """Starts both, the gateway with these models and flags, and waits for them. What is given runs already."""
        self.folder, self.link, self.there, self.started = folder, link, there, []
        self.elsewhere = [tier for tier, given in (("store", store), ("gateway", gateway)) if given is not None]
        ports = link.free_ports(9)
        self.store = store or f"http://{link.store.address}:{ports[3]}"
        self.gateway = gateway or f"http://{link.gateway.address}:{ports[4]}"
        self.admin = admin or f"http://{link.gateway.address}:{ports[5]}"
        # For what else is to listen beside the gateway, two of them in a row in a namespace.
        self.spare_port = ports[6]
        self.models = self.model_folder(models)
        self.client = programs.s3(self.store, retries={"total_max_attempts": 1})
        try:
            if store is None:
                self.start_store(ports[:4])
            if gateway is None:
                self.start_gateway(flags)
            self.wait("the store", self.takes_a_bucket)
        except BaseException:
            # Nobody has this one yet who could end what it started, and the next one may want its ports.
            self.stop()
            raise

    def model_folder(self, names: list[str]) -> pathlib.Path:
        """A folder of these models alone: whoever opens one looks at all that are in it."""
        folder = self.folder / "-".join(["models", *names])
        folder.mkdir(exist_ok=True)
        for file in (MODELS / f"{name}{suffix}" for name in names for suffix in (".onnx", ".json")):
            if file.exists() and not (folder / file.name).exists():
                (folder / file.name).symlink_to(file.resolve())
        return folder

    def start_store(self, ports: list[int]) -> None:
        """SeaweedFS, with the keys of all tenants."""
        address, (master, volume, filer, s3) = self.link.store.address, ports
        # They are in /tmp whatever one says, by port. Whoever clears up behind a stack that was killed looks here.
        left = [f"/tmp/seaweedfs-{part}-grpc-{port + links.GRPC}.sock" for part, port in zip(PARTS, ports)]
        (self.folder / SOCKETS).write_text("\n".join(left))
        identities = self.folder / "identities.json"
        identities.write_text(json.dumps({"identities": [*map(identity, tenants())]}))
        (self.folder / "weed").mkdir()
        weed = [*self.link.store.command, ROOT / ".venv/bin/weed"]
        self.shell = [*weed, "shell", f"-master={address}:{master}", f"-filer={address}:{filer}"]
        # By default they are in /tmp, by port: two stacks in namespaces of their own would share them.
        sockets = [f"-{part}.localSocket={self.folder / f'{part}.sock'}" for part in ("filer", "s3")]
        self.start(
            "weed",
            [*weed, "server", "-s3", "-filer", f"-dir={self.folder / 'weed'}"]
            + [f"-ip={address}", f"-ip.bind={address}", f"-master.port={master}", f"-volume.port={volume}"]
            + [f"-filer.port={filer}", f"-s3.port={s3}", f"-s3.config={identities}", "-master.telemetry=false"]
            + ["-master.electionTimeout=1s", "-volume.max=100", "-master.volumeSizeLimitMB=256"]
            # With less than a hundredth of the disk free, gigabytes, it would take no object.
            + ["-volume.minFreeSpace=100MiB"]
            + ["-s3.port.iceberg=0", "-s3.port.lance=0", *sockets],
        )

    def start_gateway(self, flags: tuple[str, ...]) -> None:
        """The gateway before the store."""
        ready = self.folder / "ready.json"
        self.start(
            "gateway",
            [*self.link.gateway.command, BINARIES / "pushdown-gateway", "serve", "--upstream", self.store]
            + ["--models", self.models, "--onnxruntime", RUNTIME, "--listen", self.gateway[7:]]
            + ["--admin-listen", self.admin[7:], "--ready-file", ready, *flags],
        )
        self.wait("the gateway", ready.exists)

    def accepts(self, address: str) -> bool:
        """Whether something listens there."""
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        return True

    def start(self, name: str, command: list, **environment: str) -> None:
        """Starts a program on the cores of the store's side."""
        with (self.folder / f"{name}.log").open("wb") as log:
            pinned = lambda: os.sched_setaffinity(0, self.there)
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "env": os.environ | environment}
            process = subprocess.Popen(list(map(str, command)), preexec_fn=pinned, **pipes)
        self.started.append((name, process))

    def wait(self, what: str, done) -> None:
        """Waits until it is done, while everything runs."""
        deadline = time.monotonic() + 60
        while not done():
            ended = [name for name, process in self.started if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = "\n".join((self.folder / f"{name}.log").read_text()[-2000:] for name, _ in self.started)
                raise NotStarted(f"{what} did not start:\n{logs}")
            time.sleep(0.1)

    def takes_a_bucket(self) -> bool:
        """Makes the bucket, and an object to see that all parts of the store have found each other."""
        try:
            self.client.create_bucket(Bucket=BUCKET)
            self.client.put_object(Bucket=BUCKET, Key="ready", Body=b"")
            self.client.delete_object(Bucket=BUCKET, Key="ready")
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            return "BucketAlready" in str(error)
        return True

    def upload(self, files: dict[str, pathlib.Path]) -> None:
        """Puts files into the bucket, by key."""
        put = lambda item: self.client.upload_file(str(item[1]), BUCKET, item[0])
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, files.items()))

    def weed(self, command: str) -> str:
        """Runs a command of SeaweedFS's own shell, and returns what it prints: of a store that was started here only."""
        pinned = lambda: os.sched_setaffinity(0, HERE)
        pipes = {"input": command, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        # Without a store it waits for one.
        return subprocess.run(list(map(str, self.shell)), check=True, preexec_fn=pinned, timeout=600, **pipes).stdout

    def pushdown(self, *arguments: object) -> str:
        """Runs a command on this side, and returns what it prints. Weights are at hand."""
        command = [*arguments, "--endpoint-url", self.gateway, "--models", self.models]
        return programs.pushdown(*command, cores=HERE, ORT_DYLIB_PATH=str(RUNTIME))

    def stop(self) -> None:
        """Ends what was started."""
        programs.end(*(process for _, process in reversed(self.started)))
        forget_sockets(self.folder)
