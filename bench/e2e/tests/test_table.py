"""Table readers use the given keys at any store, and cache nothing between rounds."""

import datetime
import http.server
import io
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import programs
import pytest

from .. import targets
from ..query import COLUMNS
from ..scenario import load_all

pytest.importorskip("duckdb", reason="it is in .venv-e2e")
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from ..kinds import table  # noqa: E402

KEYS = {"AWS_ACCESS_KEY_ID": "another", "AWS_SECRET_ACCESS_KEY": "other-secret", "AWS_REGION": "eu-west-3"}
ROWS, CHOSEN = 200_000, 365


class Store(http.server.BaseHTTPRequestHandler):
    """A store of one object, or without an object one that refuses. It records the requests."""

    protocol_version = "HTTP/1.1"
    requests: list[tuple[str, str, str, str]] = []
    body: bytes | None = None

    def do_GET(self) -> None:
        key, region = re.search("Credential=([^/]+)/[0-9]+/([^/]+)/s3", self.headers["Authorization"]).groups()
        byte_range = self.headers.get("Range", "")
        self.requests.append((self.path, key, region, f"{self.command} {byte_range}"))
        body, whole = self.body, len(self.body or b"")
        if body is None:
            return self.answer(403, b"")
        if byte_range:
            first, last = re.fullmatch("bytes=([0-9]*)-([0-9]*)", byte_range).groups()
            begin = int(first) if first else whole - int(last)
            end = min(int(last) + 1, whole) if first and last else whole
            return self.answer(206, body[begin:end], **{"Content-Range": f"bytes {begin}-{end - 1}/{whole}"})
        return self.answer(200, body)

    do_HEAD = do_GET

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        named = {"ETag": '"of-one"', "Last-Modified": "Sun, 01 Nov 2026 00:00:00 GMT", "Accept-Ranges": "bytes"}
        for name, value in (named | headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@pytest.fixture(name="address")
def address_() -> Iterator[str]:
    """The address of that store."""
    Store.requests.clear()
    Store.body = None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # A host name: with a bucket in front of it, it would not resolve.
        yield f"localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("name", "kind", "asked"),
    [("ranges", "pushed", "ranges"), ("repeat:ranges", "repeat", "ranges"), ("repeat", "repeat", "download"),
     ("pyarrow", "alternative", "pyarrow"), ("repeat:pyarrow", "repeat", "pyarrow")],
)
def test_a_repeated_arm_is_the_same_reader(monkeypatch, name: str, kind: str, asked: str) -> None:
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    tiers = SimpleNamespace(stack=SimpleNamespace(store="http://store", gateway="http://gateway"), host_cores={0})
    reader = table.TableReader(name, tiers, "some.parquet")
    assert (reader.kind, reader.method) == (kind, asked) and asked in started[0]


def read(way: str, address: str, rounds: int) -> subprocess.CompletedProcess:
    """Runs a reader for this many rounds."""
    python = table.interpreter(way)
    if not python.exists():
        pytest.skip(f"{python} is missing: `scripts/setup.sh e2e` creates it")
    return subprocess.run(
        [python, "-m", "e2e.peers.table", way, f"http://{address}", "bucket", "some.parquet"],
        input="\n" * rounds,
        env=os.environ | KEYS | {"PYTHONPATH": f"{programs.ROOT / 'bench'}:{programs.ROOT / 'scripts'}", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("way", ["download", "pushed", "pyarrow", "duckdb", "duckdb-httpfs"])
def test_table_readers_use_keys_and_region_of_the_environment(address: str, way: str) -> None:
    ended = read(way, address, 1)
    assert ended.returncode != 0, "the store refused"
    assert Store.requests, ended.stderr
    for path, key, region, _ in Store.requests:
        assert (key, region) == ("another", "eu-west-3")
        assert path.startswith("/bucket/some.parquet")


@pytest.mark.parametrize("way", ["download", "pyarrow", "duckdb", "duckdb-httpfs"])
def test_every_round_reads_the_same_rows_from_the_store(address: str, way: str) -> None:
    Store.body = lineitem()
    ended = read(way, address, 3)
    assert ended.returncode == 0, ended.stderr
    figures = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [each["rows"] for each in figures] == [CHOSEN] * 3
    assert min(each["bytes"] for each in figures) > 0
    asked = [what for *_, what in Store.requests if what.startswith("GET")]
    assert len(asked) % 3 == 0 and set(asked) == set(asked[: len(asked) // 3]), asked
    assert way == "download" or "GET " not in asked, "only ranges"


def lineitem() -> bytes:
    """Rows of two decades, one for each day of the requested year, and a column that no query reads."""
    first = datetime.date(1980, 1, 1)
    days = [first + datetime.timedelta(row % 10_000 if row < 10_000 else 0) for row in range(ROWS)]
    values = {name: pa.array(range(ROWS), pa.int64()) for name in COLUMNS} | {"l_shipdate": pa.array(days, pa.date32())}
    out = io.BytesIO()
    pq.write_table(pa.table(values | {"l_comment": [f"{row:0100}" for row in range(ROWS)]}), out, row_group_size=ROWS // 4)
    return out.getvalue()


def test_every_table_reader_of_others_has_a_rule() -> None:
    """A reader without a rule would be measured for nothing."""
    readers = {name for name, (kind, _) in table.PEERS.items() if kind == "alternative"}
    assert readers == set(targets.TABLE_READERS)
    cells = {name: set(scenario.arms) for name, scenario in load_all().items() if scenario.kind == "table"}
    assert readers <= set.union(*cells.values()), "each of them reads somewhere"
    for name, arms in cells.items():
        assert {"pyarrow", "duckdb"} <= arms, name
