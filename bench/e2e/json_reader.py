"""Reads dataclasses from JSON files.

The reader is strict: a missing or unknown name, or a value of the wrong type, is an error that names its position. A silently
missing figure would produce a report that looks complete.
"""

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class ResultsError(Exception):
    """The file does not contain results of the expected format."""


def read(kind: type[T], path: Path, format: int | str) -> T:
    """The dataclass `kind` from a file whose `format` is this one."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_constant)
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(document, dict) or "format" not in document:
        raise ResultsError(f"{path}: not results of a benchmark: expected an object with a format")
    found = document.pop("format")
    if found != format:
        raise ResultsError(f"{path}: unsupported format: expected {format!r}, found {found!r}")
    try:
        return _dataclass(kind, document, "")
    except ValueError as error:
        raise ResultsError(f"{path}: {error}") from error


def check(holds: bool, message: str) -> None:
    """Raises `ValueError` with the message unless `holds`; for `__post_init__` of results."""
    if not holds:
        raise ValueError(message)


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _dataclass(kind: type, value: Any, where: str) -> Any:
    """An instance of a dataclass from a JSON object."""
    if not isinstance(value, dict):
        raise _mistyped("an object", value, where)
    hints = typing.get_type_hints(kind)
    fields = {each.name: each for each in dataclasses.fields(kind)}
    unknown = sorted(set(value) - set(fields))
    check(unknown == [], f"{where or 'file'}: unknown: {', '.join(unknown)}")
    optional = lambda each: (each.default, each.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
    missing = [name for name, each in fields.items() if name not in value and not optional(each)]
    check(missing == [], f"{where or 'file'}: missing: {', '.join(missing)}")
    parts = {name: _value(hints[name], part, f"{where}.{name}".lstrip(".")) for name, part in value.items()}
    try:
        return kind(**parts)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _value(kind: Any, value: Any, where: str) -> Any:
    """A value of a field's annotated type."""
    if isinstance(kind, types.UnionType):
        return None if value is None else _value(kind.__args__[0], value, where)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and isinstance(value, list):
        return [_value(arguments[0], part, f"{where}[{index}]") for index, part in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {name: _value(arguments[1], part, f"{where}.{name}") for name, part in value.items()}
    accepted = {float: (int, float), int: (int,), str: (str,), bool: (bool,), Any: (object,)}.get(kind, ())
    # In Python, true is a number.
    if isinstance(value, accepted) and (kind not in (int, float) or not isinstance(value, bool)):
        return value
    raise _mistyped(getattr(origin or kind, "__name__", str(kind)), value, where)


def _mistyped(expected: str, value: Any, where: str) -> ValueError:
    found = "null" if value is None else f"{type(value).__name__} {json.dumps(value)[:40]}"
    return ValueError(f"{where or 'file'}: expected {expected}, found {found}")
