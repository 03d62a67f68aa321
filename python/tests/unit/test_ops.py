"""Steps as functions: their text, and that `ops.py` is what the step table generates."""

from __future__ import annotations

import importlib.util
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pushdown import ops as P
from pushdown._text import value_text
from pushdown.errors import ConfigError
from pushdown.pipeline import Pipeline, Step

FOLDER = Path(__file__).parent
STEPS = json.loads((FOLDER / "data" / "steps.json").read_text())

TEXTS = [
    (P.decode(), "decode"),
    (P.decode(orient="exif", min_short=256), "decode(orient=exif, min_short=256)"),
    (P.resize(224, 224), "resize(w=224, h=224)"),
    (P.resize(short=256, filter="bicubic"), "resize(short=256, filter=bicubic)"),
    (P.resize(short=256, filter="bilinear", antialias=False), "resize(short=256, antialias=false)"),
    (P.center_crop(224), "center_crop(w=224)"),
    (P.crop(0, 1, 2, 3), "crop(x=0, y=1, w=2, h=3)"),
    (P.encode("jpeg", quality=75), "encode(format=jpeg, quality=75)"),
    (P.encode("png"), "encode(format=png)"),
    (P.normalize("imagenet"), "normalize(preset=imagenet)"),
    (P.normalize(mean=0.5, std=[0.229, 0.224, 1e-05]), "normalize(mean=0.5, std=[0.229, 0.224, 1e-05])"),
    (P.normalize(model="resnet/v1.5"), 'normalize(model="resnet/v1.5")'),
    (P.layout("hwc"), "layout(order=hwc)"),
    (P.cast("bf16"), "cast(dtype=bf16)"),
    (P.quantize("int8", scale=0.25), "quantize(codes=int8, scale=0.25)"),
    (P.random_resized_crop(224), "random_resized_crop(w=224)"),
    (P.random_resized_crop(224, scale=(0.08, 1.0)), "random_resized_crop(w=224)"),
    (
        P.random_resized_crop(224, scale=(0.5, 1.0), seed=7),
        "random_resized_crop(w=224, scale=[0.5, 1.0], seed=7)",
    ),
    (P.random_crop(32, padding=4, pad_if_needed=True), "random_crop(w=32, padding=4, pad_if_needed=true)"),
    (P.flip_h(0), "flip_h(p=0)"),
    (P.color_jitter(0.4, hue=(-0.1, 0.1)), "color_jitter(brightness=0.4, hue=[-0.1, 0.1])"),
    (P.model("net@0f", from_="cut:1"), 'model(network="net@0f", from="cut:1")'),
    (
        P.select(["a", "b c"], where="a > 3 AND b = 'x'"),
        'select(columns=[a, "b c"], where="a > 3 AND b = \'x\'")',
    ),
    (P.select("a", rows=(0, 10), header=False), "select(columns=a, header=false, rows=[0, 10])"),
    (P.select(delimiter=","), 'select(delimiter=",")'),
    (
        P.sql("SELECT 'ä\\\"' AS x\nFROM object"),
        'sql(query="SELECT \'\\u{e4}\\\\\\"\' AS x\\u{a}FROM object")',
    ),
    (P.sample(0.5, 7), "sample(fraction=0.5, seed=7)"),
    (P.each("image", P.decode()), "each(column=image, pipeline=decode)"),
    (P.each("image", P.decode() | P.to_float()), 'each(column=image, pipeline="decode | to_float")'),
    (
        P.each("a b", 'decode | normalize(model="m")'),
        'each(column="a b", pipeline="decode | normalize(model=\\"m\\")")',
    ),
]


@pytest.mark.parametrize(("step", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_text(step: Step, text: str) -> None:
    assert str(step) == text


def test_numpy_values_are_written_as_python_values() -> None:
    numpy = pytest.importorskip("numpy")
    assert str(P.resize(short=numpy.int64(256))) == "resize(short=256)"
    assert (
        str(P.normalize(mean=numpy.array([0.5, 0.25]), std=numpy.float64(1)))
        == "normalize(mean=[0.5, 0.25], std=1.0)"
    )
    assert str(P.random_resized_crop(8, scale=numpy.array([0.08, 1.0]))) == "random_resized_crop(w=8)"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {"a": 1}, [1, None]])
def test_values_that_have_no_text_name_step_and_argument(value: Any) -> None:
    with pytest.raises(ConfigError, match="`mean` of `normalize`: expected a finite number"):
        P.normalize(mean=value, std=1)


def test_plain_names_need_no_quotes() -> None:
    assert [value_text(text) for text in ("a_1", "_", "", "1a", "a-b", "é")] == [
        "a_1",
        "_",
        '""',
        '"1a"',
        '"a-b"',
        '"\\u{e9}"',
    ]


def test_a_step_is_text_with_a_short_repr() -> None:
    assert repr(P.resize(short=256)) == "Step('resize(short=256)')"
    assert P.flip_h() == Step("flip_h")


def test_arguments_that_need_their_names_are_keyword_only() -> None:
    parameters = inspect.signature(P.resize).parameters
    assert [
        name for name, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ] == ["w", "h"]
    assert inspect.signature(P.crop).parameters["x"].default is inspect.Parameter.empty


def test_ops_is_what_the_table_generates() -> None:
    generate = _generator()
    assert generate.module(STEPS) == generate.OPS.read_text()
    assert sorted(step["name"] for step in STEPS) == P.__all__


def test_a_text_in_the_table_cannot_end_its_docstring() -> None:
    step = {
        "name": "odd",
        "summary": 'odd \\ and """',
        "input": "Bytes",
        "output": "Bytes",
        "random": False,
        "arguments": [],
    }
    scope: dict[str, Any] = {"Step": Step}
    exec(f"from __future__ import annotations\n{_generator().function(step)}", scope)
    assert scope["odd"].__doc__.startswith('Odd \\ and """.')


@pytest.mark.parametrize(
    "text", [text for _, text in TEXTS if not text.startswith(("model", "normalize(model"))]
)
def test_texts_parse_natively(text: str) -> None:
    before = {"Image": "decode | ", "Tensor": "decode | to_float | ", "Table": "select | ", "Bytes": ""}
    name = text.partition("(")[0]
    kind = next(step["input"] for step in STEPS if step["name"] == name)
    if 'model=\\"m' not in text:
        pipeline = Pipeline(before[kind.partition(" ")[0]] + text)
        assert Pipeline(pipeline.text) == pipeline


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_ops", FOLDER.parents[1] / "scripts" / "generate_ops.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
