"""The package: imports, one-off calls, lists of objects, tables, stacking."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pushdown
from pushdown import Pipeline, Reader, Sampling, TableReader, _shared
from pushdown.errors import ConfigError, Error, PipelineError, RefusedError, StateError
from pushdown.manifest import Manifest

UNIT = Path(__file__).parent
PACKAGE = Path(pushdown.__file__).parent


def run(code: str, path: Path) -> str:
    """The output of a fresh interpreter with `path` before all others."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(path)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_importing_loads_nothing_heavy_and_starts_no_threads() -> None:
    output = run(
        "import conftest, pushdown, threading\n"
        "print(sorted({'numpy', 'torch', 'ray', 'pyarrow', 'asyncio', 'multiprocessing'} & set(sys.modules)), threading.active_count())",
        UNIT,
    )
    assert output == "[] 1\n"


def test_every_public_name_exists() -> None:
    assert [name for name in pushdown.__all__ if not hasattr(pushdown, name)] == []


def test_another_project_in_the_place_of_this_one_is_explained(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "pushdown", ignore=shutil.ignore_patterns("*.so", "*.pyd"))
    output = run("import pushdown", tmp_path)
    assert "pip uninstall pushdown" in output
    assert "pip install --force-reinstall pushdown-client" in output


def test_get_returns_the_value_and_closes(native: Any) -> None:
    assert pushdown.get("s3://photos/a.jpg") == b"a.jpg"
    assert pushdown.get("s3://photos/a.jpg", "decode|flip_h") == b"decode | flip_h(a.jpg)"
    assert pushdown.get("s3://photos/a.jpg", Pipeline("decode").then(len)) == 13
    assert native.live == []


def test_get_many_keeps_the_order_and_names_the_url_that_fails() -> None:
    urls = [f"s3://photos/{number}" for number in range(100)]
    assert pushdown.get_many(urls) == [str(number).encode() for number in range(100)]
    assert pushdown.get_many([]) == []
    with pytest.raises(RefusedError, match="NoSuchKey") as raised:
        pushdown.get_many([*urls, "s3://photos/bad"])
    assert raised.value.__notes__ == ["while reading `s3://photos/bad`"]


def test_check_and_explain_are_readable() -> None:
    text = str(pushdown.check("decode", size=(4, 4)))
    assert text.splitlines() == [
        "* 0  (object)  bytes             1,000 bytes",
        "  1  decode    u8     ? x 4 x 3  ?",
        "warning: it is large",
    ]
    explanation = pushdown.explain("s3://photos/train/", "decode", bandwidth=100.0)
    assert str(explanation) == "20 objects"
    assert explanation.members["options"] == {
        "samples": 24,
        "seed": None,
        "epoch": 0,
        "assumptions": {
            "bandwidth": 100.0,
            "store_bandwidth": None,
            "gateway_cores": None,
            "gateways": None,
            "batch_size": 64,
            "host_cores": None,
            "cached": None,
            "epochs": 1,
        },
    }
    cached = pushdown.explain("s3://photos/train/", "decode", cached=0.5, epochs=3).members["options"]
    assert (cached["assumptions"]["cached"], cached["assumptions"]["epochs"]) == (0.5, 3)
    for invalid in ({"cached": 1.5}, {"cached": float("nan")}, {"epochs": 0}, {"gateways": 0}, {"batch_size": 0}):
        with pytest.raises(ConfigError, match="invalid"):
            pushdown.explain("s3://photos/train/", "decode", **invalid)
    with pytest.raises(PipelineError) as raised:
        pushdown.check("decode | nonsense")
    assert str(raised.value).endswith("\n  decode | nonsense\n           ^")


def test_a_list_pickles_as_a_path_and_notices_a_replaced_file(native: Any) -> None:
    native.buckets["many"] = [f"{number:06}" for number in range(10_000)]
    objects = pushdown.list("s3://many/")
    pickled = pickle.dumps(objects)
    assert len(pickled) < 400
    assert pickle.dumps(objects) == pickled
    assert pickle.loads(pickled).keys() == native.buckets["many"]
    path = _shared._paths[f"{objects.digest}.objects"]
    native.Objects.from_keys("many", ["other"]).save(path)
    with pytest.raises(Error, match="was replaced"):
        pickle.loads(pickled)
    Path(path).unlink()


