"""The `tc` commands of a link, without running them."""

import subprocess

import links
import pytest

END = links.Links(links.Endpoint("s"), links.Endpoint("g"), ends=[([], "dev0")])
ADD = ("tc", "qdisc", "add", "dev", "dev0")


@pytest.fixture(name="commands")
def commands_(monkeypatch) -> list[tuple[str, ...]]:
    """The commands that set a link."""
    found = []
    monkeypatch.setattr(links, "run", lambda *command: found.append(command))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    return found


def test_latency_follows_the_rate_or_is_alone_on_an_open_link(commands: list) -> None:
    END.shape(100e6, 20.0)
    rate, late = commands
    assert rate[:8] == (*ADD, "root", "handle", "1:") and rate[8] == "tbf"
    assert late == (*ADD, "parent", "1:", "handle", "2:", "netem", "delay", "20.0ms")
    commands.clear()
    END.shape(float("inf"), 20.0)
    assert commands == [(*ADD, "root", "handle", "2:", "netem", "delay", "20.0ms")]
    commands.clear()
    END.shape(float("inf"))
    assert commands == []


def test_a_trial_detects_a_kernel_without_netem(commands: list, monkeypatch) -> None:
    assert END.can_delay()

    def refuses(*command: str) -> None:
        if "netem" in command:
            raise subprocess.CalledProcessError(2, command)

    monkeypatch.setattr(links, "run", refuses)
    assert not END.can_delay()
