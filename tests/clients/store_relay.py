"""A server on a free port, and the relay between a gateway and its store."""

import contextlib
import socket
import socketserver
import threading
import traceback

TIMEOUT_SECONDS = 20


class Server(socketserver.ThreadingTCPServer):
    """A server on a free port. Its `handle` gets each connection, in a thread of its own."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handle):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                # A client may close a connection at any time.
                with contextlib.suppress(ConnectionError):
                    handle(self.request)

        super().__init__(("127.0.0.1", 0), Handler)
        self.errors: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        self.errors.append(traceback.format_exc())

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class StoreRelay:
    """Counts what a gateway sends to its store."""

    def __init__(self, store: str):
        self._store = store
        self._lock = threading.Lock()
        self._connections = self._bytes = 0
        self._server = Server(self._relay)
        self.address = self._server.address
        self.stop = self._server.stop

    def seen(self) -> tuple[int, int]:
        """Connections, and bytes of requests."""
        with self._lock:
            return self._connections, self._bytes

    def _count(self, connections: int, number_of_bytes: int) -> None:
        with self._lock:
            self._connections += connections
            self._bytes += number_of_bytes

    def _relay(self, gateway: socket.socket) -> None:
        self._count(1, 0)
        with connect(self._store) as store:
            store.settimeout(None)
            answers = threading.Thread(target=self._copy, args=(store, gateway, False), daemon=True)
            answers.start()
            self._copy(gateway, store, True)
            answers.join()

    def _copy(self, source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._count(0, len(data) if is_request else 0)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def connect(address: str) -> socket.socket:
    host, port = address.split(":")
    connection = socket.create_connection((host, int(port)), TIMEOUT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
