"""`materialize` and `warm`: arguments, labels, results, progress."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pushdown
import whole_double
from pushdown import BadSample, Column, ConfigError, JobProgress, Manifest, RefusedError, Sidecar, Store
from pushdown.progress import Progress

SOURCE = "s3://photos/train/"
TARGET = "s3://small/train/"
PIPELINE = "decode|resize(8,8)"
FOLDERS = {"names": ["cat", "dog"], "values": [0] * 10 + [1] * 10}


def materialize(source: Any = SOURCE, **options: Any) -> Any:
    return pushdown.materialize(source, PIPELINE, TARGET, **{"format": "wds", **options})


def spec() -> dict[str, Any]:
    """The settings of the only job since the last call."""
    (job,) = whole_double.jobs
    whole_double.jobs.clear()
    return job.spec


def labels(source: Any, keys: Any = None) -> Any:
    materialize(keys or SOURCE, labels=source)
    return spec().get("labels")


def test_the_settings_are_one_document() -> None:
    store = Store(endpoint="http://store:9000", credentials=("a", "b"))
    done = materialize(
        labels="dir",
        seed=7,
        epoch=2,
        samples_per_part=8,
        append=True,
        local=True,
        models="/models",
        store=store,
        gateway=["http://g1", "http://g2"],
        target_store=Store(endpoint="http://other:9000", credentials=("c", "d", "e")),
    )
    assert whole_double.jobs[0].keys == (("a", "b", None), ("c", "d", "e"))
    assert spec() == {
        "store": {"endpoint": "http://store:9000", "gateway": "http://g1,http://g2"},
        "prefix": "train/",
        "pipeline": "decode | resize(8,8)",
        "format": "wds",
        "target": ["small", "train/"],
        "target_store": {"endpoint": "http://other:9000", "gateway": ""},
        "labels": {"class": FOLDERS},
        "seed": 7,
        "epoch": 2,
        "samples_per_part": 8,
        "append": True,
        "local": True,
        "models": "/models",
    }
    assert (done.samples, done.parts, done.parts_written, done.errors, done.vanished) == (20, 3, 3, [], ["gone"])


def test_what_is_not_set_is_not_sent() -> None:
    materialize(format="parquet")
    assert spec() == {
        "store": {},
        "prefix": "train/",
        "pipeline": "decode | resize(8,8)",
        "format": "parquet",
        "target": ["small", "train/"],
        "epoch": 0,
        "append": False,
        "local": False,
    }


def test_a_dry_run_is_an_estimate() -> None:
    estimate = pushdown.materialize(SOURCE, PIPELINE, TARGET, format="wds", dry_run=True)
    assert isinstance(estimate, pushdown.Estimate)
    assert (estimate.samples, estimate.parts, estimate.parts_done, estimate.bytes) == (20, 4, 0, 200)


def test_bad_samples_are_results(native: Any) -> None:
    native.buckets["photos"] = ["train/a.jpg", "train/bad.jpg", "train/full.jpg"]
    bad = [BadSample("train/bad.jpg", "UndecodableObject", "no photo")]
    assert materialize().errors == bad
    warmed = pushdown.warm(SOURCE, PIPELINE)
    assert warmed.errors == bad
    assert (warmed.samples, warmed.cached, warmed.not_cached, warmed.found) == (3, 1, 1, 1)
    assert warmed.cached_ratio == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"format": "tar"}, "invalid format: expected one of wds, parquet, found 'tar'"),
        ({"samples_per_part": 0}, "invalid samples_per_part: expected a whole number of at least 1"),
        ({"samples_per_part": 5000}, "invalid samples_per_part: expected at most 4096, found 5000"),
        ({"seed": -1}, "invalid seed"),
        ({"epoch": None}, "invalid epoch"),
        ({"append": 1}, "invalid append: expected True or False"),
        ({"dry_run": "yes"}, "invalid dry_run"),
        ({"target_store": "http://x"}, "invalid target_store: expected pushdown.Store"),
        ({"progress": 5}, "invalid progress: expected a function, True, False or None, found int"),
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        materialize(**wrong)
    assert whole_double.jobs == []


def test_wrong_places_and_pipelines_are_refused() -> None:
    with pytest.raises(ConfigError, match="invalid URL"):
        pushdown.materialize(SOURCE, PIPELINE, "small/train", format="wds")
    with pytest.raises(ConfigError, match="expected no functions, found `then`"):
        pushdown.materialize(SOURCE, pushdown.Pipeline("decode").then(len), TARGET, format="wds")
    with pytest.raises(pushdown.PipelineError):
        pushdown.materialize(SOURCE, "decode | nonsense", TARGET, format="wds")
    with pytest.raises(TypeError, match="unexpected argument batch_size"):
        materialize(batch_size=5)
    with pytest.raises(RefusedError, match="AccessDenied"):
        pushdown.materialize(SOURCE, PIPELINE, "s3://forbidden/", format="wds")
    with pytest.raises(ConfigError, match="no objects under"):
        materialize("s3://photos/nothing/")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("s3://photos/a.parquet", "found rows of Parquet objects"),
        (pushdown.Parquet("s3://photos/"), "found rows of Parquet objects"),
        ("s3://photos/train-{0..9}.tar", "found shards without an index; `pushdown.list"),
        (["s3://photos/a.tar", "s3://photos/b.tar"], "found shards without an index; `pushdown.list"),
    ],
)
def test_rows_and_shards_without_an_index_are_refused(source: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        materialize(source)
    with pytest.raises(ConfigError, match=expected.replace("`pushdown.list", "run `pushdown index`")):
        pushdown.warm(source, PIPELINE)


def test_samples_of_shards_are_samples(native: Any, tmp_path: Path) -> None:
    native.shards["sets/a.tar"] = {"cat/1.jpg": b"", "cat/1.cls": b"3", "dog/2.jpg": b"", "dog/2.cls": b"4"}
    samples = pushdown.list("s3://photos/sets/a.tar", columns=["cls"])
    materialize(samples, labels="dir")
    assert whole_double.jobs[0].objects.columns == ["cls"]
    found = spec()
    assert (found["prefix"], found["labels"]) == ("sets/", {"class": {"names": ["cat", "dog"], "values": [0, 1]}})
    index = tmp_path / "index"
    made = pushdown.index("s3://photos/sets/a.tar", path=index)
    materialize(made, labels=[1.5, 2])
    assert spec()["labels"] == {"float": [1.5, 2.0]}
    pushdown.warm("s3://photos/sets/a.tar", PIPELINE, index=index, column="cls")
    assert [whole_double.jobs[0].objects.member(number) for number in range(2)] == ["cat/1.cls", "dog/2.cls"]
    with pytest.raises(ConfigError, match=r"found a Column; list the samples by `pushdown.list\(shards, columns=\['cls'\]\)`"):
        materialize(samples, labels=Column("cls"))


def test_lists_of_urls_are_listed_for_their_etags(native: Any) -> None:
    listed: list[str] = []
    list_prefix = native.Objects.list_prefix

    def spied(*arguments: Any) -> Any:
        listed.append(arguments[3])
        return list_prefix(*arguments)

    native.Objects.list_prefix = staticmethod(spied)
    try:
        urls = [f"s3://photos/train/{name}.jpg" for name in ("dog/03", "cat/02")]
        assert labels("dir", urls) == {"class": {"names": ["cat", "dog"], "values": [1, 0]}}
        materialize(urls)
        assert whole_double.jobs[0].objects.keys() == ["train/dog/03.jpg", "train/cat/02.jpg"]
        assert spec()["prefix"] == "train/"
        with pytest.raises(ConfigError, match=r"expected an object at s3://photos/train/cat/99\.jpg, found none"):
            materialize([*urls, "s3://photos/train/cat/99.jpg"])
        assert listed == ["train/"] * 3
        # A reader needs no ETags to warm a cache.
        pushdown.warm(urls, PIPELINE)
        materialize(pushdown.list(SOURCE))
        assert listed == ["train/"] * 4
    finally:
        native.Objects.list_prefix = staticmethod(list_prefix)


def test_a_manifest_is_source_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("path,label\ns3://photos/train/dog/03.jpg,5\ns3://photos/train/cat/02.jpg,3\n")
    manifest = Manifest(path, label="label")
    materialize(manifest)
    assert spec()["labels"] == {"int": [5, 3]}
    materialize(manifest, labels="dir")
    assert spec()["labels"]["class"]["values"] == [1, 0]


KEYS = [f"train/{folder}/{number:02}.jpg" for folder in ("cat", "dog") for number in range(10)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("dir", {"class": FOLDERS}),
        (r"/(cat|dog)/", {"class": FOLDERS}),
        ({key: number for number, key in enumerate(KEYS)}, {"int": list(range(20))}),
        ({key.removeprefix("train/"): "ä\n" for key in KEYS}, {"text": ["ä\n"] * 20}),
        (range(20), {"int": list(range(20))}),
        (np.arange(20), {"int": list(range(20))}),
        (np.arange(20, dtype=np.float32) / 4, {"float": [number / 4 for number in range(20)]}),
        ([np.float32(0.5), np.float64(0.25)] * 10, {"float": [0.5, 0.25] * 10}),
        ([1, 2.5] * 10, {"float": [1.0, 2.5] * 10}),
        ([1 << 53, 0.5] * 10, {"float": [float(1 << 53), 0.5] * 10}),
        (lambda key: key[6:9], {"text": ["cat"] * 10 + ["dog"] * 10}),
        (lambda key: len(key), {"int": [16] * 20}),
    ],
)
def test_labels_have_one_type(given: Any, expected: Any) -> None:
    assert labels(given) == expected


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "found None"),
        ("text", "found 'text'"),
        (float("nan"), "found nan"),
        (float("inf"), "found inf"),
        ((1 << 53) + 1, "found 9007199254740993"),
        (1 << 70, "found 1180591620717411303424"),
        (b"dog", "found b'dog'"),
        ([1], r"found \[1\]"),
    ],
)
def test_labels_of_other_types_are_refused_by_key(value: Any, found: str) -> None:
    with pytest.raises(ConfigError, match=rf"invalid label of `train/cat/02\.jpg`: expected whole numbers.*{found}"):
        materialize(labels=[0.5, 0.5, value, *[0.5] * 17])


def test_labels_that_are_read_with_samples_are_refused() -> None:
    with pytest.raises(ConfigError, match="found a Sidecar; pass a dict of keys"):
        materialize(labels=Sidecar(".cls"))
    with pytest.raises(ConfigError, match=r"no label for `train/dog/00\.jpg`"):
        materialize(labels={key: 1 for key in KEYS[:10]})


def test_warm_asks_for_all_steps_before_the_first_random_one() -> None:
    pushdown.warm(SOURCE, PIPELINE, store=Store(endpoint="http://s"), gateway="http://g")
    assert spec() == {
        "store": {"endpoint": "http://s", "gateway": "http://g"},
        "pipeline": "decode | resize(8,8)",
        "mode": "pushdown",
        "split": "full",
        "warm": {"keep_seconds": None},
        "batch_size": 256,
    }
    # Its readers' functions make no difference.
    pushdown.warm(SOURCE, pushdown.Pipeline(PIPELINE).then(len), stage=1, keep=90)
    found = spec()
    assert (found["split"], found["warm"]) == ("1", {"keep_seconds": 90})
    with pytest.raises(ConfigError, match="invalid stage"):
        pushdown.warm(SOURCE, PIPELINE, stage=0)


@pytest.mark.parametrize(
    ("keep", "seconds"),
    [
        ("24h", 86_400),
        ("90 s", 90),
        ("1.5m", 90),
        ("7d", 604_800),
        ("30d", 2_592_000),
        ("45", 45),
        (0.2, 1),
        (timedelta(hours=1), 3_600),
        ("31d", None),
        ("0s", None),
        (0, None),
        (-1, None),
        ("1 week", None),
        ("h", None),
        ("24H", None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (b"24h", None),
    ],
)
def test_times_have_units(keep: Any, seconds: int | None) -> None:
    if seconds is None:
        with pytest.raises(ConfigError, match="invalid keep: expected"):
            pushdown.warm(SOURCE, PIPELINE, keep=keep)
        return
    pushdown.warm(SOURCE, PIPELINE, keep=keep)
    assert spec()["warm"] == {"keep_seconds": seconds}


def test_a_function_gets_the_progress() -> None:
    found: list[JobProgress] = []
    materialize(samples_per_part=10, progress=found.append)
    assert found == [JobProgress(10, 20, 1, 2, 10), JobProgress(20, 20, 2, 2, 20)]
    pushdown.warm(SOURCE, PIPELINE, progress=found.append)
    assert found[2:] == [JobProgress(20, 20)]

    def fails(_: JobProgress) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        materialize(progress=fails)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("call", [materialize, lambda **options: pushdown.warm(SOURCE, PIPELINE, **options)])
@pytest.mark.parametrize(("progress", "is_shown"), [(None, True), (True, True), (False, False)])
def test_a_terminal_has_a_line(
    call: Callable[..., object], progress: Any, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("pushdown.progress._QUIET_SECONDS", 0.0)
    monkeypatch.setattr("pushdown.progress._LINE_SECONDS", 0.0)
    call(progress=progress)
    text = terminal.getvalue()
    assert ("listing s3://photos/train/: 20 objects" in text) == is_shown
    assert ("ing s3://photos/train/: 20 of 20 samples" in text) == is_shown
    assert text.endswith("\r\x1b[K") or not is_shown
    assert text == "" or is_shown


def test_a_notebook_has_a_line_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pushdown.progress._QUIET_SECONDS", 0.0)
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    with Progress("warming", "{:,} samples", stream) as show:
        show(5)
    assert stream.getvalue() == "\rwarming: 5 samples so far\x1b[K\n"


def test_results_are_plain_and_frozen() -> None:
    done = materialize()
    with pytest.raises(AttributeError):
        done.samples = 5
    assert json.dumps(done.vanished) == '["gone"]'
