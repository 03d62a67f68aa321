"""Writes testkit/fixtures/images: small files of every form, and with every harmless damage, that `decode` reads like Pillow.

`pushdown/tests/golden/images.json` has Pillow's result for each: the size and the digest of the pixels, or that it refuses
the file. `cjpeg` (Debian's libjpeg-turbo-progs) writes JPEGs of unusual sampling.
"""

import pathlib

from golden_images_cases import bmp, exif, gif, jpeg, png, webp
from golden_images_cases.store import Store

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ROOT / "testkit/fixtures/images"


def main() -> None:
    store = Store()
    for part in bmp, exif, gif, jpeg, png, webp:
        part.add(store)
    for path in sorted(FILES.glob("field_*")):
        store.add(path.name, path.read_bytes(), is_read=True)
    store.write(FILES, ROOT / "pushdown/tests/golden/images.json")
    refused = sum("error" in case for case in store.cases)
    size = sum(len(file) for file in store.files.values())
    print(f"{len(store.files)} files of {size} bytes, {len(store.cases)} cases, {refused} of them refused")


if __name__ == "__main__":
    main()
