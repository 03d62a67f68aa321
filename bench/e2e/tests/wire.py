"""How much comes over a link, in either direction: by a program at the other end, to be started as `wire.py WHAT ADDRESS BYTES`.

It sends or receives, on a connection; so does this side. Whoever receives tells, by what has come in: counters of a device may
stand before its queue.
"""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

# Frames that are full: with the heads of Ethernet, IP and TCP with timestamps, and without.
FRAME, PAYLOAD = 1514, 1448
# What passes at once at first, and does not count.
AT_ONCE = 64_000


def down(command: list[str], address: str, size: int) -> float:
    """Bits per second, in full frames, from a place that commands reach by what stands before them."""
    with other_end(command, "send", address, size) as (_, connection):
        return receive(connection)


def up(command: list[str], address: str, size: int) -> float:
    """The same to that place."""
    with other_end(command, "receive", address, size) as (process, connection):
        send(connection, size)
        return float(process.stdout.readline())


@contextlib.contextmanager
def other_end(command: list[str], what: str, address: str, size: int) -> Iterator[tuple[subprocess.Popen, socket.socket]]:
    """The program there, and a connection to it."""
    process = subprocess.Popen([*command, sys.executable, __file__, what, address, str(size)], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        with socket.create_connection((address, port), timeout=60) as connection:
            yield process, connection
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def send(connection: socket.socket, size: int) -> None:
    """All of it, and no more."""
    connection.sendall(bytes(size))
    connection.shutdown(socket.SHUT_WR)


def receive(connection: socket.socket) -> float:
    """Reads all of it: how fast it came."""
    buffer, received = bytearray(1 << 20), 0
    while received < AT_ONCE:
        received += connection.recv_into(buffer)
    before, started = received, time.perf_counter()
    while more := connection.recv_into(buffer):
        received += more
    return (received - before) * 8 * FRAME / PAYLOAD / (time.perf_counter() - started)


def main(what: str, address: str, size: str) -> None:
    """The other end."""
    with socket.create_server((address, 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        with connection:
            if what == "send":
                send(connection, int(size))
                connection.recv(1)
            else:
                print(receive(connection), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
