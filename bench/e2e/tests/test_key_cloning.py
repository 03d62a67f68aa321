"""Cloned keys list and read like the object that was PUT; an external store receives a PUT per key."""

import datetime
import hashlib
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("psutil", reason="it is in .venv-e2e")

import links  # noqa: E402
from PIL import Image  # noqa: E402
from stack import BUCKET, Stack  # noqa: E402
from tqdm import tqdm  # noqa: E402

from ..data import StoredData  # noqa: E402

# More than two pages of a listing; the last one is not full.
COUNT = 2_345
KEYS = [f"keys-{COUNT}/{index:07}.jpg" for index in range(COUNT)]


def test_cloned_keys_list_and_read_like_the_original(tmp_path: Path) -> None:
    with links.create(False) as link, tqdm(disable=True) as progress:
        stack = Stack(tmp_path, link, [], gateway="http://not.needed")
        try:
            assert StoredData(stack).tiny(COUNT, progress) == f"keys-{COUNT}/"
            pages = stack.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
            listed = [each for page in pages for each in page["Contents"]]
            # The original, keys across a page boundary, and the last page.
            some = [*KEYS[:3], *KEYS[1_000:1_003], *KEYS[-100:]]
            gots = [stack.client.get_object(Bucket=BUCKET, Key=key) for key in some]
            bodies = {got["Body"].read() for got in gots}
        finally:
            stack.stop()
    assert [each["Key"] for each in listed] == KEYS
    (photo,) = bodies
    assert Image.open(io.BytesIO(photo)).size == (16, 16)
    tag = f'"{hashlib.md5(photo).hexdigest()}"'
    (listing,) = {(each["Size"], each["ETag"], each["LastModified"]) for each in listed}
    assert listing[:2] == (len(photo), tag)
    assert abs(datetime.datetime.now(datetime.UTC) - listing[2]) < datetime.timedelta(minutes=5)
    assert {(got["ContentLength"], got["ETag"], got["LastModified"]) for got in gots} == {listing}
    assert not [*tmp_path.glob("*.meta")]


def test_an_external_store_receives_a_put_per_key() -> None:
    sent = {}
    client = SimpleNamespace(put_object=lambda **given: sent.update({given["Key"]: given["Body"]}))
    with tqdm(disable=True) as progress:
        StoredData(SimpleNamespace(external_tiers=["store"], client=client)).tiny(COUNT, progress)
    assert sorted(sent) == KEYS
    assert len(set(sent.values())) == 1
