"""Transfer learning on real photos over a slow and over a fast link. Usage: transfer_demo.py

SeaweedFS stores the solar cells of `photos.sh elpv`, the gateway runs next to it, and the example `transfer-learning` trains on
the other side of the link. As root the link between them is shaped; otherwise it is open. FULL=1 uses all photos and ten
augmented epochs. Leaves nothing behind.
"""

import json
import os
import pathlib
import sys
import tempfile

import links
from programs import ROOT, run
from stack import BUCKET, MODELS, RUNTIME, Stack

PHOTOS = ROOT / ".cache/photos/elpv"
MODEL = "efficientnet_lite0"
FULL = os.environ.get("FULL") == "1"
SIZE = ["--epochs", "10"] if FULL else ["--samples", "400", "--epochs", "2"]
# Multiples of the crossover bandwidth.
BELOW, ABOVE = 1 / 3, 3


def transfer(stack: Stack, *arguments: str) -> str:
    """Runs the example `transfer-learning` and returns its output."""
    labels = ["--labels", PHOTOS / "labels.csv", "--plain-endpoint", stack.store, "--admin", stack.admin]
    return stack.run_program("transfer-learning", f"s3://{BUCKET}/photos/", *labels, *arguments)


def crossover(stack: Stack) -> float:
    """The bits per second at which plain reading with one core takes as long on the link as on the CPU."""
    # Enough samples to make the model's loading time negligible.
    some = ["--samples", "400", "--epochs", "0", "--methods", "plain", "--json"]
    (line,) = json.loads(transfer(stack, *some))["parts"][0]["lines"]
    return line["stored_bytes"] * 8 / line["cpu_seconds"]


def main() -> None:
    for file in (PHOTOS / "labels.csv", MODELS / f"{MODEL}.onnx", RUNTIME):
        if not file.exists():
            sys.exit(f"demo: {file} is missing: `make demo` fetches it")
    with links.create() as link, tempfile.TemporaryDirectory(prefix="pushdown-demo-") as folder:
        stack = None
        try:
            stack = Stack(pathlib.Path(folder), link, [MODEL])
            print(f"demo: transfer learning; gateway at {stack.gateway} next to SeaweedFS, one core on each side", flush=True)
            names = [line.split(",")[0] for line in (PHOTOS / "labels.csv").read_text().splitlines()]
            stack.upload({f"photos/{name}": PHOTOS / "images" / name for name in names})
            print(f"demo: {len(names)} labelled photos are stored", flush=True)
            if not link.can_be_shaped:
                print(f"demo: the link is not shaped: {link.reason}\n", flush=True)
                print(transfer(stack, *SIZE), flush=True)
                return
            bandwidth = crossover(stack)
            print(f"demo: the crossover bandwidth is {bandwidth / 1e6:.1f} Mbit/s", flush=True)
            for name, factor in (("below", BELOW), ("above", ABOVE)):
                link.shape(bandwidth * factor)
                print(f"\ndemo: a link of {bandwidth * factor / 1e6:.1f} Mbit/s, {name} the crossover\n", flush=True)
                print(transfer(stack, *SIZE), flush=True)
        finally:
            if stack:
                stack.stop()


if __name__ == "__main__":
    run(main)
