"""SeaweedFS with the gateway next to it, both on the cores of the store's side, and commands on the host's side."""

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
# The parts of SeaweedFS, and the file in which a stack records their sockets.
PARTS = ("master", "volume", "filer", "s3")
SOCKETS = "sockets"
CORES = sorted(os.sched_getaffinity(0))


def split_cores(store: int = 1, host: int = 1) -> tuple[set[int], set[int]]:
    """The cores of the host, from the last one on, and of the store's side, from the first one on.

    The sides must not share cores: on one machine all splits would perform alike. A single core belongs to both.
    """
    if len(CORES) == 1 and store == host == 1:
        return set(CORES), set(CORES)
    if store + host > len(CORES):
        raise ValueError(f"not enough cores: expected {store} for the store's side and {host} for the host, found {len(CORES)}")
    return set(CORES[-host:]), set(CORES[:store])


HOST_CORES, STORE_CORES = split_cores()


class NotStarted(SystemExit):
    """A program did not start. Uncaught, it ends the script with the program's output."""


def tenants() -> list[dict[str, str]]:
    """The keys of all tenants. The first one is the default; the others share its secret."""
    return [KEYS, *(KEYS | {"AWS_ACCESS_KEY_ID": f"tenant{number}"} for number in range(1, 10))]


def identity(keys: dict[str, str]) -> dict:
    """A tenant in SeaweedFS's configuration."""
    credentials = {"accessKey": keys["AWS_ACCESS_KEY_ID"], "secretKey": keys["AWS_SECRET_ACCESS_KEY"]}
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    return {"name": keys["AWS_ACCESS_KEY_ID"], "actions": actions, "credentials": [credentials]}


def remove_sockets(folder: pathlib.Path) -> None:
    """Removes the files that SeaweedFS leaves outside of the stack's folder."""
    if (folder / SOCKETS).exists():
        for path in (folder / SOCKETS).read_text().splitlines():
            pathlib.Path(path).unlink(missing_ok=True)


