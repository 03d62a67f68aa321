"""Pipelines: ordered steps as text, and Python functions that run on the host after them."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from . import _native
from ._text import call_text
from .errors import ConfigError, PipelineError, native_errors

__all__ = ["Pipeline", "PipelineLike", "Stage", "Step"]


@dataclass(frozen=True, slots=True)
class Stage:
    """The value after a number of steps. What depends on the object is `None`."""

    step: str | None
    """The text of the step; `None` for the object as stored."""
    kind: str
    """"Bytes", "Image", "Tensor" or "Table"."""
    dtype: str | None
    shape: tuple[int | None, ...] | None
    bytes: int | None
    """Size of the value in bytes."""


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One step, as the functions of `pushdown.ops` make it. `|` joins steps to a `Pipeline`."""

    text: str

    @staticmethod
    def make(name: str, arguments: Mapping[str, object], defaults: Mapping[str, object]) -> Step:
        """The step `name`. Arguments that are `None` or equal to their default are left out."""
        return Step(call_text(name, {key: _inner_text(value) for key, value in arguments.items()}, defaults))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Step({self.text!r})"

    def __or__(self, other: PipelineLike) -> Pipeline:
        return _join(self, other)

    def __ror__(self, other: str) -> Pipeline:
        return _join(other, self)


class Pipeline:
    """Ordered steps, and functions that run on the host after them. Immutable.

    `Pipeline("decode | resize(224, 224)")` checks the text at once. What `|` builds is checked when its text
    is used, so that the last steps of a pipeline can be built apart from the first ones.
    """

    __slots__ = ("_functions", "_source")
    _source: str
    _functions: tuple[Callable[[Any], Any], ...]

    def __init__(self, text: str) -> None:
        """Parses `text`. Raises `PipelineError` with the position of the fault."""
        if not isinstance(text, str):
            raise ConfigError(
                f"invalid pipeline: expected text, found {type(text).__name__}; use `Pipeline.of`"
            )
        _parse(text)
        _set(self, text, ())

    @staticmethod
    def of(value: PipelineLike) -> Pipeline:
        """A checked pipeline from text, a step or a pipeline. Raises `PipelineError` or `ConfigError`."""
        if isinstance(value, str):
            return Pipeline(value)
        if not isinstance(value, (Step, Pipeline)):
            raise ConfigError(
                f"invalid pipeline: expected text, a Step or a Pipeline, found {type(value).__name__}"
            )
        pipeline = value if isinstance(value, Pipeline) else _unchecked(value.text, ())
        _parse(pipeline._source)
        return pipeline

    @property
    def text(self) -> str:
        """The canonical text: arguments by name, no defaults. Raises `PipelineError`."""
        return _parse(self._source)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text, 64 hex digits. Functions are not a part of it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def functions(self) -> tuple[Callable[[Any], Any], ...]:
        """The functions of `then`, in order."""
        return self._functions

    def then(self, function: Callable[[Any], Any]) -> Pipeline:
        """This pipeline, then `function` on the value of each sample, on the host, in threads."""
        if not callable(function):
            raise ConfigError(
                f"invalid argument of `then`: expected a function, found {type(function).__name__}"
            )
        return _unchecked(self._source, (*self._functions, function))

    def stages(self, size: tuple[int, int] | None = None, nbytes: int | None = None) -> list[Stage]:
        """Kind, dtype, shape and bytes before the first step and after each one.

        `size`: width and height of the stored image in pixels; `nbytes`: bytes of the stored object. Without
        them, figures that depend on the object are `None`. Raises `PipelineError`; steps with a model need
        `pushdown.check`.
        """
        with native_errors(self._source):
            report = json.loads(_native.check_json(self._source, size, nbytes))
        return [_stage(stage) for stage in report["stages"]]

    def __or__(self, other: PipelineLike) -> Pipeline:
        return _join(self, other)

    def __ror__(self, other: str) -> Pipeline:
        return _join(other, self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Pipeline is immutable: `{name}` cannot be set")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        return str(self) == str(other) and self._functions == other._functions

    def __hash__(self) -> int:
        return hash((str(self), self._functions))

    def __reduce__(self) -> tuple[Callable[..., Pipeline], tuple[object, ...]]:
        return _unchecked, (self._source, self._functions)

    def __str__(self) -> str:
        """The canonical text. Steps that are no valid pipeline yet are returned as written."""
        try:
            return self.text
        except PipelineError:
            return self._source

    def __repr__(self) -> str:
        return f"Pipeline({str(self)!r})" + "".join(
            f".then({_name(function)})" for function in self._functions
        )

    def _repr_html_(self) -> str:
        """A table with kind, dtype, shape and bytes per stage, for notebooks."""
        try:
            stages = self.stages()
        except PipelineError as error:
            return f"<pre>{html.escape(repr(self))}\n{html.escape(str(error))}</pre>"
        rows = [
            [stage.step or "(object)", stage.kind, stage.dtype or "", _shape(stage), _size(stage)]
            for stage in stages
        ]
        rows += [[f"then {_name(function)}", "", "", "", ""] for function in self._functions]
        head = _row("th", ["step", "kind", "dtype", "shape", "bytes"])
        return (
            f"<table><thead>{head}</thead><tbody>{''.join(_row('td', row) for row in rows)}</tbody></table>"
        )


PipelineLike: TypeAlias = str | Step | Pipeline


def _parse(text: str) -> str:
    with native_errors(text):
        return _native.parse_pipeline(text)


def _set(pipeline: Pipeline, source: str, functions: tuple[Callable[[Any], Any], ...]) -> None:
    object.__setattr__(pipeline, "_source", source)
    object.__setattr__(pipeline, "_functions", functions)


def _unchecked(source: str, functions: tuple[Callable[[Any], Any], ...]) -> Pipeline:
    pipeline = object.__new__(Pipeline)
    _set(pipeline, source, functions)
    return pipeline


def _join(first: PipelineLike, second: PipelineLike) -> Pipeline:
    for part in (first, second):
        if not isinstance(part, (str, Step, Pipeline)):
            return NotImplemented
    if isinstance(first, Pipeline) and first.functions:
        raise ConfigError(
            f"invalid pipeline: found the step `{second}` after `then({_name(first.functions[-1])})`, "
            "expected no step: functions run last"
        )
    functions = second.functions if isinstance(second, Pipeline) else ()
    return _unchecked(f"{_source(first)} | {_source(second)}", functions)


def _inner_text(value: object) -> object:
    """The text of a pipeline that is the argument of a step; other arguments as they are."""
    if isinstance(value, Pipeline) and value.functions:
        raise ConfigError(
            f"invalid pipeline in a step: found `then({_name(value.functions[0])})`, expected steps only: "
            "functions run on the host, after all steps"
        )
    return _source(value) if isinstance(value, (Step, Pipeline)) else value


def _source(part: PipelineLike) -> str:
    return part._source if isinstance(part, Pipeline) else str(part)


def _stage(stage: dict[str, Any]) -> Stage:
    shape = stage["shape"]
    return Stage(
        step=stage["step"],
        kind=stage["kind"],
        dtype=stage["dtype"],
        shape=None if shape is None else tuple(shape),
        bytes=stage["bytes"],
    )


def _name(function: Callable[[Any], Any]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def _row(cell: str, texts: list[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{html.escape(text)}</{cell}>' for text in texts)}</tr>"


def _shape(stage: Stage) -> str:
    return (
        "" if stage.shape is None else " × ".join("?" if side is None else str(side) for side in stage.shape)
    )


def _size(stage: Stage) -> str:
    return "?" if stage.bytes is None else f"{stage.bytes:,}"
