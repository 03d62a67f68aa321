"""Writes the golden values: photos for tests, and the results of Pillow, PyTorch, torchvision and a model for them."""

import pathlib

from golden_cases import decoding, fixtures, grayscale, models, random_steps, resizing, tensors
from golden_cases.store import Store

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> None:
    store = Store(fixtures.write(ROOT / "testkit/fixtures/photos"))
    for part in decoding, resizing, tensors, random_steps, grayscale:
        part.add(store)
    golden = ROOT / "pushdown/tests/golden"
    store.write(golden)
    random_steps.write_draws(golden / "draws.safetensors")
    models.write(store, golden / "efficientnet_lite0.safetensors")
    size = sum(tensor.nbytes for tensor in store.tensors.values())
    print(f"{len(store.files)} photos, {len(store.cases) + len(store.adjust)} cases, {size} bytes of tensors")


if __name__ == "__main__":
    main()
