"""The resources of a trial on each tier: from the kernel's clocks locally, and from the metrics of an external gateway."""

import http.server
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

psutil = pytest.importorskip("psutil", reason="it is in .venv-e2e")

import stack  # noqa: E402

from .. import arms, kinds, tiers, trials  # noqa: E402
from ..kinds import growth, table  # noqa: E402
from ..results import Arm  # noqa: E402
from ..scenario import OPEN, Scenario  # noqa: E402
from ..tiers import Tiers  # noqa: E402
from .build import cell  # noqa: E402

FIGURES = {"samples": 10, "errors": 0, "epoch_seconds": [1.0], "value_bytes": 100, "cpu_seconds": 0.5}
# Runs for a few milliseconds, prints the CPU time of its own clock, and stays.
BUSY = """
import sys, time
while time.process_time() < 0.033:
    pass
print(time.process_time(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(name="busy")
def busy_() -> Iterator[tuple[psutil.Process, float]]:
    """A process, and the CPU seconds that it used."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", BUSY], **pipes) as process:
        yield psutil.Process(process.pid), float(process.stdout.readline())
        process.stdin.close()


def test_cpu_of_a_process_is_finer_than_ticks(busy) -> None:
    process, seconds = busy
    assert tiers.cpu_seconds([process]) == pytest.approx(seconds, abs=0.003)
    assert tiers.cpu_seconds([process, process]) == pytest.approx(2 * seconds, abs=0.006)


def test_without_a_process_clock_ticks_are_counted(busy, monkeypatch) -> None:
    def refuses(_: int) -> float:
        raise OSError

    monkeypatch.setattr(time, "clock_gettime", refuses)
    process, seconds = busy
    assert tiers.cpu_seconds([process]) == pytest.approx(seconds, abs=0.025)
    assert round(tiers.cpu_seconds([process]) * 100, 6) % 1 == 0


