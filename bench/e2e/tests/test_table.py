"""The readers of tables take the keys that they are given, at whatever store."""

import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import programs
import pytest

pytest.importorskip("duckdb", reason="it is in .venv-e2e")
KEYS = {"AWS_ACCESS_KEY_ID": "another", "AWS_SECRET_ACCESS_KEY": "other-secret", "AWS_REGION": "eu-west-3"}


class Refuses(http.server.BaseHTTPRequestHandler):
    """A store that tells nobody anything, and remembers who asked for what."""

    seen: list[tuple[str, str, str]] = []

    def do_GET(self) -> None:
        who, where = re.search("Credential=([^/]+)/[0-9]+/([^/]+)/s3", self.headers["Authorization"]).groups()
        self.seen.append((self.path, who, where))
        self.send_response(403)
        self.send_header("content-length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(name="address")
def address_() -> Iterator[str]:
    """Where it listens."""
    Refuses.seen.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # A name, as other machines have: a bucket's before it would be no name of this one.
        yield f"localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("way", ["download", "pushed", "pyarrow", "duckdb"])
def test_a_table_is_read_with_the_keys_and_the_region_of_the_environment(address: str, way: str) -> None:
    command = [sys.executable, "-m", "e2e.peers.table", way, f"http://{address}", "bucket", "some.parquet"]
    ended = subprocess.run(
        command,
        input="\n",
        env=os.environ | KEYS | {"PYTHONPATH": f"{programs.ROOT / 'bench'}:{programs.ROOT / 'scripts'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0, "the store refused"
    assert Refuses.seen, ended.stderr
    for path, who, where in Refuses.seen:
        assert (who, where) == ("another", "eu-west-3")
        assert path.startswith("/bucket/some.parquet")
