"""What is measured of a store and a gateway that run already, and why what is not is left out."""

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


def test_nginx_is_left_out_where_it_cannot_stand_beside_the_gateway(monkeypatch) -> None:
    why = lambda store, *elsewhere: forward.without_nginx(SimpleNamespace(stack=SimpleNamespace(store=store, elsewhere=elsewhere)))
    assert why("http://store", "store", "gateway") == "it would stand beside the gateway, which is elsewhere"
    assert why("https://store", "store") == "the store is not one of plain HTTP"
    monkeypatch.setattr(forward, "NGINX", Path("/nonexistent"))
    assert why("http://store") == why("http://store", "store") == "it is not installed"


class Choosy(http.server.BaseHTTPRequestHandler):
    """A store without buckets that knows two of those who come."""

    def do_HEAD(self) -> None:
        known = any(f"Credential={name}/" in self.headers["Authorization"] for name in ("demo", "tenant2"))
        self.send_response(404 if known else 403)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def choosy() -> Iterator[str]:
    """That store's address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Choosy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_tenants_whom_a_store_does_not_know_are_named() -> None:
    jobs = Scenario("jobs", "", "tenants", False, pipeline="decode", arms=("plain",), sizes=(1, 4))
    with choosy() as store:
        assert tenants.strangers(store, 1) == []
        options = SimpleNamespace(elsewhere=True, upstream=store, gateway=None)
        why = run.why_not(jobs, options, SimpleNamespace(reason=""))
    assert why == "the store refuses tenant1, tenant3, each of whom is to have the secret of demo"
    # That nobody answers is for the scenario to tell.
    assert tenants.strangers("http://127.0.0.1:1", 2) == []


def test_flags_are_those_of_a_gateway_that_is_started() -> None:
    scans = Scenario("scans", "", "scans", False, sizes=(1,), gateway_flags=("--memory-budget=1MiB",))
    options = lambda gateway: SimpleNamespace(elsewhere=True, upstream="http://store", gateway=gateway)
    why = lambda gateway: run.why_not(scans, options(gateway), SimpleNamespace(reason=""))
    assert why("http://gateway") == "its gateway has the flags --memory-budget=1MiB, and this one runs already"
    assert why(None) == ""


@pytest.mark.skipif(not arms.PUSHDOWN.exists(), reason=f"{arms.PUSHDOWN} is not built")
def test_forwarding_and_tenants_are_measured_of_a_store_and_a_gateway_that_run_already(tmp_path: Path) -> None:
    folder, files = tmp_path / "stack", []
    folder.mkdir()
    for name, text in KINDS.items():
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text(f"title = '{name}'\ndefault = false\nrepeats = 1\n{text}", encoding="utf-8")
    with links.links(False) as link:
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
    assert set(cell.arms) == {"plain", "again", "gateway"}
    assert "nginx is left out: it would stand beside the gateway, which is elsewhere" in cell.notes
    assert all(turn.errors == 0 for arm in cell.arms.values() for turn in arm.turns)
    assert cell.arms["gateway"].turns[0].cpu["gateway"] > cell.arms["plain"].turns[0].cpu["gateway"] >= 0
    assert [cell.arms["pushed"].turns[0].samples for cell in jobs.cells] == [20, 60]
    assert "--memory-budget=512MiB" in scanned.skipped
