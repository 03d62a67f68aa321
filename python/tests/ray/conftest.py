"""A Ray on this host, with four workers."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Its usage report would leave this host.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Of Ray and of what it imports.
        item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def cluster(environment: None) -> Iterator[None]:
    """Ray with four CPUs. Its workers have the environment of this process, credentials included."""
    import ray

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=512 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()
