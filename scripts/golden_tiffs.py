"""Makes testkit/fixtures/tiffs: small TIFFs of every kind that `decode` reads, and what Pillow makes of them.

`pushdown/tests/golden/tiffs.json` has shape and digest of the pixels of each. Files that Pillow does not read, or reads in
another way (docs/SEMANTICS.md names them), expect what their samples are, computed here.
"""

import hashlib
import json
import pathlib

from golden_tiffs_cases import colours, layouts, writers
from golden_tiffs_cases.store import Store

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ROOT / "testkit/fixtures/tiffs"
README = """# TIFFs

Made by `scripts/golden_tiffs.py` from one picture that it computes; each file's name says what is special about it.
Those that begin with `field_` are from bug reports, and stay as they are.
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
