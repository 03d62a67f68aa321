"""One engine for all tests, with the images of docker/Dockerfile. Without root or an engine, every test is skipped with the reason."""

import signal
import sys
from collections.abc import Iterator

import pytest

import engine as engines
from engine import ROOT, Engine

# One small model and no loaders of third parties: 1 GB instead of 11.
ARGUMENTS = {"MODELS": "efficientnet_lite0", "PEERS": "none"}
# As docker/README.md advises for two CPUs.
CPUS = {"STORE_CPUS": "0", "GATEWAY_CPUS": "0", "TRAINER_CPUS": "1"}
TARGETS = {"gateway": "pushdown-gateway:local", "data": "pushdown-data:local", "bench": "pushdown-bench:local"}


def pytest_report_header() -> list[str]:
    reason = engines.reason_unavailable()
    return [f"SKIPPED: all tests in containers, because {reason}"] if reason else []


@pytest.fixture(scope="session", name="engine")
def engine_() -> Iterator[Engine]:
    """An engine with the base images."""
    if reason := engines.reason_unavailable():
        pytest.skip(reason)
    # So that the engine ends also if the tests are terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for engine in engines.running():
        engine.make_stand_ins()
        yield engine


@pytest.fixture(scope="session")
def images(engine: Engine) -> dict[str, str]:
    """The images of all targets of docker/Dockerfile, by target. Unchanged ones are not built again."""
    for target, name in TARGETS.items():
        engine.build_target(name, target, **ARGUMENTS)
    return TARGETS
