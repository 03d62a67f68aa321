"""Names that this package had, and what to write instead."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NoReturn

__all__ = ["refuse"]

_READER = "write pushdown.Reader(..), with the same source and options"
_REMOVED: Mapping[str, str] = {
    "RowIterator": "write pushdown.ReaderIterator",
    "RowReader": f"{_READER}; a prefix is pushdown.Parquet(prefix)",
    "ShardReader": f'{_READER}; a prefix has sampling=pushdown.Sampling(order="shards")',
}


def refuse(name: str) -> NoReturn:
    """Raises the error of a name that the package does not have: `AttributeError`, and `ImportError` in `from pushdown import NAME`."""
    advice = _REMOVED.get(name)
    if advice is None:
        raise AttributeError(f"module 'pushdown' has no attribute '{name}'", name=name)
    message = f"pushdown.{name} is gone: {advice}"
    # The import system asks for the name first, and would replace the text of an AttributeError by its own.
    if sys._getframe(1).f_globals.get("__name__") in ("importlib._bootstrap", "_frozen_importlib"):
        raise ImportError(message, name="pushdown")
    raise AttributeError(message, name=name)
