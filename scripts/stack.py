"""SeaweedFS with the gateway beside it, each pinned to the store's side, and commands run on this side."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions

import links
import programs
from programs import BINARIES, KEYS, ROOT

MODELS = ROOT / ".cache/models"
RUNTIME = ROOT / ".cache/onnxruntime/libonnxruntime.so"
BUCKET = "samples"
# One core on each side, so that they do not take each other's: on one machine every split looks alike otherwise.
CORES = sorted(os.sched_getaffinity(0))
HERE, THERE = ({CORES[-1]}, {CORES[0]}) if len(CORES) > 1 else (set(CORES), set(CORES))


class Stack:
    """The store and the gateway beside it, at an address and behind a prefix of their commands."""

    def __init__(self, folder: pathlib.Path, side: links.Side, networks: list[str], *flags: str) -> None:
        """Starts both, the gateway with these networks and flags, and waits for them."""
        self.folder, self.side, self.started = folder, side, []
        ports = side.free_ports(6)
        self.store, self.gateway, self.admin = (f"http://{side.address}:{port}" for port in ports[3:])
        identity = {"name": "demo", "actions": ["Admin", "Read", "List", "Tagging", "Write"]}
        identity["credentials"] = [dict(zip(("accessKey", "secretKey"), KEYS.values()))]
        (folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
        (folder / "weed").mkdir()
        master, volume, filer, s3 = ports[:4]
        self.start(
            "weed",
            [ROOT / ".venv/bin/weed", "server", "-s3", "-filer", f"-dir={folder / 'weed'}"]
            + [f"-ip={side.address}", f"-ip.bind={side.address}", f"-master.port={master}", f"-volume.port={volume}"]
            + [f"-filer.port={filer}", f"-s3.port={s3}", f"-s3.config={folder / 'identities.json'}"]
            + ["-master.telemetry=false", "-master.electionTimeout=1s", "-volume.max=100"]
            + ["-master.volumeSizeLimitMB=256", "-s3.port.iceberg=0", "-s3.port.lance=0"],
        )
        models = folder / "models"
        models.mkdir()
        for file in (MODELS / f"{name}{suffix}" for name in networks for suffix in (".onnx", ".json")):
            if file.exists():
                (models / file.name).symlink_to(file.resolve())
        ready = folder / "ready.json"
        self.start(
            "gateway",
            [BINARIES / "pushdown-gateway", "serve", "--upstream", self.store, "--models", models]
            + ["--onnxruntime", RUNTIME, "--listen", self.gateway[7:], "--admin-listen", self.admin[7:]]
            + ["--ready-file", ready, *flags],
        )
        self.wait("the gateway", ready.exists)
        self.client = programs.s3(self.store, retries={"total_max_attempts": 1})
        self.wait("the store", self.takes_a_bucket)

    def start(self, name: str, command: list) -> None:
        """Starts a program on the store's side."""
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [*self.side.command, *map(str, command)]
            pinned = lambda: os.sched_setaffinity(0, THERE)
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=pinned)
        self.started.append((name, process))

    def wait(self, what: str, done) -> None:
        """Waits until it is done, while everything runs."""
        deadline = time.monotonic() + 60
        while not done():
            ended = [name for name, process in self.started if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = "\n".join((self.folder / f"{name}.log").read_text()[-2000:] for name, _ in self.started)
                sys.exit(f"{what} did not start:\n{logs}")
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

    def cpu_seconds(self, name: str | None = None) -> float:
        """What all that was started has taken so far, or one program of it."""
        ticks = 0
        for started, process in self.started:
            if name not in (None, started):
                continue
            # Behind the name, which may hold anything: fields 14 and 15 are time in user mode and in the kernel.
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak_bytes(self, name: str) -> int:
        """The most memory that a program has held so far."""
        process = next(process for started, process in self.started if started == name)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024

    def pushdown(self, *arguments: object, weights_at_hand: bool = True) -> str:
        """Runs a command on this side, and returns what it prints. Weights that are not at hand come over the link."""
        command = [*arguments, "--endpoint-url", self.gateway]
        if weights_at_hand:
            return programs.pushdown(*command, "--models", self.folder / "models", cores=HERE, ORT_DYLIB_PATH=str(RUNTIME))
        with tempfile.TemporaryDirectory(prefix="pushdown-cache-") as cache:
            return programs.pushdown(*command, cores=HERE, ORT_DYLIB_PATH=str(RUNTIME), XDG_CACHE_HOME=cache)

    def stop(self) -> None:
        """Ends what was started."""
        programs.end(*(process for _, process in reversed(self.started)))
