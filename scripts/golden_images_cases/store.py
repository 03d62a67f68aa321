"""Collects files and Pillow's results for them."""

import hashlib
import io
import json
import pathlib

import numpy as np
from PIL import Image, ImageOps

README = """# Images

Written by `scripts/golden_images.py` from a computed picture; the name of a file names its special feature. Files that begin
with `field_` are from bug reports, and never change. `pushdown/tests/golden/images.json` has Pillow's result for each.
"""


class Store:
    """The files by name, and a case for each pipeline."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cases: list[dict] = []

    def add_other(self, name: str, file: bytes, pixels: np.ndarray | None) -> None:
        """A file that is decoded differently from Pillow, as docs/SEMANTICS.md documents: to `pixels`, or refused."""
        assert name not in self.files, name
        self.files[name] = file
        self.cases.append({"input": name, "pipeline": "decode", **self._check(pixels)})

    def add(self, name: str, file: bytes, is_upright: bool = False, is_read: bool | None = None) -> None:
        """Expects Pillow's pixels from `decode`; with `is_upright`, those of `exif_transpose` from `decode(orient=exif)`.

        `is_read` states whether Pillow reads the file, and detects a version that behaves differently.
        """
        assert name not in self.files, name
        self.files[name] = file
        self._expect(name, "decode", lambda image: image, is_read)
        if is_upright:
            self._expect(name, "decode(orient=exif)", ImageOps.exif_transpose, is_read)

    def _expect(self, name: str, pipeline: str, transform, is_read: bool | None) -> None:
        pixels = None
        try:
            pixels = np.asarray(transform(Image.open(io.BytesIO(self.files[name]))).convert("RGB"))
        except (OSError, SyntaxError, ValueError) as error:
            assert is_read is not True, f"Pillow refuses {name}: {error}"
        assert pixels is None or is_read is not False, f"Pillow reads {name}"
        self.cases.append({"input": name, "pipeline": pipeline, **self._check(pixels)})

    def _check(self, pixels: np.ndarray | None) -> dict:
        if pixels is None:
            return {"error": "undecodable"}
        height, width, _ = pixels.shape
        return {"width": width, "height": height, "sha256": hashlib.sha256(pixels.tobytes()).hexdigest()}

    def write(self, folder: pathlib.Path, golden: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, file in self.files.items():
            (folder / name).write_bytes(file)
        (folder / "README.md").write_text(README)
        # One case per line, for readable diffs.
        golden.write_text("[\n" + ",\n".join("  " + json.dumps(case) for case in self.cases) + "\n]\n")
