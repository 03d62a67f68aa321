"""States, stats, and progress."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

from pushdown import Stats, progress
from pushdown.errors import StateError
from pushdown.progress import Progress
from pushdown.state import write_state
from readers import reader


def test_a_state_is_json_below_300_bytes() -> None:
    origin: dict[str, Any] = {"seed": 2**64 - 1, "objects": "a" * 64, "pipeline": "b" * 64}
    largest = write_state(2**32 - 1, {"position": 2**32 - 1}, **origin, order=f"shards {2**32 - 1}")
    assert len(json.dumps(largest)) < 300
    assert json.loads(json.dumps(largest)) == largest
    data = reader()
    state = {**data.state_dict(), "epoch": 2**32 - 1, "position": 19}
    data.load_state_dict(json.loads(json.dumps(state)))
    assert data.state_dict() == state


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"version": 2}, "expected version 1, found 2: use the release"),
        ({"position": -1}, "expected position of at least 0, found -1"),
        ({"epoch": "3"}, "expected epoch of at least 0, found 3"),
        ({"objects": None}, None),
    ],
)
def test_an_invalid_state_is_refused_with_the_reason(change: dict[str, Any], text: str | None) -> None:
    data = reader()
    state = data.state_dict()
    if text is None:
        with pytest.raises(StateError, match="`objects`"):
            data.load_state_dict({k: v for k, v in state.items() if k not in change})
        return
    with pytest.raises(StateError, match=text):
        data.load_state_dict({**state, **change})


def test_a_state_that_is_no_dictionary_is_refused() -> None:
    with pytest.raises(StateError, match="expected a dictionary from state_dict, found str"):
        reader().load_state_dict("{}")  # type: ignore[arg-type]


def stats(waiting: float, plan: str | None) -> Stats:
    return Stats.from_json(json.dumps({"waiting_seconds": waiting, "new_count": 1}), 100.0, plan)


@pytest.mark.parametrize(
    ("waiting", "plan", "verdict"),
    [
        (
            3.0,
            "plan: 10 samples/s, limited by the link\n  link 1 Mbit/s",
            "waited 3 % of the time; the link is the bottleneck",
        ),
        (40.0, None, "waited 40 % of the time; reading is the bottleneck"),
        (1.0, "limited by the gateway's CPU", "waited 1 % of the time; the training is the bottleneck"),
        (30.0, "limited by the training", "waited 30 % of the time; reading is the bottleneck"),
        (200.0, None, "waited 100 % of the time; reading is the bottleneck"),
    ],
)
def test_the_verdict_names_the_bottleneck(waiting: float, plan: str | None, verdict: str) -> None:
    assert stats(waiting, plan).verdict() == verdict


def test_stats_are_readable() -> None:
    assert Stats().verdict() == "nothing was read yet"
    text = str(Stats(samples=5000, wire_bytes_down=250_000_000, stored_bytes=10**9, elapsed_seconds=10.0))
    assert text.splitlines()[:3] == [
        "5,000 samples in 10.0 s (500 samples/s), 0 errors, 0 retries",
        "received 250.0 MB for 1.0 GB stored (75 % saved)",
        "from caches: 0 of the value cache, 0 of the gateway's result cache",
    ]


def test_stats_name_both_caches() -> None:
    stats = Stats(samples=5000, cache_hits=1200, gateway_cache_hits=3700)
    assert str(stats).splitlines()[2] == "from caches: 1,200 of the value cache, 3,700 of the gateway's result cache"
    shared = Stats(samples=5000, gateway_cache_hits=10, gateway_shared=20, gateway_prefix_hits=3000)
    assert str(shared).splitlines()[2] == (
        "from caches: 0 of the value cache, 10 of the gateway's result cache, 20 shared with other requests, "
        "3,000 continued from cached values"
    )


def test_stats_count_cropped_samples() -> None:
    assert "cropped" not in str(Stats(samples=5000))
    assert str(Stats(samples=5000, cropped_samples=3550)).splitlines()[2] == "3,550 samples arrived as cropped JPEGs"


def test_stats_name_both_addresses() -> None:
    assert "http" not in str(Stats(endpoint="http://store:9000"))
    stats = Stats(
        wire_bytes_down=5_000_000, gateway_bytes_down=2_000_000, endpoint="http://store:9000", gateway="http://gw:9900"
    )
    assert str(stats).splitlines()[2] == (
        "of that, 2.0 MB from the gateway http://gw:9900, the rest from the store http://store:9000"
    )


def test_stats_name_replicas() -> None:
    replica = {"id": "gw-0", "address": "http://gw:9900 at 10.0.0.1", "state": "serving", "cores": 2.0, "samples": 2000}
    lost = {**replica, "id": "gw-1", "state": "gone", "cores": None, "samples": 5}
    stats = Stats.from_json(json.dumps({"samples": 2005, "replicas": [replica, lost]}))
    assert [(found.id, found.cores) for found in stats.replicas] == [("gw-0", 2.0), ("gw-1", None)]
    assert "samples of replicas: gw-0 2,000 (serving), gw-1 5 (gone)" in str(stats).splitlines()
    one = Stats.from_json(json.dumps({"replicas": [replica]}))
    assert "replicas" not in str(one)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    now = {"seconds": 100.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: now["seconds"])  # type: ignore[attr-defined]
    return now


def test_a_terminal_has_a_line_after_a_second_and_none_at_the_end(clock: dict[str, float]) -> None:
    terminal = Terminal()
    with Progress("listing s3://photos/", "{:,} objects", terminal) as show:
        show(1000)
        assert terminal.getvalue() == ""
        clock["seconds"] += 1
        show(12000)
        assert terminal.getvalue() == "\rlisting s3://photos/: 12,000 objects so far\x1b[K"
        show(13000)
    assert terminal.getvalue().endswith("so far\x1b[K\r\x1b[K")
    assert "13,000" not in terminal.getvalue()


def test_a_file_has_a_log_line_each_10_s(clock: dict[str, float], caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    with caplog.at_level(logging.INFO, "pushdown"), Progress("listing s3://photos/", "{:,} objects", stream) as show:
        for _ in range(5):
            clock["seconds"] += 5
            show(1000)
    assert [record.message for record in caplog.records] == ["listing s3://photos/: 1,000 objects so far"] * 2
    assert stream.getvalue() == ""
