"""The ways to a store: directly, and through the gateway in each of its modes."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

from stores import ACCESS, SECRET, keys_file, start_gateway, start_seaweedfs

DIRECT = "direct"
# Forward mode, and re-sign mode with each signer at the store, as `upstream` in a keys file.
FORWARD, SELF, GATEWAY = "forward", "self", "gateway"
GATEWAY_MODES = (FORWARD, SELF, GATEWAY)


def use_own_credentials() -> None:
    """Replaces the user's AWS settings in the environment by the identity of the gateway at the store."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "BOTO"))]:
        del os.environ[name]
    os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}


@contextlib.contextmanager
def serve(mode: str, folder: pathlib.Path) -> Iterator[str]:
    """Starts a fresh SeaweedFS, with a gateway in front of it unless `mode` is direct. Yields the address for clients."""
    with contextlib.ExitStack() as running:
        weed, address = start_seaweedfs(folder / "weed")
        running.callback(weed.stop)
        if mode == DIRECT:
            yield address
            return
        settings: dict[str, object] = {"upstream": f"http://{address}"}
        if mode != FORWARD:
            settings["resign_keys"] = keys_file(folder, mode)
        gateway, addresses = start_gateway(folder / "gateway", **settings)
        running.callback(gateway.stop)
        yield addresses["listen"]