class Metrics(http.server.BaseHTTPRequestHandler):
    """A gateway that reports another 1.5 CPU seconds at each request."""

    seconds = 0.0

    def do_GET(self) -> None:
        Metrics.seconds += 1.5
        body = f"# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total {Metrics.seconds}\n".encode()
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@pytest.fixture(name="admin")
def admin_() -> Iterator[str]:
    """The admin port of a gateway."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Link:
    """A link without counters, from whose other end this run cannot send."""

    can_be_shaped, gateway = True, SimpleNamespace(command=[])

    def __init__(self) -> None:
        self.shaped = []

    def shape(self, bits: float, latency_ms: float = 0.0) -> None:
        self.shaped.append((bits, latency_ms))

    def counters(self) -> dict[str, int]:
        return {}


def of(**given: object) -> Tiers:
    stack_ = {"link": Link(), "store_cores": {0}, "external_tiers": [], "started": [], "admin": ""} | given
    return Tiers(SimpleNamespace(**stack_), {1})


def test_an_external_gateway_reports_its_cpu_and_an_external_store_does_not(admin: str) -> None:
    trial = of(external_tiers=["store", "gateway"], admin=admin).run_trial(lambda: FIGURES)
    assert trial.cpu_seconds == {"gateway": 1.5, "host": 0.5}
    assert trial.peak_bytes == {"store": None, "gateway": None, "host": None}
    assert trials.table(cell(plain=Arm("plain", "", [trial])))["cpu"].isna().all()


def test_a_gateway_without_metrics_is_not_measured(admin: str) -> None:
    for silent in ("http://127.0.0.1:1", f"{admin}/other"):
        assert of(external_tiers=["store", "gateway"], admin=silent).run_trial(lambda: FIGURES).cpu_seconds == {"host": 0.5}


def test_a_local_helper_does_not_count_as_an_external_store(busy) -> None:
    process, _ = busy
    started = [("tfdata", SimpleNamespace(pid=process.pid)), ("gateway", SimpleNamespace(pid=process.pid))]
    assert set(of(external_tiers=["store"], started=started).run_trial(lambda: FIGURES).cpu_seconds) == {"gateway", "host"}
    assert set(of(started=started).run_trial(lambda: FIGURES).cpu_seconds) == {"store", "gateway", "host"}


def test_missing_figures_of_a_trial_are_none() -> None:
    trial = of().run_trial(lambda: FIGURES | {"value_bytes": None})
    assert (trial.value_bytes, trial.wire_up_bytes, trial.wire_down_bytes) == (None, None, None)


def test_a_table_reader_without_bytes_has_none() -> None:
    answers = iter(['{"cpu": 1, "seconds": 2, "rows": 3}\n', '{"cpu": 1, "seconds": 2, "rows": 3, "bytes": 4}\n'])
    reader = table.TableReader.__new__(table.TableReader)
    pipe = SimpleNamespace(write=lambda _: None, flush=lambda: None, readline=lambda: next(answers))
    reader.process, reader.settings = SimpleNamespace(stdin=pipe, stdout=pipe), ""
    assert [reader.read()["value_bytes"] for _ in range(2)] == [None, 4]


def test_an_unmeasurable_link_is_not_reported_as_measured() -> None:
    link = Link()
    assert of(link=link).shape(100e6, 20.0) is None
    assert of(link=link).shape(OPEN) is None
    assert link.shaped == [(100e6, 20.0), (OPEN, 0.0)]
    cell = lambda bits: kinds.build_cell("c", "g", {"plain": Arm("plain", "")}, [], requested=bits, measured=None)
    shaped = cell(100e6)
    assert (shaped.requested_bits_per_second, shaped.measured_bits_per_second, shaped.bandwidth) == (100e6, None, 100e6)
    assert (cell(OPEN).requested_bits_per_second, cell(OPEN).bandwidth) == (None, None)


def test_latency_is_added_after_the_measurement_and_noted() -> None:
    link = Link()
    link.gateway = SimpleNamespace(command=["enter"])
    measured = of(link=link)
    measured.measured[50e6] = 49e6
    assert measured.shape(50e6, 20.0) == 49e6
    assert link.shaped == [(50e6, 20.0)]
    late = Scenario("late", "", "forward", False, latency_ms=20.0)
    assert kinds.cell_notes(late, SimpleNamespace(tiers=measured))[1:] == ["20 ms of latency each way"]


def test_cores_are_described_for_local_tiers_only() -> None:
    described = lambda **given: arms.describe_cores(of(**given))
    assert described() == "store and gateway on core 0, reader and trainer on core 1"
    assert described(store_cores={1}) == "one core for all"
    assert described(store_cores={1}, external_tiers=["store", "gateway"]) == "store and gateway external, reader and trainer on core 1"
    assert described(external_tiers=["store"]) == "store external, gateway on core 0, reader and trainer on core 1"


def test_arms_next_to_an_external_store_are_left_out() -> None:
    reason = "tfdata is left out: its workers run next to the store, and the store is external"
    assert arms.unavailable_reason("tfdata", ["store"]) == reason
    assert arms.unavailable_reason("boto3", ["store"]) == arms.unavailable_reason("auto", ["store", "gateway"]) == ""


def test_the_python_arm_is_left_out_without_its_native_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(arms, "NATIVE_MODULE", tmp_path / "lib_native.so")
    assert arms.unavailable_reason("auto-python", []) == f"auto-python is left out: {tmp_path}/lib_native.so is not built"
    (tmp_path / "lib_native.so").touch()
    assert arms.unavailable_reason("auto-python", []) == ""


@pytest.mark.parametrize("kind", [table, growth])
def test_tables_and_growth_allow_a_repetition(kind) -> None:
    assert "repeat" in kind.ARMS


def test_growth_measures_the_named_arms(monkeypatch) -> None:
    monkeypatch.setattr(growth, "interleave", lambda *_: None)
    stack_ = {"store": "http://store", "gateway": "http://gateway", "link": Link()}
    run = SimpleNamespace(tiers=of(**stack_), data=SimpleNamespace(tiny=lambda *_: "p/", blobs=lambda *_: "b/"), progress=None)
    grows = lambda **more: Scenario("grows", "", "growth", False, pipeline="decode", sizes=(9,), **more)
    kinds_of = lambda cells: [{name: arm.kind for name, arm in cell.arms.items()} for cell in cells]
    assert kinds_of(growth.cells(grows(arms=("plain", "pushed")), run))[::4] == [{"plain": "plain", "pushed": "pushed"}] * 2
    three = {"plain": "plain", "repeat": "repeat", "pushed": "pushed"}
    assert kinds_of(growth.cells(grows(), run))[::4] == [three] * 2
    assert kinds_of(growth.cells(grows(connections=()), run)) == [three]


def test_a_program_that_does_not_start_is_reported_with_its_output(tmp_path: Path) -> None:
    (tmp_path / "nginx.log").write_text("no port", encoding="ascii")
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    some = SimpleNamespace(started=[("nginx", ended)], folder=tmp_path)
    with pytest.raises(stack.NotStarted, match="nginx did not start:\nno port"):
        stack.Stack.wait(some, "nginx", lambda: False)


def test_a_stack_that_does_not_start_leaves_nothing_running(tmp_path: Path, monkeypatch) -> None:
    processes = []

    def store(self: stack.Stack, _: list) -> None:
        self.start("weed", [sys.executable, "-c", "import time; time.sleep(60)"])
        processes.extend(self.started)

    def gateway(*_: object) -> None:
        raise stack.NotStarted("the gateway did not start")

    monkeypatch.setattr(stack.Stack, "start_store", store)
    monkeypatch.setattr(stack.Stack, "start_gateway", gateway)
    place = SimpleNamespace(address="127.0.0.1", command=[])
    link = SimpleNamespace(store=place, gateway=place, free_ports=lambda count: list(range(count)))
    with pytest.raises(stack.NotStarted):
        stack.Stack(tmp_path, link, [])
    assert [process.poll() is not None for _, process in processes] == [True]
