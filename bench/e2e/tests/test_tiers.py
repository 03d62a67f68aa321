"""What a turn takes of each tier: by the kernel's clocks of what runs here, and by its own metrics of a gateway elsewhere."""

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

from .. import arms, kinds, stats, tiers  # noqa: E402
from ..kinds import growth, table  # noqa: E402
from ..results import Arm  # noqa: E402
from ..scenario import OPEN, Scenario  # noqa: E402
from ..tiers import Tiers  # noqa: E402

FIGURES = {"samples": 10, "errors": 0, "epoch_seconds": [1.0], "value_bytes": 100, "cpu_seconds": 0.5}
# Takes a few milliseconds, tells how many by its own clock, and stays.
BUSY = """
import sys, time
while time.process_time() < 0.033:
    pass
print(time.process_time(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(name="busy")
def busy_() -> Iterator[tuple[psutil.Process, float]]:
    """A process that has been busy, and for how long."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", BUSY], **pipes) as process:
        yield psutil.Process(process.pid), float(process.stdout.readline())
        process.stdin.close()


def test_cpu_of_a_process_is_counted_finer_than_in_ticks(busy) -> None:
    process, told = busy
    assert tiers.cpu_seconds([process]) == pytest.approx(told, abs=0.003)
    assert tiers.cpu_seconds([process, process]) == pytest.approx(2 * told, abs=0.006)


def test_where_the_kernel_has_no_clock_of_a_process_its_ticks_are_counted(busy, monkeypatch) -> None:
    def refuses(_: int) -> float:
        raise OSError

    monkeypatch.setattr(time, "clock_gettime", refuses)
    process, told = busy
    assert tiers.cpu_seconds([process]) == pytest.approx(told, abs=0.025)
    assert round(tiers.cpu_seconds([process]) * 100, 6) % 1 == 0


class Metrics(http.server.BaseHTTPRequestHandler):
    """A gateway that takes a second and a half each time somebody looks."""

    seconds = 0.0

    def do_GET(self) -> None:
        Metrics.seconds += 1.5
        body = f"# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total {Metrics.seconds}\n".encode()
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(name="admin")
def admin_() -> Iterator[str]:
    """The admin port of a gateway."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Link:
    """A link that counts nothing, of whose ends none is this run's to send from."""

    can_be_shaped, gateway = True, SimpleNamespace(command=[])

    def __init__(self) -> None:
        self.shaped = []

    def shape(self, bits: float, latency_ms: float = 0.0) -> None:
        self.shaped.append((bits, latency_ms))

    def counters(self) -> dict[str, int]:
        return {}


def of(**given: object) -> Tiers:
    return Tiers(SimpleNamespace(**({"link": Link(), "there": {0}, "elsewhere": [], "started": [], "admin": ""} | given)), {1})


def test_a_gateway_elsewhere_is_asked_for_its_cpu_and_a_store_elsewhere_has_none(admin: str) -> None:
    turn = of(elsewhere=["store", "gateway"], admin=admin).turn(lambda: FIGURES)
    assert turn.cpu == {"gateway": 1.5, "host": 0.5}
    assert turn.peak_bytes == {"store": None, "gateway": None, "host": None}
    assert stats.cpu(turn) == 0


def test_a_gateway_that_tells_nothing_is_not_measured(admin: str) -> None:
    for nobody in ("http://127.0.0.1:1", f"{admin}/elsewhere"):
        assert of(elsewhere=["store", "gateway"], admin=nobody).turn(lambda: FIGURES).cpu == {"host": 0.5}


def test_a_helper_here_does_not_stand_for_a_store_elsewhere(busy) -> None:
    process, _ = busy
    started = [("tfdata", SimpleNamespace(pid=process.pid)), ("gateway", SimpleNamespace(pid=process.pid))]
    assert set(of(elsewhere=["store"], started=started).turn(lambda: FIGURES).cpu) == {"gateway", "host"}
    assert set(of(started=started).turn(lambda: FIGURES).cpu) == {"store", "gateway", "host"}


