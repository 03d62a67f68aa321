"""ONNX Runtime's library from its wheel, so that `pip install 'pushdown-client[models]'` is all that models need."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

__all__ = ["provide_onnx_runtime"]


def provide_onnx_runtime() -> None:
    """Sets `ORT_DYLIB_PATH` to the library of the installed package `onnxruntime`, unless it is set. Imports nothing."""
    if "ORT_DYLIB_PATH" in os.environ:
        return
    package = find_spec("onnxruntime")
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        for library in sorted(Path(folder, "capi").glob("libonnxruntime.so*")):
            os.environ["ORT_DYLIB_PATH"] = str(library)
            return
