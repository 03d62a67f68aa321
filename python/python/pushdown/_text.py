"""The text of steps: names and values as the language of pipelines writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from .errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def call_text(name: str, arguments: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """The text of a step: all arguments by name, without those that are `None` or have their default value.

    Raises `ConfigError` for a value that the language cannot write; it names the step and the argument.
    """
    written = []
    for argument, value in arguments.items():
        if value is None or (argument in defaults and _is_equal(value, defaults[argument])):
            continue
        try:
            written.append(f"{argument}={value_text(value)}")
        except ConfigError as error:
            raise ConfigError(f"`{argument}` of `{name}`: {error}") from None
    return f"{name}({', '.join(written)})" if written else name


def value_text(value: object) -> str:
    """The text of one value: a number, true or false, a name, a quoted string, or a list of values.

    NumPy scalars and arrays are written as the Python values that they hold.
    """
    convert = getattr(value, "tolist", None)
    if callable(convert):
        value = convert()
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            return value if _PLAIN.fullmatch(value) else quote(value)
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case _:
            raise ConfigError(
                f"expected a finite number, a text, true or false, or a list of them, found {value!r}"
            )


def quote(text: str) -> str:
    """`text` in double quotes and ASCII, so that the pipeline can be a header value."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if " " <= char <= "~" else f"\\u{{{ord(char):x}}}"


def _is_equal(value: object, default: object) -> bool:
    """Whether `value` is the default. A list is equal to a tuple or an array of the same values."""
    convert = getattr(value, "tolist", None)
    value = convert() if callable(convert) else value
    return (tuple(value) if isinstance(value, list) else value) == default
