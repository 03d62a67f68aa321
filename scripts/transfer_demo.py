"""Transfer learning on real photos over a thin and over a wide link: transfer_demo.py.

SeaweedFS holds the solar cells of `photos.sh elpv`, the gateway stands beside it, and `pushdown demo transfer` trains on
this side of the link. As root the store's side is a network namespace whose link is shaped; otherwise the link is open.
FULL=1 takes all photos and ten augmented epochs. Everything that it starts and writes goes away with it.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
import botocore.exceptions
from botocore.config import Config

import links

ROOT = pathlib.Path(__file__).resolve().parents[1]
PHOTOS = ROOT / ".cache/photos/elpv"
MODELS = ROOT / ".cache/models"
RUNTIME = ROOT / ".cache/onnxruntime/libonnxruntime.so"
BINARIES = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("DEMO_PROFILE", "release")
NETWORK = "efficientnet_lite0"
BUCKET = "cells"
FULL = os.environ.get("FULL") == "1"
SIZE = ["--epochs", "10"] if FULL else ["--samples", "400", "--epochs", "2"]
KEYS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo-secret", "AWS_REGION": "us-east-1"}
# Of the link at which plain reading waits for it as long as for the CPU.
BELOW, ABOVE = 1 / 3, 3
# One core on each side, so that they do not take each other's: on one machine every split looks alike otherwise.
CORES = sorted(os.sched_getaffinity(0))
HERE, THERE = ({CORES[-1]}, {CORES[0]}) if len(CORES) > 1 else (set(CORES), set(CORES))


class Stack:
    """The store and the gateway beside it, at an address and behind a prefix of their commands."""

    def __init__(self, folder: pathlib.Path, side: links.Side) -> None:
        """Starts both and waits for them."""
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
        for file in (f"{NETWORK}.onnx", f"{NETWORK}.json"):
            (models / file).symlink_to((MODELS / file).resolve())
        ready = folder / "ready.json"
        self.start(
            "gateway",
            [BINARIES / "pushdown-gateway", "serve", "--upstream", self.store, "--models", models]
            + ["--onnxruntime", RUNTIME, "--listen", self.gateway[7:], "--admin-listen", self.admin[7:]]
            + ["--ready-file", ready],
        )
        self.wait("the gateway", ready.exists)
        self.client = boto3.client(
            "s3",
            endpoint_url=self.store,
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            region_name=KEYS["AWS_REGION"],
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )
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
                sys.exit(f"demo: {what} did not start:\n{logs}")
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

    def upload(self) -> int:
        """Puts the labelled photos there; returns how many."""
        names = [line.split(",")[0] for line in (PHOTOS / "labels.csv").read_text().splitlines()]
        put = lambda name: self.client.upload_file(str(PHOTOS / "images" / name), BUCKET, f"photos/{name}")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, names))
        return len(names)

    def transfer(self, *arguments: str) -> str:
        """Runs `pushdown demo transfer` on this side and returns what it prints."""
        command = [BINARIES / "pushdown", "demo", "transfer", f"s3://{BUCKET}/photos/"]
        command += ["--labels", PHOTOS / "labels.csv", "--endpoint-url", self.gateway, "--plain-endpoint", self.store]
        command += ["--models", self.folder / "models", "--admin", self.admin, *arguments]
        ended = subprocess.run(
            list(map(str, command)),
            env=dict(os.environ) | KEYS | {"ORT_DYLIB_PATH": str(RUNTIME)},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, HERE),
        )
        if ended.returncode != 0:
            sys.exit(f"demo: pushdown demo transfer ended with {ended.returncode}")
        return ended.stdout

    def stop(self) -> None:
        """Ends what was started."""
        for _, process in reversed(self.started):
            process.terminate()
        for _, process in reversed(self.started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def crossover(stack: Stack) -> float:
    """Bits per second at which plain reading with one core waits for the link as long as for the CPU."""
    # As many that loading the network hardly counts.
    some = ["--samples", "400", "--epochs", "0", "--ways", "plain", "--json"]
    (line,) = json.loads(stack.transfer(*some))["parts"][0]["lines"]
    return line["stored_bytes"] * 8 / line["cpu_seconds"]


def main() -> None:
    for file in (PHOTOS / "labels.csv", MODELS / f"{NETWORK}.onnx", RUNTIME):
        if not file.exists():
            sys.exit(f"demo: {file} is missing: make demo fetches it")
    with links.side() as side, tempfile.TemporaryDirectory(prefix="pushdown-demo-") as folder:
        stack = None
        try:
            stack = Stack(pathlib.Path(folder), side)
            print(f"demo: transfer learning; gateway at {stack.gateway} beside SeaweedFS, one core on each side", flush=True)
            print(f"demo: {stack.upload()} labelled photos are stored", flush=True)
            if not side.can_be_shaped:
                print(f"demo: the link is not shaped: {side.reason}\n", flush=True)
                print(stack.transfer(*SIZE), flush=True)
                return
            even = crossover(stack)
            print(f"demo: at {even / 1e6:.1f} Mbit/s plain reading waits for the link as long as for the CPU", flush=True)
            for name, factor in (("below", BELOW), ("above", ABOVE)):
                side.shape(even * factor)
                print(f"\ndemo: a link of {even * factor / 1e6:.1f} Mbit/s, {name} that\n", flush=True)
                print(stack.transfer(*SIZE), flush=True)
        finally:
            if stack:
                stack.stop()


if __name__ == "__main__":
    # So that everything ends and goes, however the demo is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
