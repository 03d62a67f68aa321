"""Writes testkit/fixtures/tiffs: small TIFFs of every kind that `decode` reads, and Pillow's results for them.

`pushdown/tests/golden/tiffs.json` has shape and digest of the pixels of each. For files that Pillow does not read, or reads
differently (docs/SEMANTICS.md lists them), this script computes the expected pixels from the samples.
"""

import hashlib
import json
import pathlib

from golden_tiffs_cases import colours, layouts, writers
from golden_tiffs_cases.store import Store

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ROOT / "testkit/fixtures/tiffs"
README = """# TIFFs

Written by `scripts/golden_tiffs.py` from a computed picture; the name of a file names its special feature. Files that begin
with `field_` are from bug reports, and never change.
"""


def main() -> None:
    store = Store()
    for part in layouts, colours, writers:
        part.add(store)
    for old in FILES.glob("*.tif"):
        old.unlink()
    for name, file in store.files.items():
        (FILES / f"{name}.tif").write_bytes(file)
    (FILES / "README.md").write_text(README)
    lines = []
    for name, pixels in sorted(store.expected.items()):
        height, width, _ = pixels.shape
        case = {"file": f"{name}.tif", "width": width, "height": height, "sha256": hashlib.sha256(pixels.tobytes()).hexdigest()}
        lines.append("  " + json.dumps(case))
    (ROOT / "pushdown/tests/golden/tiffs.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    size = sum(len(file) for file in store.files.values())
    print(f"{len(store.files)} TIFFs of {size} bytes")


if __name__ == "__main__":
    main()
