"""Checks of the values of options: from the name of an option and its value to the value of the native setting."""

from __future__ import annotations

import math
import os
import re
import reprlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias, get_args

from .errors import ConfigError

__all__ = [
    "Check",
    "any_value",
    "at_least",
    "check_least",
    "choice",
    "choice_of",
    "of_type",
    "path_text",
    "set_members",
    "size_bytes",
    "split_text",
    "time_seconds",
]

Check: TypeAlias = Callable[[str, Any], Any]
"""From the name of an option and its value to the value of the native setting. Raises `ConfigError` for an invalid one."""

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_TIME_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}


def any_value(_name: str, value: Any) -> Any:
    """The value as it is."""
    return value


def at_least(least: int, *, optional: bool = False) -> Check:
    """A whole number of at least `least`, or `None` if that is allowed."""

    def check(name: str, value: Any) -> Any:
        if value is None and not optional:
            raise ConfigError(f"invalid {name}: expected a whole number of at least {least}, found None")
        check_least(name, value, least)
        return value

    return check


def choice_of(alias: Any) -> Check:
    """One of the values of a `Literal`; with `None` among them, if `alias` is optional."""
    parts = get_args(alias)
    choices = tuple(each for part in parts for each in ((part,) if isinstance(part, str) else get_args(part)))

    def check(name: str, value: Any) -> Any:
        if value is not None or type(None) not in parts:
            choice(name, value, choices)
        return value

    return check


def of_type(*types: type, expected: str, optional: bool = False) -> Check:
    """An instance of one of these types, or `None` if that is allowed. A message does not have the value, which may be a secret."""

    def check(name: str, value: Any) -> Any:
        if not (isinstance(value, types) or (optional and value is None)):
            raise ConfigError(f"invalid {name}: expected {expected}, found {type(value).__name__}")
        return value

    return check


def check_least(name: str, value: object, least: int) -> None:
    """Raises `ConfigError` unless `value` is `None` or a whole number of at least `least`."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"invalid {name}: expected a whole number of at least {least}, found {value!r}")


def choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raises `ConfigError` unless `value` is one of `choices`."""
    if value not in choices:
        raise ConfigError(f"invalid {name}: expected one of {', '.join(choices)}, found {value!r}")


def split_text(split: int | str) -> str:
    """`smallest`, `full` or a number of steps, as text. Raises `ConfigError`."""
    text = str(split)
    if text not in ("smallest", "full") and not (text.isascii() and text.isdecimal()):
        raise ConfigError(f"invalid split: expected smallest, full or a number of steps, found {split!r}")
    return text


def size_bytes(name: str, size: int | str) -> int:
    """Bytes of `size`: a number, or text such as `256 MiB` or `10GB`. Raises `ConfigError`."""
    if isinstance(size, int):
        check_least(name, size, 0)
        return size
    text = size if isinstance(size, str) else ""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    unit = _UNITS.get(match[2].lower()) if match else None
    found = float(match[1]) * unit if match is not None and unit is not None else math.inf
    if math.isinf(found):
        raise ConfigError(
            f"invalid {name}: expected a number of bytes or text such as `256 MiB`, found {reprlib.repr(size)}"
        )
    return round(found)


def time_seconds(name: str, time: float | str | timedelta) -> int:
    """Whole seconds of `time`, rounded up: seconds, a `timedelta`, or text such as `90s`, `30m`, `24h` or `7d`. Raises `ConfigError`."""
    seconds = math.inf
    if isinstance(time, timedelta):
        seconds = time.total_seconds()
    elif isinstance(time, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", time)
        unit = _TIME_UNITS.get(match[2]) if match else None
        seconds = float(match[1]) * unit if match is not None and unit is not None else math.inf
    elif isinstance(time, (int, float)) and not isinstance(time, bool):
        seconds = float(time)
    if not math.isfinite(seconds):
        raise ConfigError(
            f"invalid {name}: expected seconds, a timedelta or text such as `24h`, found {reprlib.repr(time)}"
        )
    return math.ceil(seconds)


def path_text(name: str, path: str | os.PathLike[str] | None) -> str | None:
    """An absolute path, so that another process finds the same folder. Raises `ConfigError`."""
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"invalid {name}: expected a path, found {type(path).__name__}")
    return os.path.abspath(path)


def set_members(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are not `None`."""
    return {name: value for name, value in members.items() if value is not None}