def test_what_a_turn_cannot_tell_is_none() -> None:
    turn = of().turn(lambda: FIGURES | {"value_bytes": None})
    assert (turn.value_bytes, turn.wire_up, turn.wire_down) == (None, None, None)


def test_a_reader_of_tables_that_tells_no_bytes_has_none() -> None:
    answers = iter(['{"cpu": 1, "seconds": 2, "rows": 3}\n', '{"cpu": 1, "seconds": 2, "rows": 3, "bytes": 4}\n'])
    reader = table.Reader.__new__(table.Reader)
    pipe = SimpleNamespace(write=lambda _: None, flush=lambda: None, readline=lambda: next(answers))
    reader.process, reader.settings = SimpleNamespace(stdin=pipe, stdout=pipe), ""
    assert [reader.read()["value_bytes"] for _ in range(2)] == [None, 4]


def test_a_link_that_cannot_be_measured_is_not_called_measured() -> None:
    link = Link()
    assert of(link=link).shape(100e6, 20.0) is None
    assert of(link=link).shape(OPEN) is None
    assert link.shaped == [(100e6, 20.0), (OPEN, 0.0)]
    cell = lambda bits: kinds.cell_of("c", "g", {"plain": Arm("plain", "")}, [], asked=bits, measured=None)
    assert (cell(100e6).asked_link_bits, cell(100e6).link_bits, cell(100e6).width) == (100e6, None, 100e6)
    assert (cell(OPEN).asked_link_bits, cell(OPEN).width) == (None, None)


def test_latency_comes_behind_the_measurement_and_is_told() -> None:
    link = Link()
    link.gateway = SimpleNamespace(command=["enter"])
    measured = of(link=link)
    measured.measured[50e6] = 49e6
    assert measured.shape(50e6, 20.0) == 49e6
    assert link.shaped == [(50e6, 20.0)]
    late = Scenario("late", "", "forward", False, latency_ms=20.0)
    assert kinds.circumstances(late, SimpleNamespace(tiers=measured))[1:] == ["20 ms of latency each way"]


def test_whose_the_cores_are_is_said_of_what_runs_here_only() -> None:
    said = lambda **given: arms.cores(of(**given))
    assert said() == "store and gateway on core 0, reader and trainer on core 1"
    assert said(there={1}) == "one core for all"
    assert said(there={1}, elsewhere=["store", "gateway"]) == "store and gateway elsewhere, reader and trainer on core 1"
    assert said(elsewhere=["store"]) == "store elsewhere, gateway on core 0, reader and trainer on core 1"


def test_what_belongs_beside_a_store_elsewhere_is_left_out() -> None:
    assert arms.missing("tfdata", ["store"]) == "tfdata is left out: its workers run beside the store, which is elsewhere"
    assert arms.missing("boto3", ["store"]) == arms.missing("auto", ["store", "gateway"]) == ""


@pytest.mark.parametrize("kind", [table, growth])
def test_the_baseline_may_be_measured_once_more(kind) -> None:
    assert "again" in kind.ARMS


def test_growth_has_the_arms_that_are_named(monkeypatch) -> None:
    monkeypatch.setattr(growth, "in_turns", lambda *_: None)
    stack_ = {"store": "http://store", "gateway": "http://gateway", "link": Link()}
    run = SimpleNamespace(tiers=of(**stack_), data=SimpleNamespace(tiny=lambda *_: "p/", blobs=lambda *_: "b/"), progress=None)
    grows = lambda **more: Scenario("grows", "", "growth", False, pipeline="decode", sizes=(9,), **more)
    kinds_of = lambda cells: [{name: arm.kind for name, arm in cell.arms.items()} for cell in cells]
    assert kinds_of(growth.cells(grows(arms=("plain", "pushed")), run))[::4] == [{"plain": "plain", "pushed": "pushed"}] * 2
    three = {"plain": "plain", "again": "again", "pushed": "pushed"}
    assert kinds_of(growth.cells(grows(), run))[::4] == [three] * 2
    assert kinds_of(growth.cells(grows(connections=()), run)) == [three]


def test_a_program_that_does_not_start_is_told_with_what_it_said(tmp_path: Path) -> None:
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
