"""Measures the bandwidth of a link in either direction, with a program at the other end: `wire.py WHAT ADDRESS BYTES`.

One side sends over a connection, the other receives. The receiver measures, since counters of a device may come before its queue.
"""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

# Bytes of a full frame with the headers of Ethernet, IP and TCP with timestamps, and of its payload.
FRAME, PAYLOAD = 1514, 1448
# The initial burst, which does not count.
BURST_BYTES = 64_000


def down(command: list[str], address: str, size: int) -> float:
    """Bits per second in full frames, from the endpoint that the command prefix reaches."""
    with other_end(command, "send", address, size) as (_, connection):
        return receive(connection)


def up(command: list[str], address: str, size: int) -> float:
    """Bits per second in full frames, to that endpoint."""
    with other_end(command, "receive", address, size) as (process, connection):
        send(connection, size)
        return float(process.stdout.readline())


@contextlib.contextmanager
def other_end(command: list[str], what: str, address: str, size: int) -> Iterator[tuple[subprocess.Popen, socket.socket]]:
    """The program at the other end, and a connection to it."""
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
    """Sends `size` bytes and ends the stream."""
    connection.sendall(bytes(size))
    connection.shutdown(socket.SHUT_WR)


def receive(connection: socket.socket) -> float:
    """Reads to the end. Returns the bits per second."""
    buffer, received = bytearray(1 << 20), 0
    while received < BURST_BYTES:
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
