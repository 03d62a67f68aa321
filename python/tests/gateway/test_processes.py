"""Forks, signals and threads: nothing hangs, nothing stays."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

import pushdown
from samples import PIPELINE


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_threads_live_while_an_iterator_does(options: dict[str, Any], source: str) -> None:
    before = threads()
    reader = pushdown.Reader(source, PIPELINE, **options)
    assert threads() == before, "constructing lists, and joins its threads"
    batches = iter(reader)
    next(batches)
    assert threads() > before
    for _ in batches:
        pass
    assert threads() == before, "the last batch ends them"
    batches = iter(reader)
    next(batches)
    reader.close()
    assert threads() == before
    batches = iter(reader)
    next(batches)
    del batches, reader
    gc.collect()
    deadline = time.monotonic() + 5
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    # Those of an earlier test can have ended meanwhile.
    assert threads() <= before, "an iterator that is garbage ends them"


def run(program: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments], capture_output=True, text=True, timeout=120, **options
    )


def test_an_iterator_that_was_live_at_a_fork_raises_in_the_child(endpoint: str, source: str) -> None:
    done = run(
        """
        import os, sys, pushdown
        reader = pushdown.Reader(sys.argv[2], "decode | resize(32, 32)", store=pushdown.Store(endpoint=sys.argv[1]), batch_size=4)
        batches = iter(reader)
        next(batches)
        child = os.fork()
        if child == 0:
            try:
                next(batches)
            except pushdown.ForkedReaderError as error:
                # The reader itself works: another iterator has threads of its own.
                count = sum(len(batch.keys) for batch in reader)
                os._exit(0 if count == len(reader.objects) else 3)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0, "the child"
        print(1 + sum(1 for _ in batches))
        """,
        endpoint,
        source,
    )
    assert done.stderr == ""
    assert int(done.stdout) > 1


def test_forks_while_reading(endpoint: str, source: str) -> None:
    fork_while_reading(24, endpoint, source)


@pytest.mark.full
def test_a_hundred_forks_while_reading(endpoint: str, source: str) -> None:
    fork_while_reading(100, endpoint, source)


def fork_while_reading(count: int, endpoint: str, source: str) -> None:
    """Children read, are killed, or exit. No child hangs, and the parent goes on and leaves no thread, process or shared memory."""
    before, memory = set(psutil.Process().children(recursive=True)), shared_memory()
    done = run(
        """
        import os, signal, sys, pushdown
        reader = pushdown.Reader(sys.argv[2], "decode | resize(32, 32)", store=pushdown.Store(endpoint=sys.argv[1]), batch_size=4)
        batches = iter(reader)
        next(batches)
        for number in range(int(sys.argv[3])):
            if next(batches, None) is None:
                batches = iter(reader)
            child = os.fork()
            if child == 0:
                if number % 3 == 0:
                    next(iter(reader))
                    os.kill(os.getpid(), signal.SIGKILL)
                if number % 3 == 1:
                    assert sum(len(batch.keys) for batch in reader) == len(reader.objects)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert status == (signal.SIGKILL if number % 3 == 0 else 0), (number, status)
        reader.close()
        print(len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))
        """,
        endpoint,
        source,
        str(count),
    )
    assert done.stderr == ""
    tasks, files = map(int, done.stdout.split())
    assert tasks == 1 and files < 16
    assert set(psutil.Process().children(recursive=True)) <= before
    assert shared_memory() <= memory


def shared_memory() -> set[str]:
    """Names of shared memory, but for the semaphores of `multiprocessing`, which tests beside this one make."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.mp-")}


@pytest.fixture
def silent_socket() -> Iterator[socket.socket]:
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        server.settimeout(60)
        yield server


@pytest.fixture
def silent_server(silent_socket: socket.socket) -> str:
    """Address of the same."""
    return f"http://127.0.0.1:{silent_socket.getsockname()[1]}"


