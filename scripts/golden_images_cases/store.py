"""Collects files and what Pillow makes of them."""

import hashlib
import io
import json
import pathlib

import numpy as np
from PIL import Image, ImageOps

README = """# Images

Made by `scripts/golden_images.py` from a picture that it computes; each file's name says what is special about it. Those that
begin with `field_` are from bug reports, and stay as they are.
`pushdown/tests/golden/images.json` says what Pillow makes of each.
"""


class Store:
    """The files by name, and a case for each pipeline."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cases: list[dict] = []

    def add_other(self, name: str, file: bytes, pixels: np.ndarray | None) -> None:
        """A file of which docs/SEMANTICS.md says that it is read otherwise than by Pillow: to `pixels`, or not at all."""
        assert name not in self.files, name
        self.files[name] = file
        self.cases.append({"input": name, "pipeline": "decode", **self._check(pixels)})

    def add(self, name: str, file: bytes, is_upright: bool = False, is_read: bool | None = None) -> None:
        """Expects of `decode` what Pillow gives; with `is_upright`, of `decode(orient=exif)` what `exif_transpose` gives.

        `is_read` says whether Pillow has to read the file: a version that does otherwise is noticed here.
        """
        assert name not in self.files, name
        self.files[name] = file
        self._expect(name, "decode", lambda image: image, is_read)
        if is_upright:
            self._expect(name, "decode(orient=exif)", ImageOps.exif_transpose, is_read)

    def _expect(self, name: str, pipeline: str, turn, is_read: bool | None) -> None:
        pixels = None
        try:
            pixels = np.asarray(turn(Image.open(io.BytesIO(self.files[name]))).convert("RGB"))
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
        # One case a line, so that a change shows as one.
        golden.write_text("[\n" + ",\n".join("  " + json.dumps(case) for case in self.cases) + "\n]\n")
