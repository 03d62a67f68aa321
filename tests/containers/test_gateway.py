"""The profiles `minio`, `gateway` and `monitoring` of docker/README.md, and re-sign mode."""

import json
import pathlib
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

import boto3
import botocore.exceptions
import engine as engines
import pytest
from botocore.config import Config
from conftest import ARGUMENTS, CPUS
from engine import Compose, Engine

# Any free port of this machine.
PORTS = {f"{service}_PORT": "0" for service in ("STORE", "GATEWAY", "ADMIN", "PROMETHEUS", "GRAFANA")}
BUCKET, KEYS = "photos", ("pushdown", "pushdown-secret")
# Photos in the image `data`, and a pipeline that takes the gateway half a minute for all of them.
CELLS = "elpv/images/"
FEATURES = "decode | resize(224, 224) | to_float | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until=features)"
# Photos of 12 megapixels.
LARGE = "12mp/"


@pytest.fixture(scope="module", name="compose")
def compose_(engine: Engine, images: dict[str, str]) -> Iterator[Compose]:
    """SeaweedFS with photos, and a gateway in front of it."""
    with compose_with(engine, "seaweedfs") as compose:
        compose.run("up", "--detach", "--wait", "--no-build", "store")
        assert compose.show("run", "--rm", "--no-deps", "load") == 0
        compose.run("up", "--detach", "--wait", "--no-build", "--no-deps", "gateway")
        yield compose


def compose_with(engine: Engine, *overlays: str, **variables: str) -> Compose:
    return Compose(engine, *overlays, profiles=("minio", "gateway", "monitoring"), **(CPUS | ARGUMENTS | PORTS | variables))


def url(compose: Compose, service: str, port: int) -> str:
    """The URL of a published port."""
    return f"http://{compose.run('port', service, port).stdout.strip()}"


def client(compose: Compose, keys: tuple[str, str] = KEYS):
    """A client of the gateway."""
    return boto3.client(
        "s3",
        endpoint_url=url(compose, "gateway", 9900),
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        region_name="us-east-1",
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )


def metric(compose: Compose, name: str) -> float:
    """The sum of a metric of the gateway over its labels; 0 while it does not answer."""
    try:
        with urllib.request.urlopen(f"{url(compose, 'gateway', 9901)}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
    except (OSError, RuntimeError):
        return 0.0
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)


