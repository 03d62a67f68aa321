"""Tiers that run nothing, and the admin port of a gateway that counts."""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace

from ..kinds import result_cache
from ..results import Trial
from .build import trial

FIGURES = {"samples": 100, "errors": 0, "value_bytes": 5000, "cpu_seconds": 0.5}


class Counters(http.server.BaseHTTPRequestHandler):
    """An admin port whose counters grow with each page."""

    pages = 0

    def do_GET(self) -> None:
        type(self).pages += 1
        values = result_cache.VALUES.format("memory")
        metrics = f"{result_cache.STORE_BYTES} {1000 * self.pages}\n{values} {self.pages}\n{result_cache.REVALIDATIONS} 7\n"
        status = json.dumps({"cache": {"memory_bytes": 9, "sets": [{"cached_ratio": 0.5}]}})
        self.send_response(200)
        self.end_headers()
        self.wfile.write((status if self.path == "/status.json" else metrics).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def counting_gateway() -> Iterator[str]:
    """The URL of an admin port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counters) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class FakeTiers:
    """Tiers that run nothing, and record what they are asked for."""

    def __init__(self, admin: str) -> None:
        self.gateways, self.commands, self.rates, self.host_cores = [], [], [], {1}
        self.stack = SimpleNamespace(
            store="http://store", gateway="http://gateway", admin=admin, store_cores={0}, external_tiers=[],
            restart_gateway=lambda *flags: self.gateways.append(flags), model_folder=lambda _: "models",
        )  # fmt: skip

    def shape(self, bits: float, *_: float) -> float | None:
        self.rates.append(bits)
        return None if bits == float("inf") else 0.98 * bits

    def run(self, command: list) -> dict:
        self.commands.append([str(part) for part in command])
        epochs = int(argument(self.commands[-1], "--epochs"))
        return FIGURES | {"samples": 100 * epochs, "epoch_seconds": [2.0] * epochs}

    def run_trial(self, run) -> Trial:
        found = run()
        epochs = found["epoch_seconds"]
        return trial(*epochs, samples=found["samples"] // len(epochs))


def argument(command: list[str], flag: str) -> str:
    """The value of a flag."""
    return command[command.index(flag) + 1]
