"""What fails: samples, functions, settings, Ctrl-C."""

from __future__ import annotations

from typing import Any

import pytest

from pushdown import IO, Pipeline, Plan, Reader, Sampling
from pushdown.errors import ConfigError, SampleError
from readers import URL, numbers, reader


@pytest.fixture
def bad(native: Any) -> None:
    native.buckets["photos"][3] = "train/cat/bad.jpg"


@pytest.mark.usefixtures("bad")
def test_raise_names_the_sample_and_keeps_the_position_before_it(native: Any) -> None:
    data = reader(seed=None, batch_size=2)
    batches = iter(data)
    next(batches)
    position = next(index for index, key in enumerate(data.objects.keys()) if "bad" in key)
    with pytest.raises(SampleError, match=r"`train/cat/bad\.jpg` at position") as raised:
        list(batches)
    assert (raised.value.code, raised.value.position) == ("NoSuchKey", position)
    assert data.state_dict()["position"] == position // 2 * 2
    assert native.live == []


@pytest.mark.usefixtures("bad")
def test_report_keeps_the_row_and_skip_drops_it() -> None:
    reported = [batch for batch in reader(on_error="report") if batch.errors]
    assert [error.key for error in reported[0].errors] == ["train/cat/bad.jpg"]
    row = reported[0].errors[0].row
    assert row is not None
    assert numbers(reported[0].valid)[row] == 0
    assert list(reported[0].x[2 * row : 2 * row + 2]) == [0, 0]
    data = reader(on_error="skip")
    assert sorted(len(batch) for batch in data) == [3, 4, 4, 4, 4]


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize("limit", [0, 0.04])
def test_max_errors_bounds_both(limit: float) -> None:
    for on_error in ("report", "skip"):
        with pytest.raises(SampleError) as raised:
            list(reader(on_error=on_error, max_errors=limit))
        assert "more than the 0 that max_errors allows" in raised.value.__notes__[0]
        assert len(list(reader(on_error=on_error, max_errors=0.05))) == 5


@pytest.mark.usefixtures("bad")
def test_skip_never_drops_a_whole_batch() -> None:
    with pytest.raises(SampleError):
        list(reader(on_error="skip", batch_size=1))


@pytest.mark.parametrize("bound", [True, "3", -1, -0.5, float("nan")])
def test_a_bound_of_errors_is_a_number(bound: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        reader(on_error="skip", max_errors=bound)
    assert str(raised.value) == f"invalid max_errors: expected a number of at least 0, found {bound!r}"


@pytest.mark.usefixtures("bad")
def test_a_bound_may_be_larger_than_any_number_of_samples() -> None:
    assert len(list(reader(on_error="skip", max_errors=1 << 70))) == 5


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize("on_error", ["report", "skip"])
def test_errors_cross_from_the_native_batch_once(
    native: Any, monkeypatch: pytest.MonkeyPatch, on_error: str
) -> None:
    errors, crossings = native.Batch.errors, []

    def count(batch: Any) -> Any:
        crossings.append(batch.number)
        return errors.fget(batch)

    monkeypatch.setattr(native.Batch, "errors", property(count))
    batches = list(reader(on_error=on_error))
    assert crossings == [batch.number for batch in batches]


def test_settings_are_checked_when_they_are_given() -> None:
    for options in (
        {"batch_size": 0},
        {"on_error": "ignore"},
        {"max_errors": 0.5},
        {"on_error": "skip", "max_errors": 1.5},
        {"sampling": Sampling(rank=1)},
        {"sampling": Sampling(rank=3, world=3)},
        {"epoch": -1},
        {"labels": {"train/cat/00.jpg": 1}},
    ):
        with pytest.raises(ConfigError):
            reader(**options)
    for make in (
        lambda: Sampling(tail="odd"),  # type: ignore[arg-type]
        lambda: IO(prefetch="many"),
        lambda: Plan(split="-1"),
    ):
        with pytest.raises(ConfigError):
            make()
    with pytest.raises(ConfigError, match="no objects under s3://photos/none"):
        Reader("s3://photos/none", "decode")


def test_an_exception_of_a_function_names_the_key_after_the_batches_before_it() -> None:
    def fail_at_9(value: Any) -> Any:
        return 1 / (value[0] - 9)

    data = Reader(URL, Pipeline("decode").then(fail_at_9), batch_size=4)
    batches = iter(data)
    next(batches), next(batches)
    with pytest.raises(ZeroDivisionError) as raised:
        next(batches)
    assert "train/cat/09.jpg" in raised.value.__notes__[0]
    assert data.state_dict()["position"] == 8


def test_ctrl_c_passes_through_and_leaves_nothing_open(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = reader()
    batches = iter(data)
    next(batches)

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(native.Reader, "next", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert native.live == []
    assert data.state_dict()["position"] == 4


def test_a_failure_that_is_read_ahead_comes_after_the_batches_before_it(native: Any) -> None:
    native.buckets["photos"][-1] = "train/dog/bad.jpg"
    data = Reader(URL, Pipeline("decode").then(len), batch_size=4)
    batches = iter(data)
    assert [next(batches).number for _ in range(4)] == [0, 1, 2, 3]
    assert data.state_dict()["position"] == 16
    with pytest.raises(SampleError, match=r"train/dog/bad\.jpg"):
        next(batches)