def test_services_are_hardened(engine: Engine, compose: Compose) -> None:
    for service in ("store", "gateway"):
        assert compose.inspect(service, ".State.Health.Status") == "healthy", service
        written = engine.docker("exec", compose.container(service), "sh", "-c", "echo x >/written", check=False)
        assert "Read-only file system" in written.stderr, service
    assert compose.inspect("gateway", ".HostConfig.Memory") == str(4 << 30)
    processes = engine.docker("exec", compose.container("gateway"), "cat", "/proc/1/status").stdout
    fields = dict(line.split(":\t", 1) for line in processes.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["10001"] * 4
    assert fields["NoNewPrivs"] == "1"
    assert int(fields["CapEff"], 16) == 0


def test_objects_and_values_pass_the_gateway(compose: Compose) -> None:
    s3 = client(compose)
    key = s3.list_objects_v2(Bucket=BUCKET, Prefix=CELLS)["Contents"][0]["Key"]
    address = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": key})
    with urllib.request.urlopen(urllib.request.Request(address, headers={"x-pushdown-pipeline": FEATURES})) as answer:
        value = answer.read()
    assert len(value) >= 1280 * 4
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read(4)


def test_prometheus_scrapes_the_gateway(engine: Engine, compose: Compose) -> None:
    compose.run("up", "--detach", "--wait", "--no-build", "--no-deps", "prometheus")
    query = f"{url(compose, 'prometheus', 9090)}/api/v1/query?query=" + urllib.parse.quote('up{job="pushdown-gateway"}')

    def scraped() -> list[str]:
        with urllib.request.urlopen(query) as answer:
            return [result["value"][1] for result in json.load(answer)["data"]["result"]]

    engine.wait_until("Prometheus has scraped the gateway", scraped)
    assert scraped() == ["1"]


def test_grafana_shows_the_dashboard(engine: Engine, compose: Compose) -> None:
    image = next(name for name in compose.run("config", "--images").stdout.split() if "grafana" in name)
    if not engine.has_image(image) and engine.docker("pull", image, check=False).returncode != 0:
        pytest.skip(f"{image} cannot be pulled here, and no package registry has Grafana")
    compose.run("up", "--detach", "--wait", "--no-build", "grafana")
    with urllib.request.urlopen(f"{url(compose, 'grafana', 3000)}/api/search?query=pushdown") as answer:
        assert json.load(answer)


def test_an_epoch_survives_a_killed_gateway(engine: Engine, compose: Compose, images: dict[str, str]) -> None:
    """Each sample arrives once, although the gateway is killed in mid-epoch and started again seconds later."""
    network = compose.inspect("gateway", "range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end")
    command = ["run", "--rm", "--network", network, "--cpuset-cpus", CPUS["TRAINER_CPUS"], "--read-only", "--tmpfs", "/tmp"]
    command += ["--env", f"AWS_ACCESS_KEY_ID={KEYS[0]}", "--env", f"AWS_SECRET_ACCESS_KEY={KEYS[1]}", "--env", "HOME=/tmp"]
    command += ["--entrypoint", "pushdown", images["bench"], "read", f"s3://{BUCKET}/{CELLS}", "--pipeline", FEATURES]
    command += ["--split", "full", "--json", "--endpoint-url", "http://gateway:9900", "--seed", "7"]
    reader = subprocess.Popen(
        ["docker", *command], env=engine.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        samples = "pushdown_micro_batch_samples_total"
        before = metric(compose, samples)
        engine.wait_until("the gateway has computed 300 samples", lambda: metric(compose, samples) >= before + 300, seconds=120)
        compose.run("kill", "--signal", "KILL", "gateway")
        assert compose.inspect("gateway", ".State.ExitCode") == "137"
        assert reader.poll() is None, "the epoch has ended before the gateway was killed"
        time.sleep(3)
        compose.run("start", "gateway")
        output, errors = reader.communicate(timeout=300)
    finally:
        reader.kill()
    assert reader.returncode == 0, errors[-4000:]
    report = json.loads(output)
    photos = client(compose).get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=CELLS)
    count = sum(entry["Key"].endswith(".png") for page in photos for entry in page["Contents"])
    assert (report["samples"], report["errors"]) == (count, 0)
    assert metric(compose, samples) > 0, "the new gateway computed the rest"


def read_slowly(compose: Compose, requests: int) -> list[socket.socket]:
    """Requests different values of 20 MB, and reads none of them: each waits in the gateway."""
    s3 = client(compose)
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=BUCKET, Prefix=LARGE)["Contents"]]
    sockets = []
    for index in range(requests):
        key = keys[index % len(keys)]
        address = urllib.parse.urlsplit(s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": key}))
        connection = socket.create_connection((address.hostname, address.port), timeout=60)
        head = f"GET {address.path}?{address.query} HTTP/1.1\r\nHost: {address.netloc}\r\n"
        connection.sendall(f"{head}x-pushdown-pipeline: decode | center_crop({2_600 + index})\r\n\r\n".encode())
        sockets.append(connection)
    return sockets


@pytest.mark.parametrize("budget, survives", [("128MiB", True), ("4GiB", False)])
def test_the_memory_limit(engine: Engine, compose: Compose, budget: str, survives: bool) -> None:
    """Within a limit of 384 MiB a gateway with a smaller budget answers 503 to what does not fit; one with a larger budget is killed."""
    compose.options["env"] |= {"GATEWAY_MEMORY": "384m", "GATEWAY_BUDGET": budget}
    compose.run("up", "--detach", "--wait", "--no-build", "--no-deps", "--force-recreate", "gateway")
    sockets = read_slowly(compose, 32)
    try:
        if survives:
            statuses = [connection.recv(12).decode() for connection in sockets]
            assert set(statuses) <= {"HTTP/1.1 200", "HTTP/1.1 503"} and "HTTP/1.1 200" in statuses, statuses
            assert compose.inspect("gateway", ".State.Running") == "true"
        else:
            engine.wait_until("the kernel kills it", lambda: compose.inspect("gateway", ".State.OOMKilled") == "true")
    finally:
        for connection in sockets:
            connection.close()


def test_a_gateway_with_keys_of_its_own(
    engine: Engine, images: dict[str, str], tmp_path: pathlib.Path
) -> None:
    keys = engine.docker("run", "--rm", images["gateway"], "keys", "new", "--bucket", BUCKET, "--pipelines").stdout
    file = tmp_path / "keys.toml"
    file.touch(0o600)
    file.write_text(keys, encoding="utf-8")
    fields = dict(line.split(" = ", 1) for line in keys.splitlines() if " = " in line and not line.startswith("#"))
    key = tuple(json.loads(fields[name]) for name in ("access-key", "secret"))
    with compose_with(engine, "seaweedfs", "resign", KEYS_FILE=str(file), KEYS_USER="0") as compose:
        compose.run("up", "--detach", "--wait", "--no-build", "store", "gateway", "--no-deps")
        store = boto3.client(
            "s3",
            endpoint_url=url(compose, "store", 9000),
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
            region_name="us-east-1",
        )
        store.create_bucket(Bucket=BUCKET)
        store.put_object(Bucket=BUCKET, Key="object", Body=b"content")
        assert client(compose, key).get_object(Bucket=BUCKET, Key="object")["Body"].read() == b"content"
        with pytest.raises(botocore.exceptions.ClientError, match="InvalidAccessKeyId"):
            client(compose).get_object(Bucket=BUCKET, Key="object")


def test_the_files_for_minio_are_rendered(engine: Engine) -> None:
    """Its image is on a registry that tests do not reach."""
    for profile in ("minio", "gateway", "bench", "monitoring"):
        rendered = engine.docker("compose", "--profile", profile, "config", cwd=engines.ROOT).stdout
        if profile in ("minio", "bench"):
            assert "image: quay.io/minio/minio:RELEASE." in rendered
