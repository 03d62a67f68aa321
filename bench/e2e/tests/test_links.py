"""What `tc` is told of a link, without any."""

import subprocess

import links
import pytest

END = links.Links(links.Place("s"), links.Place("g"), ends=[([], "dev0")])
ADD = ("tc", "qdisc", "add", "dev", "dev0")


@pytest.fixture(name="told")
def told_(monkeypatch) -> list[tuple[str, ...]]:
    """The commands that set a link."""
    found = []
    monkeypatch.setattr(links, "run", lambda *command: found.append(command))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    return found


def test_latency_stands_behind_the_rate_or_alone_on_an_open_link(told: list) -> None:
    END.shape(100e6, 20.0)
    rate, late = told
    assert rate[:8] == (*ADD, "root", "handle", "1:") and rate[8] == "tbf"
    assert late == (*ADD, "parent", "1:", "handle", "2:", "netem", "delay", "20.0ms")
    told.clear()
    END.shape(float("inf"), 20.0)
    assert told == [(*ADD, "root", "handle", "2:", "netem", "delay", "20.0ms")]
    told.clear()
    END.shape(float("inf"))
    assert told == []


def test_a_kernel_without_netem_is_known_by_a_trial(told: list, monkeypatch) -> None:
    assert END.can_delay()

    def refuses(*command: str) -> None:
        if "netem" in command:
            raise subprocess.CalledProcessError(2, command)

    monkeypatch.setattr(links, "run", refuses)
    assert not END.can_delay()
