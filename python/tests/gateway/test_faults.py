"""Storms of 503, restarts, credentials that expire: nothing is lost, and nothing is read twice."""

from __future__ import annotations

import dataclasses
import http.client
import http.server
import itertools
import json
import pathlib
import sys
import textwrap
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import pushdown
from pushdown import IO, Store
from samples import PIPELINE, Sample, samples, samples_of
from stores import ACCESS, SECRET, start_gateway

# Of credentials that end within a test.
SESSION_SECONDS = 4


@pytest.fixture(scope="module")
def expected(options: dict[str, Any], source: str) -> list[Sample]:
    with pushdown.Reader(source, PIPELINE, **options) as reader:
        return samples(reader)


class Storm(http.server.ThreadingHTTPServer):
    """Passes requests on, except for those that it answers with 503."""

    def __init__(self, upstream: str, refuse: Iterator[bool]) -> None:
        super().__init__(("127.0.0.1", 0), Relay)
        self.upstream, self.refuse = urllib.parse.urlsplit(upstream), refuse
        self.refused = 0
        self.lock = threading.Lock()

    def hold_back(self, path: str) -> None:
        """Called with the path of each request before it is passed on."""


class Late(Storm):
    """Holds the first presigned request back, until its signature has ended."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream, itertools.repeat(False))
        self.held_back = 0

    def hold_back(self, path: str) -> None:
        with self.lock:
            is_first = "X-Amz-Signature" in path and self.held_back == 0
            self.held_back += is_first
        if is_first:
            time.sleep(SESSION_SECONDS + 1)


class Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Storm

    def relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            is_refused = next(self.server.refuse)
            self.server.refused += is_refused
        self.server.hold_back(self.path)
        if is_refused:
            answer = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
            self.send_response(503)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            return
        upstream = self.server.upstream
        connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port)
        # The host is signed: it stays that of this relay.
        connection.request(self.command, self.path, body, dict(self.headers))
        answered = connection.getresponse()
        data = answered.read()
        connection.close()
        self.send_response(answered.status)
        for name, value in answered.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_HEAD = relay

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.mark.parametrize("mode", ["pushdown", "plain", "auto"])
def test_a_storm_of_503_loses_nothing(
    options: dict[str, Any], source: str, endpoint: str, expected: list[Sample], mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Storm(endpoint, itertools.cycle([True, True, False])) as storm:
        threading.Thread(target=storm.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{storm.server_address[1]}"
        retry = pushdown.Retry(attempts=20, base_seconds=0.01, cap_seconds=0.05)
        settings = {**options, "store": Store(endpoint=address, retry=retry), "mode": mode}
        with pushdown.Reader(source, PIPELINE, **settings) as reader:
            assert samples(reader) == expected
            assert reader.stats.retries > 0
        assert any("SlowDown" in record.message for record in caplog.records), "outages are logged"
        assert storm.refused > 0
        storm.shutdown()


def test_a_storm_that_does_not_end_is_an_error(options: dict[str, Any], endpoint: str) -> None:
    with Storm(endpoint, itertools.repeat(True)) as storm:
        threading.Thread(target=storm.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{storm.server_address[1]}"
        retry = pushdown.Retry(attempts=3, base_seconds=0.01, cap_seconds=0.05)
        with pytest.raises(pushdown.UnavailableError, match="SlowDown"):
            pushdown.Reader("s3://photos/train/", PIPELINE, **{**options, "store": Store(endpoint=address, retry=retry)})
        storm.shutdown()


def test_a_gateway_that_restarts_loses_nothing(
    options: dict[str, Any], source: str, world: Any, expected: list[Sample], tmp_path: pathlib.Path
) -> None:
    settings = {"upstream": world.upstream}
    gateway, addresses = start_gateway(tmp_path / "first", **settings)
    try:
        endpoint = f"http://{addresses['listen']}"
        retry = pushdown.Retry(attempts=50, base_seconds=0.02, cap_seconds=0.2)
        store, io = Store(endpoint=endpoint, retry=retry), IO(prefetch=1, requests=1)
        settings_of_reader = {**options, "store": store, "io": io}
        with pushdown.Reader(source, PIPELINE, **settings_of_reader) as reader:
            batches = iter(reader)
            read = samples_of(next(batches))
            gateway.stop()
            rest: list[Sample] = []
            reading = threading.Thread(target=lambda: rest.extend(samples(batches)))
            reading.start()
            reading.join(0.5)
            gateway, _ = start_gateway(tmp_path / "second", **settings, listen=addresses["listen"])
            reading.join(60)
            assert not reading.is_alive()
        assert read + rest == expected
    finally:
        gateway.stop()


@pytest.fixture
def sessions(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Credentials of the profile `short`, each valid for `SESSION_SECONDS`, and no others. Returns a file with one character for each."""
    calls = tmp_path / "calls"
    provider = tmp_path / "provider.py"
    provider.write_text(
        textwrap.dedent(
            f"""
            import datetime, json
            with open({str(calls)!r}, "a") as calls:
                calls.write("x")
            until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds={SESSION_SECONDS})
            print(json.dumps({{"Version": 1, "AccessKeyId": {ACCESS!r}, "SecretAccessKey": {SECRET!r},
                              "Expiration": until.isoformat().replace("+00:00", "Z")}}))
            """
        )
    )
    config = tmp_path / "config"
    config.write_text(f"[profile short]\ncredential_process = {sys.executable} {provider}\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    return calls


def test_credentials_that_expire_are_renewed(
    options: dict[str, Any], source: str, expected: list[Sample], sessions: pathlib.Path
) -> None:
    """Each pair of keys is renewed in the last fifth of its life. Seven batches take a second each."""
    store = dataclasses.replace(options["store"], profile="short")
    settings = {**options, "store": store, "io": IO(requests=1, prefetch=1)}
    with pushdown.Reader(source, PIPELINE, **settings) as reader:
        read: list[Sample] = []
        for number, batch in enumerate(reader):
            read += samples_of(batch)
            if number < 7:
                time.sleep(1)
    assert read == expected
    assert len(sessions.read_text()) > 2


def test_a_signature_that_ended_on_its_way_to_the_store_is_signed_again(
    options: dict[str, Any], source: str, world: Any, sessions: pathlib.Path
) -> None:
    """Stores answer 403, as to those without a right."""
    with Late(world.upstream) as late:
        threading.Thread(target=late.serve_forever, daemon=True).start()
        retry = pushdown.Retry(attempts=1)
        store = Store(endpoint=f"http://127.0.0.1:{late.server_address[1]}", profile="short", retry=retry)
        settings = {**options, "store": store, "mode": "plain", "io": IO(requests=1, prefetch=1)}
        with pushdown.Reader(source, PIPELINE, **settings) as reader:
            assert len(samples_of(next(iter(reader)))) == 4
        assert late.held_back == 1
        late.shutdown()


def requests_of(world: Any) -> dict[str, float]:
    """Number of requests by route, from the gateway's metrics."""
    with urllib.request.urlopen(f"{world.admin}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counts: dict[str, float] = {}
    for line in lines:
        name, _, value = line.rpartition(" ")
        if name.startswith("pushdown_requests_total{"):
            counts[name] = float(value)
    return counts


def test_a_resume_sends_no_more_requests_than_a_fresh_start(options: dict[str, Any], source: str, world: Any) -> None:
    objects = pushdown.list(source, store=options["store"])
    settings = {**options, "mode": "pushdown", "io": IO(requests=1, prefetch=1)}

    def sent(state: dict[str, Any] | None) -> tuple[dict[str, float], dict[str, Any]]:
        before = requests_of(world)
        with pushdown.Reader(objects, PIPELINE, **settings) as reader:
            if state is not None:
                reader.load_state_dict(json.loads(json.dumps(state)))
            batches = iter(reader)
            for _ in range(3):
                next(batches)
            after_three = reader.state_dict()
        after = requests_of(world)
        return {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}, after_three

    fresh, state = sent(None)
    resumed, _ = sent(state)
    assert fresh and resumed.keys() == fresh.keys()
    # A batch may have been requested in advance when the reader was closed.
    assert sum(fresh.values()) <= 4 and sum(resumed.values()) <= 4
