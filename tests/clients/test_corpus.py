"""The requests of many clients in re-sign mode: each is accepted, and after any change it is refused and the store sees nothing."""

import os

import pytest

from corpus_clients import CLIENTS, store_objects
from corpus_relay import CorpusRelay, shape
from store_relay import StoreRelay
from stores import ACCESS, ROOT, SECRET, keys_file, start_gateway

pytestmark = pytest.mark.resign_only

# A missing object is no refusal.
ACCEPTED = {200, 204, 206, 404}
FOLDER = ROOT / "gateway/src/s3/auth/tests/corpus"


@pytest.fixture(scope="module")
def store_relay(store):
    relay = StoreRelay(store.upstream.removeprefix("http://"))
    yield relay
    relay.stop()


@pytest.fixture(scope="module")
def gateway(store_relay, tmp_path_factory):
    """The address of a gateway whose requests to the store are counted."""
    folder = tmp_path_factory.mktemp("corpus")
    upstream = f"http://{store_relay.address}"
    process, addresses = start_gateway(folder / "gateway", upstream=upstream, resign_keys=keys_file(folder))
    yield addresses["listen"]
    process.stop()


@pytest.fixture
def relay(gateway, store_relay):
    relay = CorpusRelay(gateway, store_relay)
    yield relay
    relay.stop()


@pytest.fixture
def filled_bucket(s3, bucket, tmp_path_factory):
    store_objects(s3, bucket, tmp_path_factory.mktemp("objects"))
    return bucket


@pytest.mark.parametrize("client", CLIENTS)
def test_requests_are_accepted_and_changed_ones_refused(relay, filled_bucket, tmp_path, client):
    run, at_least = CLIENTS[client]
    try:
        run(relay.endpoint, filled_bucket, tmp_path)
    finally:
        # They are also why the client fails, if it does.
        assert not relay.faults, "\n".join(relay.faults[:20])
    assert len(relay.requests) >= at_least
    assert set(relay.statuses) <= ACCEPTED
    assert relay.variants >= 30 * at_least
    if "UPDATE_CORPUS" in os.environ:
        record(client, relay)


def record(client: str, relay: CorpusRelay) -> None:
    """Writes one head of each shape, for the unit test of the gateway."""
    heads = {shape(head): head for request in relay.requests for head in request.signed_heads()}
    texts = [
        f"# Requests of {client}. CONTRIBUTING.md says how to record them again.\n# access-key: {ACCESS}\n# secret: {SECRET}",
        *(bytes(head.as_verified()).decode("ascii").replace("\r\n", "\n").rstrip("\n") for head in heads.values()),
    ]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{client}.http").write_text("\n\n".join(texts) + "\n")
