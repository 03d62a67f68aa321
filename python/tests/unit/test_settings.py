"""Settings: URLs, sizes, the JSON of a spec, rank and world size."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import pushdown
from pushdown import Retry, Sampling, Store, Timeouts
from pushdown._checks import size_bytes, split_text
from pushdown._native import Share
from pushdown._rank import Rank, detect_rank
from pushdown._settings import SourceKind
from pushdown._spec import ReaderSpec
from pushdown._url import parse_url, parse_urls
from pushdown.errors import ConfigError
from pushdown.options import Options


def test_keys_are_used_as_written() -> None:
    for key in ("k", "", "/a b%2F+?#/é"):
        assert parse_url(f"s3://b/{key}") == ("b", key)
    assert parse_url("s3://b") == ("b", "")
    for url in ("", "b/k", "s3:///k", "http://b/k", "s3:/b/k"):
        with pytest.raises(ConfigError, match="expected s3://bucket/key"):
            parse_url(url)


def test_a_list_of_urls_is_in_one_bucket() -> None:
    assert parse_urls(["s3://b/2", "s3://b/1"]) == ("b", ["2", "1"])
    with pytest.raises(ConfigError, match="found `s3://c/1`"):
        parse_urls(["s3://b/2", "s3://c/1"])
    with pytest.raises(ConfigError, match="found none"):
        parse_urls([])


def test_a_spec_is_json_of_the_members_that_are_set() -> None:
    timeouts, retry = Timeouts(connect_seconds=1.0), Retry(attempts=3)
    store = Store(
        endpoint="http://gateway:9000", credentials=("key", "hidden", None), timeouts=timeouts, retry=retry
    )
    options = Options.of({"store": store, "seed": 7}).applied_to(SourceKind.TABLE)
    written = ReaderSpec(options=options, pipeline="decode", epoch=0, rows_read=((2, 128),)).to_json()
    assert "hidden" not in written
    spec = json.loads(written)
    assert spec["store"] == {
        "endpoint": "http://gateway:9000",
        "timeouts": {"connect_seconds": 1.0, "first_byte_seconds": 60.0, "idle_seconds": 60.0},
        "retry": {"attempts": 3, "base_seconds": 0.1, "cap_seconds": 20.0},
    }
    assert (spec["pipeline"], spec["seed"], spec["tail"], spec["rows_read"]) == (
        "decode",
        7,
        "even",
        [{"world": 2, "rows_per_rank": 128}],
    )
    assert not {"threads", "limit", "models", "value_cache", "on_error", "credentials"} & spec.keys()


@pytest.mark.parametrize(
    ("text", "expected"),
    [(5, 5), ("5", 5), ("256 MiB", 256 << 20), ("10GB", 10**10), ("1.5kib", 1536), ("7 b", 7)],
)
def test_sizes_have_units(text: int | str, expected: int) -> None:
    assert size_bytes("prefetch", text) == expected


def test_a_split_is_a_name_or_a_number() -> None:
    assert [split_text(split) for split in ("smallest", "full", 0, "12")] == ["smallest", "full", "0", "12"]
    for split in ("half", "-1", "²", ""):
        with pytest.raises(ConfigError, match="expected smallest, full or a number of steps"):
            split_text(split)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Rank(0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}, Rank(3, 8, 4)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Rank(1, 2)),
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
            Rank(1, 2, 2),
        ),
        ({"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "5", "SLURM_NTASKS": "6"}, Rank(0, 2)),
        ({"RANK": "7"}, Rank(0, 1)),
    ],
)
def test_the_environment_names_the_rank(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: Rank
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert detect_rank() == expected
    assert detect_rank(4, 5) == Rank(4, 5, expected.local_ranks)


def test_an_invalid_rank_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="below the world size 2, found 2"):
        detect_rank(2, 2)
    with pytest.raises(ConfigError, match="found rank=None, world=2"):
        detect_rank(world=2)
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="RANK: expected a number, found `first`"):
        detect_rank()


def test_torch_decides_before_the_environment_once_it_is_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"is_initialized": False}
    distributed: Any = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: state["is_initialized"],
        get_rank=lambda: 1,
        get_world_size=lambda: 3,
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert detect_rank() == Rank(0, 2)
    assert detect_rank(inherited=Rank(4, 5)) == Rank(4, 5)
    state["is_initialized"] = True
    assert detect_rank(inherited=Rank(4, 5)) == Rank(1, 3)


def share(
    total: int, rank: int, world: int, batch_size: int, tail: Any, limit: int | None = None, **begin: Any
) -> Share:
    """What a reader with these settings reads of an epoch."""
    options = Options(batch_size=batch_size, sampling=Sampling(tail=tail, limit=limit))
    spec = ReaderSpec(options=options, pipeline="decode", epoch=0, rank=rank, world=world, **begin)
    return Share(spec.to_json(), total)


@pytest.mark.parametrize("tail", ["short", "even", "drop", "pad"])
def test_shares_add_up_and_positions_grow_to_the_total(tail: str) -> None:
    for total in (1, 7, 24, 25):
        shares = [share(total, rank, 3, 2, tail, start_position=1) for rank in range(3)]
        dropped, repeated = shares[0].tail_counts
        assert sum(each.samples for each in shares) == total - 1 - dropped + repeated
        positions = [shares[0].position_after(batches) for batches in range(1, shares[0].batches + 1)]
        assert positions == sorted(set(positions))
        assert positions[-1:] in ([], [total])


def test_a_limit_ends_the_epoch_earlier() -> None:
    limited = share(100, 0, 2, 4, "even", limit=10)
    positions = [limited.position_after(batches) for batches in (2, 3)]
    assert (limited.samples, limited.batches, positions) == (10, 3, [16, 100])


def test_an_unknown_argument_of_a_call_is_named() -> None:
    arguments: Any = {"endpiont": "http://gateway:9000"}
    with pytest.raises(TypeError, match=r"unexpected argument endpiont: expected one of gateway, store$"):
        pushdown.get("s3://photos/a.jpg", **arguments)
