"""Collects and writes the golden cases and their expected values."""

import hashlib
import json
import pathlib

import numpy as np
from safetensors.numpy import save

# Larger exact values are stored as a digest.
LARGEST_EXACT = 20_000


class Store:
    """The golden cases. Inputs are names of fixtures, expected values are tensors or digests."""

    def __init__(self, files: dict[str, bytes]):
        self.files = files
        self.cases: list[dict] = []
        self.adjust: list[dict] = []
        self.tensors: dict[str, np.ndarray] = {}
        self._known: dict[tuple, str] = {}

    def tensor(self, name: str, value: np.ndarray) -> str:
        """Stores `value` once for all cases that expect it. Returns its name."""
        value = np.ascontiguousarray(value)
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._known:
            self.tensors[name] = value
        return self._known.setdefault(key, name)

    def expect(self, source: str, pipeline: str, value: np.ndarray, max_abs: float = 0) -> None:
        """`pipeline` on the file `source` returns `value`, with each element within `max_abs`."""
        name = f"{source}: {pipeline}"
        value = np.ascontiguousarray(value)
        if max_abs == 0 and value.nbytes > LARGEST_EXACT:
            check = {"sha256": hashlib.sha256(value.tobytes()).hexdigest(), "shape": list(value.shape)}
        else:
            check = {"tensor": self.tensor(name, value), "max_abs": max_abs}
        self.cases.append({"name": name, "input": source, "pipeline": pipeline, "check": check})

    def expect_error(self, source: str, pipeline: str) -> None:
        """Pillow refuses the file, and so must the pipeline."""
        name = f"{source}: {pipeline}"
        self.cases.append({"name": name, "input": source, "pipeline": pipeline, "check": {"error": "undecodable"}})

    def expect_adjusted(self, source: str, operation: str, factor: float, value: np.ndarray, max_abs: float) -> None:
        """One adjustment of `color_jitter` by a fixed factor."""
        tensor = self.tensor(f"adjust_{operation}_{factor}", value)
        self.adjust.append(
            {"input": source, "operation": operation, "factor": factor, "tensor": tensor, "max_abs": max_abs}
        )

    def write(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # One case per line, for readable diffs.
        lists = {"cases": self.cases, "adjust": self.adjust}
        parts = [
            f'"{key}": [\n' + ",\n".join("  " + json.dumps(entry) for entry in entries) + "\n]"
            for key, entries in lists.items()
        ]
        (folder / "cases.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")
        (folder / "expected.safetensors").write_bytes(save(self.tensors))
