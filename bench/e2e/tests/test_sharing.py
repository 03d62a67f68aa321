"""Jobs on one data set: what a trial runs, how the first epoch is computed, and what the cost of jobs is compared with."""

import dataclasses
import http.server
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

from tqdm import tqdm  # noqa: E402

from .. import figures, report, sharing, stats  # noqa: E402
from ..kinds import RunContext  # noqa: E402
from ..kinds import sharing as kind  # noqa: E402
from ..results import Arm, Cell, Trial  # noqa: E402
from ..scenario import Scenario, load_all  # noqa: E402
from .build import results, trial  # noqa: E402

FIGURES = {"samples": 100, "errors": 0, "value_bytes": 5000, "cpu_seconds": 0.5, "epoch_seconds": [2.0, 1.0]}


def shared(count: float = 4, **required: float) -> Cell:
    """A cell of three rounds: one job needs 1 s of CPU and 1,000 bytes; four need 1.1 s and 1,010 bytes with a cache."""
    costs = {"memory": (1.1, 1010), "off": (4.0, 4000), "one": (1.0, 1000), "memory:later": (0.1, 10)}
    built = {}
    for name, (cpu, sent) in costs.items():
        trials = [trial(1.0, cpu=cpu, samples=100 if name == "one" else 400) for _ in range(3)]
        built[name] = Arm("pushed", "", [with_counters(each, sent) for each in trials])
    cell = Cell(f"{count:g} jobs", "sharing", count, "jobs", None, None, None, "one", [], None, built)
    return dataclasses.replace(cell, required=required)


def with_counters(one: Trial, sent: float, **values: float) -> Trial:
    return dataclasses.replace(one, store_bytes=sent, cache_values=dict.fromkeys(stats.ORIGINS, 0.0) | values)


def test_the_first_epoch_is_what_two_cost_less_a_later_one() -> None:
    both = with_counters(trial(3.0, cpu=5.0, samples=800), 110_000, computed=100, memory=600, shared=100)
    last = with_counters(trial(1.0, cpu=1.0, samples=400), 10_000, memory=400)
    first = kind.first_epoch(both, last)
    assert (first.samples, first.epoch_seconds, first.store_bytes) == (400, [3.0], 100_000)
    assert first.cpu_seconds == pytest.approx({"store": 1.0, "gateway": 1.0, "host": 2.0})
    assert first.cache_values == {"computed": 100, "memory": 200, "disk": 0, "shared": 100, "prefix": 0}
    assert first.wire_down_bytes == 400 * 1000
    assert (first.stored_bytes, first.batch_wait_p50_seconds, first.stall_seconds) == (None, None, None)


def test_an_external_store_has_no_cpu_and_noise_is_never_negative() -> None:
    both, last = (with_counters(trial(1.0, cpu=cpu), 0) for cpu in (1.0, 1.1))
    del both.cpu_seconds["store"], last.cpu_seconds["store"]
    assert kind.first_epoch(both, last).cpu_seconds == {"gateway": 0.0, "host": 0.0}


def test_all_jobs_together_are_compared_with_one_job_of_the_same_round() -> None:
    verdicts = {each.rule: each for each in stats.verdicts(shared(**{"store-bytes": 1 / 1.02, "jobs-cpu": 1 / 1.15}))}
    assert {rule: each.outcome for rule, each in verdicts.items()} == {"store-bytes": "pass", "jobs-cpu": "informational"}
    assert verdicts["jobs-cpu"].median == pytest.approx(1 / 1.1)
    assert verdicts["store-bytes"].median == pytest.approx(1 / 1.01)
    greedy = shared(**{"store-bytes": 1 / 1.02})
    for each in greedy.arms["memory"].trials:
        each.store_bytes = 1030
    assert [each.outcome for each in stats.verdicts(greedy)] == ["fail"]


def test_a_later_epoch_is_compared_with_the_first_one_by_cpu_of_store_and_gateway() -> None:
    (verdict,) = stats.verdicts(shared(count=1, **{"later-cpu": 10}))
    assert (verdict.arm, verdict.against, verdict.outcome) == ("memory:later", "memory", "pass")
    assert verdict.median == pytest.approx(11)
    unknown = shared(count=1, **{"later-cpu": 10})
    for each in unknown.arms["memory"].trials:
        del each.cpu_seconds["store"]
    assert [each.outcome for each in stats.verdicts(unknown)] == ["void"]


def test_requirements_depend_on_the_number_of_jobs() -> None:
    features, pixels = load_all()["sharing"], load_all()["sharing-pixels"]
    assert kind.requirements(features, 1) == pytest.approx({"store-bytes": 1 / 1.02, "later-cpu": 10})
    assert kind.requirements(features, 4) == pytest.approx({"store-bytes": 1 / 1.02, "jobs-cpu": 1 / 1.15})
    assert kind.requirements(pixels, 4) == pytest.approx({"store-bytes": 1 / 1.02, "jobs-cpu": 1 / 1.65})
    assert list(kind.requirements(pixels, 10)) == list(kind.requirements(pixels, 1)) == ["store-bytes"]


