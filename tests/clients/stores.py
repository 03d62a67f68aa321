"""The stores under test, each with gateways in front of it."""

import dataclasses
import json
import os
import pathlib
import sys
import urllib.request
from typing import NamedTuple

import boto3
import botocore.exceptions
import trustme
from botocore.config import Config

from process import Launcher, Process, free_ports

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACCESS, SECRET, REGION = "pushdowntestkeys", "pushdowntestsecret", "us-east-1"
OTHER_ACCESS, OTHER_SECRET = "pushdownotherkey", "pushdownothersecret"
# An account with all permissions on one bucket only.
LIMITED_ACCESS, LIMITED_SECRET, LIMITED_BUCKET = "pushdownlimitedkey", "pushdownlimitedsecret", "the-limited-bucket"
# `resign`: SeaweedFS, with gateways in re-sign mode.
# `aws`: the same with one identity for all callers, in front of a SeaweedFS that is addressed and refuses as AWS does.
BACKENDS = ("embedded", "seaweedfs", "resign", "aws")
# Stores that are heavy to install: tests run in front of them only if PUSHDOWN_TEST_BACKENDS names them (`make test-stores`).
REAL_STORES = ("ceph", "garage")
NO_TRAILERS = "refuses uploads with a checksum in the trailer (411)"
# Lifetime of the credentials of this identity: several end within the tests.
SESSION_SECONDS = 30


class Keys(NamedTuple):
    """The keys of an account."""

    access: str
    secret: str


OWNER, LIMITED = Keys(ACCESS, SECRET), Keys(LIMITED_ACCESS, LIMITED_SECRET)
# The only form of keys that Garage takes.
GARAGE_OWNER, GARAGE_LIMITED = Keys("GK" + "0a" * 12, "1b" * 32), Keys("GK" + "2c" * 12, "3d" * 32)


@dataclasses.dataclass
class GarageAdmin:
    """The admin API of Garage."""

    address: str
    token: str

    def create_bucket(self, name: str, owner: Keys) -> None:
        bucket = self._ask("CreateBucket", {"globalAlias": name})["id"]
        rights = {"owner": True, "read": True, "write": True}
        self._ask("AllowBucketKey", {"bucketId": bucket, "accessKeyId": owner.access, "permissions": rights})

    def _ask(self, operation: str, body: dict) -> dict:
        headers = {"authorization": f"Bearer {self.token}"}
        url = f"http://{self.address}/v2/{operation}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            return json.load(answer)


@dataclasses.dataclass
class Store:
    """A running store. Clients connect to the gateways in front of it; only comparisons use the store directly."""

    name: str
    endpoint: str
    tls_endpoint: str
    authority: pathlib.Path
    upstream: str = ""
    keys: Keys = OWNER
    limited_keys: Keys = LIMITED
    # The admin API of Garage.
    admin: GarageAdmin | None = None

    def client(self, **options):
        """A boto3 client of the gateway; `tls=True` selects the gateway with TLS."""
        tls = options.pop("tls", False)
        # By default boto3 presigns links with SigV2, and batch requests require SigV4.
        config = {"signature_version": "s3v4", "retries": {"total_max_attempts": 1}}
        config |= options.pop("config", {})
        settings = {
            "aws_access_key_id": self.keys.access, "aws_secret_access_key": self.keys.secret, "region_name": REGION,
        }  # fmt: skip
        return boto3.client(
            "s3",
            endpoint_url=self.tls_endpoint if tls else self.endpoint,
            verify=str(self.authority) if tls else None,
            config=Config(**config),
            **(settings | options),
        )

    def limited_client(self):
        """A client of an account that has no right on the buckets of others."""
        access, secret = self.limited_keys
        return self.client(aws_access_key_id=access, aws_secret_access_key=secret)

    def create_bucket(self, name: str) -> None:
        """Creates a bucket whose name all accounts know: in Garage one that is created through S3 exists for its account alone."""
        if self.admin:
            self.admin.create_bucket(name, self.keys)
        else:
            self.client().create_bucket(Bucket=name)

    def direct(self):
        """A boto3 client of the store itself."""
        return dataclasses.replace(self, endpoint=self.upstream).client()


def gateway_binary() -> pathlib.Path:
    """`PUSHDOWN_GATEWAY`, or the debug build."""
    binary = pathlib.Path(os.environ.get("PUSHDOWN_GATEWAY", ROOT / "target/debug/pushdown-gateway"))
    if not binary.is_file():
        raise RuntimeError(f"{binary} is missing: run `cargo build -p pushdown-gateway`, or set PUSHDOWN_GATEWAY")
    return binary