def interrupted(
    silent_socket: socket.socket, program: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program that gets Ctrl-C while it waits for the silent server."""
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            with silent_socket.accept()[0]:
                child.send_signal(signal.SIGINT)
                output, errors = child.communicate(timeout=60)
        finally:
            child.kill()
    return subprocess.CompletedProcess(command, child.returncode, output, errors)


@pytest.mark.parametrize("what", ["list", "read", "warm"])
def test_ctrl_c_ends_a_wait(silent_socket: socket.socket, silent_server: str, what: str) -> None:
    program = """
        import sys, pushdown
        source = "s3://b/" if sys.argv[2] == "list" else ["s3://b/a.jpg"]
        # Only the signal ends the wait.
        timeouts = pushdown.Timeouts(first_byte_seconds=3600.0)
        store = pushdown.Store(endpoint=sys.argv[1], timeouts=timeouts)
        try:
            if sys.argv[2] == "warm":
                pushdown.warm(source, "decode", store=store)
            list(pushdown.Reader(source, "decode", store=store, mode="pushdown"))
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = interrupted(silent_socket, program, silent_server, what)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_ctrl_c_ends_many_reads_at_once(silent_socket: socket.socket, silent_server: str) -> None:
    program = """
        import sys, pushdown
        urls = [f"s3://b/{n}" for n in range(8)]
        timeouts = pushdown.Timeouts(first_byte_seconds=3600.0)
        try:
            pushdown.get_many(urls, store=pushdown.Store(endpoint=sys.argv[1], timeouts=timeouts))
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = interrupted(silent_socket, program, silent_server)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_an_iterator_with_functions_ends_when_it_is_left(options: dict[str, Any], source: str) -> None:
    before = threads()
    pipeline = pushdown.Pipeline("decode | resize(16, 16)").then(lambda value: value)
    gc.disable()
    try:
        for _ in pushdown.Reader(source, pipeline, **options):
            break
        assert threads() == before, "without the garbage collector"
    finally:
        gc.enable()


def test_a_close_in_another_thread_ends_a_wait(silent_server: str) -> None:
    reader = pushdown.Reader(["s3://b/a.jpg"], "decode", store=pushdown.Store(endpoint=silent_server), mode="pushdown")
    batches = iter(reader)
    threading.Timer(0.3, reader.close).start()
    with pytest.raises(pushdown.ClosedError):
        next(batches)


@pytest.mark.parametrize("epochs", [12, pytest.param(50, marks=pytest.mark.full)])
def test_memory_stays_flat(options: dict[str, Any], source: str, epochs: int) -> None:
    process = psutil.Process()
    sizes = []
    with pushdown.Reader(source, "decode | resize(64, 64) | to_float", **options) as reader:
        for _ in range(epochs):
            for batch in reader:
                assert batch.x is not None
            sizes.append(process.memory_info().rss)
    assert sizes[-1] - sizes[4] <= 10 << 20


def test_the_command_line_runs(endpoint: str, source: str) -> None:
    done = run("import sys; from pushdown.cli import main; sys.argv = ['pushdown', '--version']; main()")
    assert done.stdout == f"pushdown {pushdown.__version__}\n"
    program = "import sys; from pushdown.cli import main; sys.argv = ['pushdown', *sys.argv[1:]]; main()"
    done = run(program, "read", source, "-p", "decode | resize(32, 32)", "--endpoint-url", endpoint, "--json")
    assert done.returncode == 0, done.stderr
    assert '"samples"' in done.stdout
    assert run(program, "read", "nonsense").returncode == 2


def test_ctrl_c_ends_the_command(silent_socket: socket.socket, silent_server: str) -> None:
    program = "import sys; from pushdown.cli import main; sys.argv[0] = 'pushdown'; main()"
    arguments = ["read", "s3://b/", "-p", "decode", "--endpoint-url", silent_server]
    assert interrupted(silent_socket, program, *arguments).returncode == -signal.SIGINT
