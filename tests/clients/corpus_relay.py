"""A relay in front of a gateway in re-sign mode.

It sends changed copies of each request before the request itself. All must be refused. The relay between gateway and store must
see nothing meanwhile.
"""

import dataclasses
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

from head_changes import CHANGES
from signed_heads import Head
from store_relay import Server, StoreRelay, connect

BATCH_PATH = "/_pushdown/v1/batch"
MAX_BODY_BYTES = 64 << 20
# Changed requests in flight at once.
CONCURRENCY = 8


@dataclasses.dataclass(frozen=True)
class Request:
    """A request as its client sent it. The body has the framing of the transfer."""

    head_bytes: bytes
    body: bytes

    @property
    def head(self) -> Head:
        return Head.parse(self.head_bytes)

    def signed_heads(self) -> list[Head]:
        """The heads that a signature covers: that of the request, or one for each sample of a batch."""
        if self.head.path != BATCH_PATH:
            return [self.head]
        batch = json.loads(self.body)
        query = f"{batch['presign']}&X-Amz-Signature="
        host = ("host", self.head.header("host"))
        return [Head("GET", f"{sample['path']}?{query}{sample['signature']}", (host,)) for sample in batch["samples"]]

    def variants(self) -> Iterator[tuple[str, bytes]]:
        """Requests with one change, by the name of the change. Nothing of a body is sent: the head alone must be refused."""
        for name, (change, _) in CHANGES.items():
            if self.head.path == BATCH_PATH:
                # A batch is refused as a whole if none of its samples is signed.
                for heads in zip(*map(change, self.signed_heads()), strict=True):
                    if (body := self._with_samples(heads)) is not None:
                        head = self.head.with_header("host", heads[0].header("host"))
                        yield name, bytes(head.with_header("content-length", str(len(body)))) + body
            else:
                for head in change(self.head):
                    yield name, bytes(head)

    def _with_samples(self, heads: tuple[Head, ...]) -> bytes | None:
        """The body of a batch with other signed heads. `None` if no batch can say this."""
        batch = json.loads(self.body)
        for sample, head in zip(batch["samples"], heads, strict=True):
            presign, separator, signature = head.target.partition("?")[2].partition("&X-Amz-Signature=")
            if not separator or head.method != "GET" or [name for name, _ in head.headers] != ["host"]:
                return None
            sample |= {"path": head.path, "signature": signature}
            batch["presign"] = presign
        return json.dumps(batch).encode()


class CorpusRelay:
    """Takes the requests of one client, one at a time, and tries changed ones before it forwards them."""

    def __init__(self, gateway: str, store: StoreRelay):
        self._gateway = gateway
        self._store = store
        # The store sees one request at a time, so what it sees during the changed ones is due to them.
        self._turn = threading.Lock()
        self._changes_pool = ThreadPoolExecutor(CONCURRENCY)
        self.requests: list[Request] = []
        self.statuses: list[int] = []
        self.variants = 0
        self._faults: list[str] = []
        self._server = Server(self._serve)
        self.endpoint = f"http://{self._server.address}"

    @property
    def faults(self) -> list[str]:
        """What went wrong: changed requests that were not refused as expected."""
        return self._faults + self._server.errors

    def stop(self) -> None:
        self._server.stop()
        self._changes_pool.shutdown()

    def _serve(self, client: socket.socket) -> None:
        with client.makefile("rb") as source:
            while (request := _read_request(source, client)) is not None:
                with self._turn:
                    self._try_variants(request)
                    answer, status = _forward(request, self._gateway)
                    self.requests.append(request)
                    self.statuses.append(status)
                # Not in turn: a client may request something else before it reads this answer.
                client.sendall(answer)

    def _try_variants(self, request: Request) -> None:
        seen = self._store.seen()
        variants = list(request.variants())
        self.variants += len(variants)
        for fault in self._changes_pool.map(lambda variant: self._fault(*variant), variants):
            if fault is not None:
                self._faults.append(fault)
        if self._store.seen() != seen:
            self._faults.append(f"the store saw a changed request: {request.head_bytes!r}")

    def _fault(self, change: str, variant: bytes) -> str | None:
        """Sends a changed request, and returns what is wrong with its answer."""
        method = variant.split(b" ", 1)[0].decode()
        expected = CHANGES[change][1]
        try:
            status, _, body = _exchange(self._gateway, variant, method)
        except (OSError, http.client.HTTPException) as error:
            return f"{change}: expected a refusal, found {error!r}: {variant!r}"
        # The answer to a HEAD has no code.
        code = ElementTree.fromstring(body).findtext("Code") if body else None
        is_refused = status in (400, 403) and (code in expected or (method == "HEAD" and code is None))
        return None if is_refused else f"{change}: expected one of {set(expected)}, found {status} {code}: {variant!r}"


def _read_request(source, client: socket.socket) -> Request | None:
    """Reads a request. Asks for its body if the client waits for that. `None` if the client has no more requests."""
    head_bytes = b""
    while not head_bytes.endswith(b"\r\n\r\n"):
        line = source.readline()
        if not line:
            return None
        head_bytes += line
    head = Head.parse(head_bytes)
    if (head.header("expect") or "").lower() == "100-continue":
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if (head.header("transfer-encoding") or "").lower() == "chunked":
        return Request(head_bytes, b"".join(_chunks(source)))
    length = int(head.header("content-length") or 0)
    assert length <= MAX_BODY_BYTES, head
    return Request(head_bytes, source.read(length))


def _chunks(source) -> Iterator[bytes]:
    """The body of a chunked transfer, with its framing."""
    while True:
        line = source.readline()
        yield line
        size = int(line.split(b";")[0], 16)
        if size == 0:
            # Trailers, and an empty line.
            while (line := source.readline()) not in (b"\r\n", b""):
                yield line
            yield line
            return
        yield source.read(size + 2)


def _exchange(address: str, request: bytes, method: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Sends a request on a connection of its own, and returns status, headers and body of the answer."""
    with connect(address) as connection:
        connection.sendall(request)
        with http.client.HTTPResponse(connection, method=method) as answer:
            answer.begin()
            return answer.status, answer.headers, answer.read()


def _forward(request: Request, gateway: str) -> tuple[bytes, int]:
    """Sends a request as it is, and returns the answer for the client, and its status."""
    method = request.head.method
    status, headers, body = _exchange(gateway, request.head_bytes + request.body, method)
    kept = [(name, value) for name, value in headers.items() if name.lower() not in ("transfer-encoding", "connection")]
    if method != "HEAD" and status not in (204, 304):
        kept = [(name, value) for name, value in kept if name.lower() != "content-length"]
        kept.append(("content-length", str(len(body))))
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}"]
    lines += [f"{name}: {value}" for name, value in kept]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body, status


def shape(head: Head) -> tuple:
    """What distinguishes the heads of a client: all that have the same shape are signed in the same way."""
    claim = head.claim()
    payload = re.sub("[0-9a-f]{64}", "hash", head.header("x-amz-content-sha256") or "")
    characters = "".join(sorted({*re.findall("%..|[^A-Za-z0-9]", head.target)}))
    return head.method, tuple(sorted(name for name, _ in head.parameters)), claim.signed_headers, payload, characters