def start_gateway(
    folder: pathlib.Path, environment: dict[str, str] | None = None, **settings: object
) -> tuple[Process, dict[str, str]]:
    """Starts a gateway, on free ports unless `listen` is set, and returns its process and its addresses.

    `environment` replaces that of this process.
    """
    folder.mkdir()
    ready = folder / "ready.json"
    settings = {"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "ready_file": ready} | settings
    environment = dict(os.environ) if environment is None else environment
    env = environment | {f"PUSHDOWN_{name.upper()}": str(value) for name, value in settings.items()}
    gateway = Process([str(gateway_binary()), "serve"], folder / "log", env)
    gateway.wait_until("the gateway serves", ready.exists)
    return gateway, json.loads(ready.read_text())


def start_seaweedfs(folder: pathlib.Path) -> tuple[Process, str]:
    """Starts SeaweedFS with three identities, and returns its process and the address of its S3 port."""
    (folder / "data").mkdir(parents=True)
    identities = folder / "identities.json"
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    limited = [f"{action}:{LIMITED_BUCKET}" for action in actions]
    accounts = [
        {"name": name, "credentials": [{"accessKey": access, "secretKey": secret}], "actions": allowed}
        for name, access, secret, allowed in (
            ("test", ACCESS, SECRET, actions),
            ("other", OTHER_ACCESS, OTHER_SECRET, actions),
            ("limited", LIMITED_ACCESS, LIMITED_SECRET, limited),
        )
    ]
    identities.write_text(json.dumps({"identities": accounts}))
    master, volume, filer, s3 = free_ports(4)
    weed = Process(
        [
            str(ROOT / ".venv/bin/weed"),
            "server", "-s3", "-filer", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={s3}",
            f"-s3.config={identities}", "-master.telemetry=false", "-master.electionTimeout=1s",
            # Each bucket needs its own volumes.
            "-volume.max=2000", "-master.volumeSizeLimitMB=64",
            # By default SeaweedFS refuses objects if less than 1 % of the disk is free, even if that is gigabytes.
            "-volume.minFreeSpace=100MiB",
            # These services use fixed ports, which a second SeaweedFS on this machine could not open.
            "-s3.port.iceberg=0", "-s3.port.lance=0",
        ],
        folder / "log",
        # SeaweedFS uses AWS credentials of the environment as those of an administrator. By default it creates seven volumes for each
        # bucket; a suite with hundreds of buckets would run out of them.
        {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        | {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"},
    )  # fmt: skip
    weed.wait_until("SeaweedFS stores an object", lambda: _stores_an_object(f"http://127.0.0.1:{s3}"))
    return weed, f"127.0.0.1:{s3}"


def start_real_store(name: str, folder: pathlib.Path) -> tuple[Process, str, dict[str, object]]:
    """Starts one of `REAL_STORES`, and returns its process, the address of its S3 port, and fields of its `Store`."""
    accounts = (GARAGE_OWNER, GARAGE_LIMITED) if name == "garage" else (OWNER, LIMITED)
    folder.mkdir()
    command = [sys.executable, str(ROOT / "scripts/real_stores"), name]
    store = Launcher([*command, *(f"--account={keys.access}:{keys.secret}" for keys in accounts)], folder / "log")
    store.wait_until(f"{name} serves", lambda: "\n" in store.log.read_text(), seconds=300)
    ready = json.loads(store.log.read_text())
    fields = dict(zip(("keys", "limited_keys"), accounts, strict=True))
    if "admin" in ready:
        fields["admin"] = GarageAdmin(ready["admin"], ready["token"])
    return store, ready["address"], fields


def start_aws_front(folder: pathlib.Path, store: str) -> tuple[Process, dict[str, str]]:
    """Starts a front that addresses a store as AWS does, and returns its process and its URLs."""
    folder.mkdir()
    # Built together with the gateway.
    program = gateway_binary().with_name("aws-front")
    front = Process([str(program), store, ACCESS, SECRET, REGION, str(SESSION_SECONDS)], folder / "log")
    front.wait_until("the front serves", lambda: "\n" in front.log.read_text())
    return front, json.loads(front.log.read_text().splitlines()[0])


def session_environment(credentials_url: str) -> dict[str, str]:
    """The environment of a gateway that gets its credentials from this URL."""
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    environment = {name: value for name, value in os.environ.items() if name not in keys}
    return environment | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": credentials_url}


def keys_file(folder: pathlib.Path, upstream: str = "self") -> pathlib.Path:
    """A keys file with the accounts of the store, which decides on their requests if `upstream` is `self`.

    If it is `gateway`, grants give them the same rights.
    """
    blocks = []
    for access, secret, bucket in (
        (ACCESS, SECRET, "*"),
        (OTHER_ACCESS, OTHER_SECRET, "*"),
        (LIMITED_ACCESS, LIMITED_SECRET, LIMITED_BUCKET),
    ):
        blocks.append(f'[[key]]\naccess-key = "{access}"\nsecret = "{secret}"\nupstream = "{upstream}"\n')
        if upstream == "gateway":
            actions = ["admin", "delete", "list", "read", "versions", "write"]
            blocks.append(f'[[key.grant]]\nbucket = "{bucket}"\nallow = {json.dumps(actions)}\npipelines = true\n')
    path = folder / "keys.toml"
    path.touch(0o600)
    path.write_text("".join(blocks))
    return path


def _stores_an_object(endpoint: str) -> bool:
    """The services of SeaweedFS connect one after the other; storing an object needs all of them."""
    client = Store("", endpoint, "", pathlib.Path()).client()
    try:
        client.create_bucket(Bucket="readiness")
        client.put_object(Bucket="readiness", Key="object", Body=b"ready")
        client.delete_object(Bucket="readiness", Key="object")
        client.delete_bucket(Bucket="readiness")
    except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError):
        return False
    return True


def certificate(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Files of a certificate for 127.0.0.1, its key, and the authority that signed it."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    files = {name: folder / f"{name}.pem" for name in ("authority", "tls_cert", "tls_key")}
    authority.cert_pem.write_to_path(files["authority"])
    issued.private_key_pem.write_to_path(files["tls_key"])
    for part in issued.cert_chain_pems:
        part.write_to_path(files["tls_cert"], append=True)
    return files
