"""Contents of small objects and members as Python values."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

__all__ = ["KINDS", "MAX_INTEGER", "MIN_INTEGER", "Kind", "invalid_content", "parse_content"]

Kind: TypeAlias = Literal["bytes", "int", "json", "text"]
KINDS: tuple[Kind, ...] = ("bytes", "int", "json", "text")

MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
_SHOWN_BYTES = 40


def parse_content(kind: str, data: bytes) -> Any:
    """`data` as "bytes"; as "text" in UTF-8; as a value of "json"; or as an "int" of 64 bits in decimal digits. Raises `ValueError`."""
    match kind:
        case "int":
            number = int(data)
            if not MIN_INTEGER <= number <= MAX_INTEGER:
                raise ValueError("it has more than 64 bits")
            return number
        case "json":
            try:
                return json.loads(data)
            except RecursionError as error:
                raise ValueError("it is nested too deep") from error
        case "text":
            return data.decode()
    return data


def invalid_content(expected: str, name: str, data: bytes) -> str:
    """What is wrong with the content of the object or member `name`."""
    return f"expected {expected} in `{name}`, found {data[:_SHOWN_BYTES].decode(errors='replace')!r}"
