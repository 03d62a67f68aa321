"""Forks: idle readers are closed, live ones are unusable in the child, and readers work there."""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from pushdown import Reader, _shared
from pushdown.errors import ForkedReaderError
from pushdown.objects import Objects

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(check: Callable[[], None]) -> None:
    """Runs `check` in a forked child, and fails if it fails."""
    child = os.fork()
    if child == 0:
        try:
            check()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def reader() -> Reader:
    return Reader("s3://photos/train/", "decode", batch_size=4, seed=7)


def test_an_iterator_that_was_live_at_the_fork_raises_in_the_child(native: Any) -> None:
    data = reader()
    batches = iter(data)
    next(batches)
    inherited = native.live[0]

    def check() -> None:
        with pytest.raises(ForkedReaderError, match="iterate over the reader again"):
            next(batches)
        batches.close()
        # Closing would wait for threads that the child does not have.
        assert not inherited.is_closed

    in_child(check)
    assert len(list(batches)) == 4


def test_the_reader_itself_works_in_the_child() -> None:
    data = reader()
    batches = iter(data)
    first = next(batches).keys

    def check() -> None:
        assert next(iter(data)).keys == first
        assert len(data.take([1])) == 1
        data.close()

    in_child(check)
    batches.close()


def test_idle_readers_are_closed_before_a_fork_and_used_ones_are_not(native: Any) -> None:
    data = reader()
    data.take([0])

    def take_another() -> None:
        data.take([1])
        data.close()

    in_child(take_another)
    assert native.live == []
    data.take([2])
    lookup = data._kind._lookup  # type: ignore[attr-defined]
    assert lookup is not None
    assert lookup._handle is not None
    with lookup._handle.lock:
        in_child(lambda: None)
        assert len(native.live) == 1
    data.close()


def test_a_child_leaves_the_files_of_its_parent(native: Any) -> None:
    objects: Objects = native.Objects.from_keys("photos", ["a", "b"])
    pickled = pickle.dumps(objects)
    folder = _shared._folder
    assert folder is not None
    in_child(lambda: _shared._remove(folder, os.getppid()))
    assert pickle.loads(pickled).keys() == ["a", "b"]
    assert threading.active_count() == 1