def test_the_table_has_the_rate_per_job_and_the_costs() -> None:
    cell = shared()
    rows = {line.split(" | ")[0].strip("| `"): line.strip("| ").split(" | ")[1:] for line in sharing.section(cell)[3:]}
    assert list(rows) == ["memory", "off", "one", "memory:later"]
    assert rows["memory"][:5] == ["100", "1.01 KB", "1.010 (1.010 to 1.010)", "1.10", "1.100 (1.100 to 1.100)"]
    assert rows["one"][0] == "100" and rows["memory"][5:] == ["0"] * 5
    assert sharing.section(Cell("", "", None, "", None, None, None, "", [], None, {})) == []
    text = report.markdown(results(shared(**{"jobs-cpu": 1 / 1.15}), kind="sharing"))
    assert "| `memory`: CPU seconds of one job without a cache to those of all jobs (`one`) |" in text


def test_lines_have_the_cost_over_the_number_of_jobs(tmp_path: Path) -> None:
    run = results(shared(1), shared(4), kind="sharing")
    costs = figures.costs_of_jobs(run.scenarios[0])
    assert list(costs) == ["CPU seconds of store, gateway and host", "bytes from the store"]
    for lines in costs.values():
        assert [(line.group, [point.x for point in line.points]) for line in lines] == [("off", [1, 4]), ("memory", [1, 4])]
    assert costs["bytes from the store"][1].points[1].ratio.median == pytest.approx(1.01)
    plots = pytest.importorskip("e2e.plots", reason="matplotlib is in .venv-e2e", exc_type=ImportError)
    assert "jobs-s.svg" in [path.name for path in plots.draw(run, tmp_path)]


class Counters(http.server.BaseHTTPRequestHandler):
    """An admin port whose counters grow with each page."""

    pages = 0

    def do_GET(self) -> None:
        type(self).pages += 1
        page = f'{kind.STORE_BYTES} {1000 * self.pages}\npushdown_cache_values_total{{origin="memory"}} {self.pages}\n'
        self.send_response(200)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        pass


class FakeTiers:
    """Tiers that run nothing, and record what they are asked for."""

    def __init__(self, admin: str) -> None:
        self.gateways, self.commands, self.host_cores = [], [], {1}
        self.stack = SimpleNamespace(
            store="http://store", gateway="http://gateway", admin=admin, store_cores={0}, external_tiers=[],
            restart_gateway=lambda *flags: self.gateways.append(flags), model_folder=lambda _: "models",
        )  # fmt: skip

    def shape(self, *_: float) -> None:
        return None

    def run(self, command: list) -> dict:
        self.commands.append([str(part) for part in command])
        epochs = int(self.argument(self.commands[-1], "--epochs"))
        return FIGURES | {"samples": 100 * epochs}

    def run_trial(self, jobs) -> Trial:
        found = jobs()
        return trial(*found["epoch_seconds"], samples=found["samples"])

    @staticmethod
    def argument(command: list[str], flag: str) -> str:
        return command[command.index(flag) + 1]


def test_each_trial_has_an_empty_gateway_and_readers_with_orders_of_their_own(tmp_path: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counters) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tiers = FakeTiers(f"http://127.0.0.1:{server.server_port}")
        scenario = Scenario(
            "s", "", "sharing", False, pipeline="decode", arms=("disk", "off", "tfdata"), sizes=(2,), rounds=1, samples=100,
            gateway_flags=("--threads=1",),
        )  # fmt: skip
        prefixes = SimpleNamespace(photos=lambda _, count: f"photos-{count}/")
        with tqdm(disable=True) as progress:
            (cell,) = kind.cells(scenario, RunContext(tiers, prefixes, tmp_path, progress))
        server.shutdown()
    folder = f"--cache-dir={tmp_path / 'result-cache'}"
    plain = ("--threads=1",)
    assert tiers.gateways == [(*plain, "--cache-disk=1GiB", folder), plain, plain, plain], "one per trial, and at the end"
    disk = tiers.commands[:5]
    flags = [tuple(tiers.argument(line, flag) for flag in ("--seed", "--epoch", "--epochs")) for line in disk]
    # Other photos warm the gateway up; then two readers read two epochs, and another one.
    assert flags[0] == ("1", "0", "1") and disk[0][2].endswith("photos-25/")
    assert sorted(flags[1:3]) == [("1", "0", "2"), ("2", "0", "2")] and disk[1][2].endswith("photos-100/")
    assert sorted(flags[3:]) == [("1", "2", "1"), ("2", "2", "1")]
    assert list(cell.arms) == ["disk", "off", "one", "disk:later", "off:later", "one:later"]
    assert [cell.arms[name].trials[0].samples for name in cell.arms] == [200, 200, 100, 200, 200, 100]
    assert cell.baseline == "one" and cell.arms["disk:later"].trials[0].cache_values["memory"] > 0
    assert "tfdata is measured with 4 jobs only" in cell.notes


def test_both_pipelines_are_measured_with_all_settings_outside_of_the_default_matrix() -> None:
    scenarios = [each for each in load_all().values() if each.kind == "sharing"]
    assert {each.name for each in scenarios} == {"sharing", "sharing-pixels"}
    for each in scenarios:
        assert not each.default and each.sizes == (1, 2, 4, 10) and {"memory", "disk", "off"} <= set(each.arms) <= set(kind.ARMS)