def test_sources_are_prefixes_lists_objects_and_manifests(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("path,label\ns3://photos/x/b.jpg,5\ns3://photos/x/a.jpg,3\n")
    by_manifest = Reader(Manifest(tmp_path / "train.csv", label="label"), "decode", batch_size=2)
    batch = next(iter(by_manifest))
    labels: Any = batch.y
    assert (batch.keys, list(memoryview(labels))) == (["x/b.jpg", "x/a.jpg"], [5, 3])
    by_urls = Reader(["s3://photos/x/cat/1", "s3://photos/x/cow/2"], "decode", labels="dir")
    assert by_urls.classes == ["cat", "cow"]
    assert Reader(by_urls.objects, "decode").classes == []
    with pytest.raises(ConfigError, match="invalid source"):
        Reader(5, "decode")  # type: ignore[arg-type]
    by_manifest.close()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda value: np.full((2, 3), value[0], np.uint8), ("u8", (20, 2, 3))),
        (lambda value: np.full((2, 3), value[0], np.float32).T, ("f32", (20, 3, 2))),
        (lambda value: np.array(value[0]), ("f64", (20,))),
        (lambda value: value, ("f32", (20, 2))),
        (lambda value: np.zeros(int(value[0])), None),
        (lambda value: b"text", None),
        (lambda value: np.zeros(2, np.complex64), None),
    ],
)
def test_arrays_that_functions_return_are_stacked(function: Any, expected: Any) -> None:
    batch = next(iter(Reader("s3://photos/train/", Pipeline("decode").then(function), batch_size=20)))
    if expected is None:
        assert isinstance(batch.x, list)
        return
    assert (batch.x.dtype, batch.x.shape) == expected
    assert batch.x.tobytes() == np.stack([np.asarray(value) for value in batch.values]).tobytes()


def test_a_table_reader_counts_rows_per_rank() -> None:
    data = TableReader("s3://photos/train/", "select", batch_size=30, sampling=Sampling(rank=0, world=2))
    assert len(data) == 4
    batches = iter(data)
    batch = next(batches)
    rows: Any = batch["row"]
    assert (list(rows)[:3], batch.columns) == ([0, 1, 2], ["row"])
    with pytest.raises(KeyError, match="no column `other`"):
        batch["other"]
    state = json.loads(json.dumps(data.state_dict()))
    assert (state["epoch"], state["rows_read"]) == (0, [[2, 30]])
    batches.close()
    other = TableReader("s3://photos/train/", "select", batch_size=50, sampling=Sampling(rank=0, world=1))
    other.load_state_dict(state)
    left = iter(other)
    rows = next(left)["row"]
    assert rows[0] == 60
    assert other.state_dict()["rows_read"] == [[2, 30], [1, 50]]
    next(left)
    assert other.state_dict()["rows_read"] == [[2, 30], [1, 100]]
    copy = pickle.loads(pickle.dumps(other))
    assert copy.state_dict() == other.state_dict()
    more = iter(copy)
    next(more)
    more.close()
    assert copy.state_dict() == {**state, "epoch": 1, "rows_read": []}
    copy.load_state_dict({**state, "rows_read": [[1, 50]]})
    next(iter(copy))
    assert copy.state_dict()["rows_read"] == [[1, 100]]
    next(left)
    # Nobody asked for one more batch.
    assert (other.state_dict()["epoch"], other.state_dict()["rows_read"]) == (1, [])
    assert list(left) == []
    assert (other.state_dict()["epoch"], other.state_dict()["rows_read"]) == (1, [])
    with pytest.raises(StateError, match="`rows_read`"):
        other.load_state_dict({**state, "rows_read": None})


def test_a_table_reader_refuses_what_rows_do_not_have() -> None:
    with pytest.raises(ConfigError, match='tail="pad" does not apply to rows of a table: expected "short", "even" or "drop"'):
        TableReader("s3://photos/train/", "select", sampling=Sampling(tail="pad"))
    with pytest.raises(ConfigError, match="found `then`"):
        TableReader("s3://photos/train/", Pipeline("select").then(len))


def test_hidden_objects_are_listed_if_they_are_asked_for(native: Any) -> None:
    native.buckets["desktop"] = [".DS_Store", "a/", "a/1.jpg"]
    url = "s3://desktop/"
    for include_hidden, keys in ((False, ["a/1.jpg"]), (True, [".DS_Store", "a/", "a/1.jpg"])):
        sampling = Sampling(include_hidden=include_hidden)
        assert pushdown.list(url, include_hidden=include_hidden).keys() == keys
        assert Reader(url, "decode", sampling=sampling).objects.keys() == keys
        assert TableReader(url, "select", sampling=sampling).objects.keys() == keys
        explained = pushdown.explain(url, "decode", include_hidden=include_hidden)
        assert str(explained) == f"{len(keys)} objects"
    assert Reader(url, "decode").objects.keys() == ["a/1.jpg"]
