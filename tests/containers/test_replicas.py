"""Three gateways behind one name, as docker/compose.replicas.yaml starts them: replicas come and go in an epoch, and nothing is lost."""

import inspect
import json
import pathlib
import subprocess
import uuid
from collections.abc import Iterator

import pytest
from conftest import ARGUMENTS, CPUS
from engine import Compose, Engine

# Any free port of this machine.
PORTS = {f"{service}_PORT": "0" for service in ("STORE", "GATEWAY", "ADMIN")}
BUCKET, KEYS = "photos", ("pushdown", "pushdown-secret")
# 2,624 photos, more than a minute for a trainer with this time for a batch.
CELLS, TRAINING_SECONDS = "elpv/images/", 1.6
REPLICAS = ("gateway", "gateway-2", "gateway-3")
ADDED = "gateway-4"
READER = "pushdown-reader:local"


def read_epoch(source: str, gateway: str, training_seconds: float) -> None:
    """Reads an epoch in the container of a trainer, by all replicas or plainly without a gateway. Prints a line of JSON after each batch,
    and at the end key and digest of each sample in their order, with what the reader says about replicas."""
    import dataclasses
    import hashlib
    import json
    import time

    import pushdown

    mode = {"mode": "pushdown", "plan": pushdown.Plan(split="full")} if gateway else {"mode": "plain"}
    # Some batches ahead of the trainer, so that the epoch lasts as long as training does.
    reader = pushdown.Reader(
        source, "decode | resize(224, 224)", batch_size=64, seed=7, gateway=gateway, io=pushdown.IO(prefetch="48 MiB"), **mode
    )
    samples = []
    for batch in reader:
        pixels = memoryview(batch.x).cast("B")
        size = len(pixels) // len(batch.keys)
        for row, key in enumerate(batch.keys):
            samples.append((key, hashlib.sha256(pixels[row * size : (row + 1) * size]).hexdigest()))
        print(json.dumps({"samples": len(samples)}), flush=True)
        time.sleep(training_seconds)
    stats = reader.stats
    report = {"samples": samples, "errors": stats.errors, "replicas": [dataclasses.asdict(replica) for replica in stats.replicas]}
    print(json.dumps({"report": report}), flush=True)


class Epoch:
    """An epoch that a container reads."""

    def __init__(self, engine: Engine, network: str, log: pathlib.Path, gateway: str = "", training_seconds: float = 0) -> None:
        self.engine, self.log, self.name = engine, log, f"reader-{uuid.uuid4().hex[:8]}"
        self.report: dict | None = None
        script = f"{inspect.getsource(read_epoch)}\nread_epoch({f's3://{BUCKET}/{CELLS}'!r}, {gateway!r}, {training_seconds})"
        command = ["run", "--rm", "--name", self.name, "--network", network, "--cpuset-cpus", CPUS["TRAINER_CPUS"]]
        command += ["--env", f"AWS_ACCESS_KEY_ID={KEYS[0]}", "--env", f"AWS_SECRET_ACCESS_KEY={KEYS[1]}", "--env", "AWS_REGION=us-east-1"]
        command += ["--env", "AWS_ENDPOINT_URL_S3=http://store:9000", "--env", "HOME=/tmp"]
        command += ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"]
        # It ends by itself if the reader hangs.
        command += ["--entrypoint", "timeout", READER, "600", "python", "-c", script]
        with log.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                ["docker", *command], env=engine.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def read(self) -> Iterator[int]:
        """The number of samples after each batch. Then `report` has the samples."""
        try:
            for line in self.process.stdout:
                message = json.loads(line)
                self.report = message.get("report")
                if self.report is None:
                    yield message["samples"]
        finally:
            # Gone already, unless the test failed.
            self.engine.docker("rm", "--force", self.name, check=False)
            self.process.wait()
        assert self.report is not None, self.log.read_text(encoding="utf-8")[-4000:]


@pytest.fixture(name="compose")
def compose_(engine: Engine, images: dict[str, str]) -> Iterator[Compose]:
    """SeaweedFS with photos, and three gateways."""
    engine.build_target(READER, "reader", **ARGUMENTS)
    variables = CPUS | ARGUMENTS | PORTS
    with Compose(engine, "seaweedfs", "replicas", profiles=("minio", "gateway", "replica"), **variables) as compose:
        compose.run("up", "--detach", "--wait", "--no-build", "store")
        assert compose.show("run", "--rm", "--no-deps", "load") == 0
        compose.run("up", "--detach", "--wait", "--no-build", "--no-deps", *REPLICAS)
        yield compose


def test_an_epoch_survives_changes_of_replicas(engine: Engine, compose: Compose, tmp_path: pathlib.Path) -> None:
    """One replica is killed, one added, one paused, and one cut off its network. Each sample arrives once, in the same order, and with
    the pixels of plain reading."""
    network = compose.inspect("gateway", "range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end")
    first = compose.container("gateway")
    changes = [
        (320, lambda: compose.run("kill", "--signal", "KILL", "gateway-2")),
        (640, lambda: compose.run("up", "--detach", "--no-build", "--no-deps", ADDED)),
        # Twenty seconds later: readers look the name up every 10 s.
        (1472, lambda: compose.run("pause", "gateway-3")),
        (1792, lambda: engine.docker("network", "disconnect", network, first)),
    ]
    epoch = Epoch(engine, network, tmp_path / "epoch.log", "http://gateway:9900", TRAINING_SECONDS)
    try:
        for samples in epoch.read():
            while changes and samples >= changes[0][0]:
                changes.pop(0)[1]()
    finally:
        # Compose cannot stop a paused container.
        compose.run("unpause", "gateway-3", check=False)
    assert not changes, "the epoch has ended before all changes"
    plain = Epoch(engine, network, tmp_path / "plain.log")
    for _ in plain.read():
        pass
    assert (epoch.report["errors"], plain.report["errors"]) == (0, 0)
    assert len(plain.report["samples"]) == len({key for key, _ in plain.report["samples"]}) > 2_000
    assert epoch.report["samples"] == plain.report["samples"]
    check_replicas(epoch.report["replicas"], len(plain.report["samples"]))


def check_replicas(replicas: list[dict], count: int) -> None:
    """Each replica had its part, and the added one is the only one in use at the end."""
    named = {replica["id"]: replica for replica in replicas}
    assert named.keys() == {*REPLICAS, ADDED} and len(replicas) == len(named), replicas
    assert all(replica["address"] and replica["samples"] > 0 for replica in replicas), replicas
    assert sum(replica["samples"] for replica in replicas) <= count, replicas
    assert named[ADDED]["state"] not in {named[name]["state"] for name in REPLICAS}, replicas
