"""Pipelines: composition, canonical text, functions, stages, pickling."""

from __future__ import annotations

import hashlib
import pickle

import pytest

import native_double
from pushdown import ops as P
from pushdown.errors import ConfigError, PipelineError
from pushdown.pipeline import Pipeline, Stage, Step


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    native_double.install(monkeypatch)


def double(value: int) -> int:
    return 2 * value


def test_text_is_canonical_and_its_digest_is_sha256_of_it() -> None:
    pipeline = Pipeline("decode|flip_h")
    assert pipeline.text == str(pipeline) == "decode | flip_h"
    assert pipeline.digest == hashlib.sha256(b"decode | flip_h").hexdigest()


def test_invalid_text_fails_at_once_and_shows_the_place() -> None:
    with pytest.raises(PipelineError) as caught:
        Pipeline("flip_h")
    assert caught.value.position == 0
    assert str(caught.value).endswith("\n  flip_h\n  ^")


def test_only_pipelines_are_pipelines() -> None:
    with pytest.raises(ConfigError, match="expected text, a Step or a Pipeline, found int"):
        Pipeline.of(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected text, found Step"):
        Pipeline(P.decode())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pipeline",
    [
        P.decode() | P.flip_h(),
        P.decode() | "flip_h",
        "decode" | P.flip_h(),
        "decode" | (P.flip_h() | P.to_float()),
        Pipeline("decode") | P.flip_h(),
        Pipeline("decode") | "flip_h",
    ],
)
def test_text_steps_and_pipelines_compose(pipeline: Pipeline) -> None:
    assert isinstance(pipeline, Pipeline)
    assert pipeline.text.startswith("decode | flip_h")


def test_other_types_do_not_compose() -> None:
    with pytest.raises(TypeError):
        P.decode() | 3  # type: ignore[operator]
    with pytest.raises(TypeError):
        3 | Pipeline("decode")  # type: ignore[operator]


def test_a_tail_is_checked_when_it_is_used() -> None:
    tail = P.flip_h() | P.to_float()
    assert (P.decode() | tail).text == "decode | flip_h | to_float"
    assert str(tail) == "flip_h | to_float"
    assert repr(tail) == "Pipeline('flip_h | to_float')"
    with pytest.raises(PipelineError):
        tail.text  # noqa: B018
    with pytest.raises(PipelineError):
        Pipeline.of(tail)


def test_of_keeps_a_pipeline_and_checks_a_step() -> None:
    pipeline = Pipeline("decode").then(double)
    assert Pipeline.of(pipeline) is pipeline
    assert Pipeline.of(Step("decode")) == Pipeline("decode")
    with pytest.raises(PipelineError):
        Pipeline.of(P.flip_h())


def test_functions_run_last() -> None:
    pipeline = Pipeline("decode").then(double).then(str)
    assert pipeline.functions == (double, str)
    assert pipeline.text == "decode"
    assert repr(pipeline) == "Pipeline('decode').then(double).then(str)"
    assert (P.decode() | (P.flip_h() | P.to_float()).then(double)).functions == (double,)
    with pytest.raises(ConfigError, match=r"found the step `flip_h` after `then\(str\)`"):
        pipeline | "flip_h"
    with pytest.raises(ConfigError, match="expected a function, found int"):
        pipeline.then(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"found `then\(double\)`, expected steps only"):
        P.each("image", Pipeline("decode").then(double))


def test_equality_and_hash_are_by_text_and_functions() -> None:
    pipeline = Pipeline("decode|flip_h")
    assert pipeline == P.decode() | P.flip_h()
    assert hash(pipeline) == hash(P.decode() | P.flip_h())
    assert pipeline != Pipeline("decode")
    assert pipeline != pipeline.then(double)
    assert pipeline != "decode | flip_h"


def test_pipelines_are_immutable() -> None:
    pipeline = Pipeline("decode")
    with pytest.raises(AttributeError, match="immutable"):
        pipeline._source = "flip_h"
    assert pipeline.then(double) is not pipeline
    assert pipeline.functions == ()


def test_pickles_with_functions_and_as_a_tail() -> None:
    for pipeline in (Pipeline("decode").then(double), P.flip_h() | P.to_float()):
        copy = pickle.loads(pickle.dumps(pipeline))
        assert copy == pipeline
        assert copy.functions == pipeline.functions
    assert pickle.loads(pickle.dumps(P.resize(2, 3))) == P.resize(2, 3)


def test_stages_have_shapes_and_bytes() -> None:
    pipeline = Pipeline("decode | flip_h")
    assert pipeline.stages((40, 30), 1000) == [
        Stage(None, "Bytes", None, None, 1000),
        Stage("decode", "Image", "u8", (30, 40, 3), 3600),
        Stage("flip_h", "Image", "u8", (30, 40, 3), 3600),
    ]
    assert pipeline.stages()[1] == Stage("decode", "Image", "u8", (None, None, 3), None)


def test_html_is_a_table_of_the_stages() -> None:
    def show(value: int) -> int:
        return value

    page = Pipeline('decode | model("<b>")').then(show)._repr_html_()
    assert "<td>(object)</td><td>Bytes</td>" in page
    assert "<td>decode</td><td>Image</td><td>u8</td><td>? × ? × 3</td><td>?</td>" in page
    assert "model(&quot;&lt;b&gt;&quot;)" in page
    assert "<b>" not in page
    assert "&lt;locals&gt;.show" in page
    assert page.startswith("<table>")


def test_html_of_a_tail_shows_the_reason() -> None:
    page = (P.flip_h() | P.to_float())._repr_html_()
    assert page.startswith("<pre>Pipeline(&#x27;flip_h | to_float&#x27;)")
    assert "takes Image, found Bytes" in page
