"""Garage, from crates.io: one node. Access keys are `GK` and 24 hex digits, secret keys 64 hex digits."""

import pathlib
import secrets

from daemons import Account, Daemons, free_ports, program

BINARIES = pathlib.Path(__file__).resolve().parents[2] / ".cache/garage/bin"
# Without `root_domain`, it knows no virtual hosts.
CONFIGURATION = """
metadata_dir = "{folder}/metadata"
data_dir = "{folder}/data"
db_engine = "lmdb"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:{rpc_port}"
rpc_public_addr = "127.0.0.1:{rpc_port}"
rpc_secret = "{rpc_secret}"
[s3_api]
s3_region = "us-east-1"
api_bind_addr = "127.0.0.1:{port}"
[admin]
api_bind_addr = "127.0.0.1:{admin_port}"
admin_token = "{token}"
"""


def launch(daemons: Daemons, accounts: list[Account]) -> dict[str, str]:
    """Creates a cluster of one node, and starts it."""
    garage = program("garage", BINARIES, "garage")
    rpc_port, port, admin_port = free_ports(3)
    token = secrets.token_hex()
    configuration = daemons.folder / "garage.toml"
    configuration.touch(0o600)
    configuration.write_text(
        CONFIGURATION.format(
            folder=daemons.folder,
            rpc_port=rpc_port,
            rpc_secret=secrets.token_hex(32),
            port=port,
            admin_port=admin_port,
            token=token,
        )
    )
    use = [garage, "-c", str(configuration)]
    daemons.start("garage", [*use, "server"])
    daemons.wait_until_http_answers(f"http://127.0.0.1:{admin_port}/health")
    node = daemons.run([*use, "node", "id", "--quiet"]).partition("@")[0]
    daemons.run([*use, "layout", "assign", "--zone", "tests", "--capacity", "20G", node])
    daemons.run([*use, "layout", "apply", "--version", "1"])
    for index, account in enumerate(accounts):
        daemons.run([*use, "key", "import", "--yes", "-n", f"user{index}", account.access_key, account.secret_key])
        daemons.run([*use, "key", "allow", "--create-bucket", account.access_key])
    return {
        "address": f"127.0.0.1:{port}",
        # "garage cargo:2.5.0 [features: ...]"
        "version": daemons.run([garage, "--version"]).split()[1].rpartition(":")[2],
        "admin": f"127.0.0.1:{admin_port}",
        "token": token,
    }