class Stack:
    """The store and the gateway next to it."""

    def __init__(
        self,
        folder: pathlib.Path,
        link: links.Links,
        models: list[str],
        *flags: str,
        store: str | None = None,
        gateway: str | None = None,
        admin: str | None = None,
        store_cores: set[int] = STORE_CORES,
    ) -> None:
        """Starts both, the gateway with these models and flags, and waits for them. A tier with a given URL is external."""
        self.folder, self.link, self.store_cores, self.started = folder, link, store_cores, []
        self.external_tiers = [tier for tier, url in (("store", store), ("gateway", gateway)) if url is not None]
        ports = link.free_ports(9)
        self.store = store or f"http://{link.store.address}:{ports[3]}"
        self.gateway = gateway or f"http://{link.gateway.address}:{ports[4]}"
        self.admin = admin or f"http://{link.gateway.address}:{ports[5]}"
        # For other programs next to the gateway. In a namespace the next port is free, too.
        self.spare_port = ports[6]
        self.models = self.model_folder(models)
        self.client = programs.s3(self.store, retries={"total_max_attempts": 1})
        try:
            if store is None:
                self.start_store(ports[:4])
            if gateway is None:
                self.start_gateway(flags)
            self.wait("the store", self.accepts_writes)
        except BaseException:
            # No caller has this stack yet, and the next one may need its ports.
            self.stop()
            raise

    def model_folder(self, names: list[str]) -> pathlib.Path:
        """A folder with these models only: the gateway opens every model in its folder."""
        folder = self.folder / "-".join(["models", *names])
        folder.mkdir(exist_ok=True)
        for file in (MODELS / f"{name}{suffix}" for name in names for suffix in (".onnx", ".json")):
            if file.exists() and not (folder / file.name).exists():
                (folder / file.name).symlink_to(file.resolve())
        return folder

    def start_store(self, ports: list[int]) -> None:
        """Starts SeaweedFS with the keys of all tenants."""
        address, (master, volume, filer, s3) = self.link.store.address, ports
        # SeaweedFS puts these into /tmp regardless of its flags, named by port. The guard of a killed stack reads this list.
        grpc_sockets = [f"/tmp/seaweedfs-{part}-grpc-{port + links.GRPC_PORT_OFFSET}.sock" for part, port in zip(PARTS, ports)]
        (self.folder / SOCKETS).write_text("\n".join(grpc_sockets))
        identities = self.folder / "identities.json"
        identities.write_text(json.dumps({"identities": [*map(identity, tenants())]}))
        (self.folder / "weed").mkdir()
        weed = [*self.link.store.command, ROOT / ".venv/bin/weed"]
        self.shell = [*weed, "shell", f"-master={address}:{master}", f"-filer={address}:{filer}"]
        # By default these are in /tmp, named by port: stacks in different namespaces would share them.
        sockets = [f"-{part}.localSocket={self.folder / f'{part}.sock'}" for part in ("filer", "s3")]
        self.start(
            "weed",
            [*weed, "server", "-s3", "-filer", f"-dir={self.folder / 'weed'}"]
            + [f"-ip={address}", f"-ip.bind={address}", f"-master.port={master}", f"-volume.port={volume}"]
            + [f"-filer.port={filer}", f"-s3.port={s3}", f"-s3.config={identities}", "-master.telemetry=false"]
            + ["-master.electionTimeout=1s", "-volume.max=100", "-master.volumeSizeLimitMB=256"]
            # By default it refuses objects if less than 1 % of the disk is free, which can be gigabytes.
            + ["-volume.minFreeSpace=100MiB"]
            + ["-s3.port.iceberg=0", "-s3.port.lance=0", *sockets],
        )

    def start_gateway(self, flags: tuple[str, ...]) -> None:
        """Starts the gateway in front of the store."""
        ready = self.folder / "ready.json"
        self.start(
            "gateway",
            [*self.link.gateway.command, BINARIES / "pushdown-gateway", "serve", "--upstream", self.store]
            + ["--models", self.models, "--onnxruntime", RUNTIME, "--listen", self.gateway[7:]]
            + ["--admin-listen", self.admin[7:], "--ready-file", ready, *flags],
        )
        self.wait("the gateway", ready.exists)

    def restart_gateway(self, *flags: str) -> None:
        """Ends the gateway and starts it with these flags, on the same ports. Not for an external gateway."""
        entry = next(each for each in self.started if each[0] == "gateway")
        programs.end(entry[1])
        self.started.remove(entry)
        (self.folder / "ready.json").unlink()
        self.start_gateway(flags)

    def is_listening(self, address: str) -> bool:
        """Whether a program listens on the address."""
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        return True

    def start(self, name: str, command: list, **environment: str) -> None:
        """Starts a program on the cores of the store's side."""
        with (self.folder / f"{name}.log").open("wb") as log:
            pinned = lambda: os.sched_setaffinity(0, self.store_cores)
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "env": os.environ | environment}
            process = subprocess.Popen(list(map(str, command)), preexec_fn=pinned, **pipes)
        self.started.append((name, process))

    def wait(self, what: str, is_done) -> None:
        """Waits for a condition, at most a minute and only while all programs run."""
        deadline = time.monotonic() + 60
        while not is_done():
            ended = [name for name, process in self.started if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = "\n".join((self.folder / f"{name}.log").read_text()[-2000:] for name, _ in self.started)
                raise NotStarted(f"{what} did not start:\n{logs}")
            time.sleep(0.1)

    def accepts_writes(self) -> bool:
        """Creates the bucket, and writes an object to check that all parts of the store are connected."""
        try:
            self.client.create_bucket(Bucket=BUCKET)
            self.client.put_object(Bucket=BUCKET, Key="ready", Body=b"")
            self.client.delete_object(Bucket=BUCKET, Key="ready")
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            return "BucketAlready" in str(error)
        return True

    def upload(self, files: dict[str, pathlib.Path]) -> None:
        """Uploads files into the bucket, by key."""
        put = lambda item: self.client.upload_file(str(item[1]), BUCKET, item[0])
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, files.items()))

    def run_weed_shell(self, command: str) -> str:
        """Runs a command of SeaweedFS's shell and returns its output. Not for an external store."""
        pinned = lambda: os.sched_setaffinity(0, HOST_CORES)
        pipes = {"input": command, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        # Without a store the shell waits for one.
        return subprocess.run(list(map(str, self.shell)), check=True, preexec_fn=pinned, timeout=600, **pipes).stdout

    def run_program(self, name: str, *arguments: object) -> str:
        """Runs a program on the host's cores, with local weights, and returns its output."""
        command = [*arguments, "--endpoint-url", self.gateway, "--models", self.models]
        return programs.run_program(name, *command, cores=HOST_CORES, ORT_DYLIB_PATH=str(RUNTIME))

    def stop(self) -> None:
        """Ends all started programs."""
        programs.end(*(process for _, process in reversed(self.started)))
        remove_sockets(self.folder)
