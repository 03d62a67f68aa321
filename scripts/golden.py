"""Makes the golden values: photos for tests, and what Pillow, PyTorch, torchvision and a model make of them."""

import pathlib

from golden_cases import augmenting, decoding, fixtures, grayscale, models, resizing, tensors
from golden_cases.store import Store

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> None:
    store = Store(fixtures.write(ROOT / "testkit/fixtures/photos"))
    for part in decoding, resizing, tensors, augmenting, grayscale:
        part.add(store)
    golden = ROOT / "pushdown/tests/golden"
    store.write(golden)
    augmenting.write_draws(golden / "draws.safetensors")
    models.write(store, golden / "efficientnet_lite0.safetensors")
    size = sum(tensor.nbytes for tensor in store.tensors.values())
    print(f"{len(store.files)} photos, {len(store.cases) + len(store.adjust)} cases, {size} bytes of tensors")


if __name__ == "__main__":
    main()
