"""Measurements with an external store and gateway, and the reasons for what is left out."""

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

import links  # noqa: E402
import programs  # noqa: E402
from stack import Stack  # noqa: E402

from .. import arms, results, run  # noqa: E402
from ..kinds import forward, tenants  # noqa: E402
from ..scenario import Scenario  # noqa: E402

ROOT = programs.ROOT
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT / 'bench'}:{ROOT / 'scripts'}"}
KINDS = {
    "forward": "kind = 'forward'\nsizes = [1048576]\n",
    "tenants": "kind = 'tenants'\nsizes = [1, 3]\narms = ['pushed']\nsamples = 20\npipeline = 'decode | resize(short=32)'\n"
    "data = 'testkit/fixtures/photos/jpeg_large*.jpg'\n",
    "scans": "kind = 'scans'\nsizes = [1]\ngateway_flags = ['--memory-budget=512MiB']\n",
}


def test_nginx_is_left_out_if_it_cannot_run_next_to_the_gateway(monkeypatch) -> None:
    stack = lambda store, external: SimpleNamespace(store=store, external_tiers=external)
    why = lambda store, *external: forward.nginx_unavailable_reason(SimpleNamespace(stack=stack(store, external)))
    assert why("http://store", "store", "gateway") == "it runs next to the gateway, and the gateway is external"
    assert why("https://store", "store") == "the store does not speak plain HTTP"
    monkeypatch.setattr(forward, "NGINX", Path("/nonexistent"))
    assert why("http://store") == why("http://store", "store") == "it is not installed"


class SelectiveStore(http.server.BaseHTTPRequestHandler):
    """A store without buckets that knows two tenants."""

    def do_HEAD(self) -> None:
        known = any(f"Credential={name}/" in self.headers["Authorization"] for name in ("demo", "tenant2"))
        self.send_response(404 if known else 403)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextmanager
def selective_store() -> Iterator[str]:
    """Runs that store. Yields its URL."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), SelectiveStore) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_refused_tenants_are_named() -> None:
    jobs = Scenario("jobs", "", "tenants", False, pipeline="decode", arms=("plain",), sizes=(1, 4))
    with selective_store() as store:
        assert tenants.refused_tenants(store, 1) == []
        options = SimpleNamespace(has_external_store=True, upstream=store, gateway=None)
        why = run.skip_reason(jobs, options, SimpleNamespace(reason=""))
    assert why == "the store refuses tenant1, tenant3: expected keys with the secret of demo"
    # The scenario itself reports a store that does not answer.
    assert tenants.refused_tenants("http://127.0.0.1:1", 2) == []


def test_gateway_flags_require_a_local_gateway() -> None:
    scans = Scenario("scans", "", "scans", False, sizes=(1,), gateway_flags=("--memory-budget=1MiB",))
    options = lambda gateway: SimpleNamespace(has_external_store=True, upstream="http://store", gateway=gateway)
    why = lambda gateway: run.skip_reason(scans, options(gateway), SimpleNamespace(reason=""))
    assert why("http://gateway") == "it needs a gateway with the flags --memory-budget=1MiB, and the gateway is external"
    assert why(None) == ""


@pytest.mark.skipif(not arms.PUSHDOWN.exists(), reason=f"{arms.PUSHDOWN} is not built")
def test_forwarding_and_tenants_run_with_external_tiers(tmp_path: Path) -> None:
    folder, files = tmp_path / "stack", []
    folder.mkdir()
    for name, text in KINDS.items():
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text(f"title = '{name}'\ndefault = false\nrounds = 1\n{text}", encoding="utf-8")
    with links.create(False) as link:
        stack = Stack(folder, link, [])
        try:
            given = ["--upstream", stack.store, "--gateway", stack.gateway, "--gateway-admin", stack.admin, "--no-shaping"]
            command = [sys.executable, "-m", "e2e", "run", *files, *given, "--results", tmp_path / "results"]
            env = ENVIRONMENT | programs.KEYS
            ended = subprocess.run(list(map(str, command)), env=env, cwd=ROOT, capture_output=True, text=True, check=False)
        finally:
            stack.stop()
    assert ended.returncode == 0, ended.stderr
    (file,) = (tmp_path / "results").glob("*.json")
    forwarded, jobs, scanned = results.load(file).scenarios
    (cell,) = forwarded.cells
    assert set(cell.arms) == {"plain", "repeat", "gateway"}
    assert "nginx is left out: it runs next to the gateway, and the gateway is external" in cell.notes
    assert all(trial.errors == 0 for arm in cell.arms.values() for trial in arm.trials)
    assert cell.arms["gateway"].trials[0].cpu_seconds["gateway"] > cell.arms["plain"].trials[0].cpu_seconds["gateway"] >= 0
    assert [cell.arms["pushed"].trials[0].samples for cell in jobs.cells] == [20, 60]
    assert "--memory-budget=512MiB" in scanned.skip_reason
