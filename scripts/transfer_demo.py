"""Transfer learning on real photos over a thin and over a wide link: transfer_demo.py.

SeaweedFS holds the solar cells of `photos.sh elpv`, the gateway stands beside it, and `pushdown demo transfer` trains on
this side of the link. As root the store's side is a network namespace whose link is shaped; otherwise the link is open.
FULL=1 takes all photos and ten augmented epochs. Everything that it starts and writes goes away with it.
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
# Of the link at which plain reading waits for it as long as for the CPU.
BELOW, ABOVE = 1 / 3, 3


def transfer(stack: Stack, *arguments: str) -> str:
    """Runs `pushdown demo transfer` and returns what it prints."""
    labels = ["--labels", PHOTOS / "labels.csv", "--plain-endpoint", stack.store, "--admin", stack.admin]
    return stack.pushdown("demo", "transfer", f"s3://{BUCKET}/photos/", *labels, *arguments)


def crossover(stack: Stack) -> float:
    """Bits per second at which plain reading with one core waits for the link as long as for the CPU."""
    # As many that loading the model hardly counts.
    some = ["--samples", "400", "--epochs", "0", "--ways", "plain", "--json"]
    (line,) = json.loads(transfer(stack, *some))["parts"][0]["lines"]
    return line["stored_bytes"] * 8 / line["cpu_seconds"]


def main() -> None:
    for file in (PHOTOS / "labels.csv", MODELS / f"{MODEL}.onnx", RUNTIME):
        if not file.exists():
            sys.exit(f"demo: {file} is missing: make demo fetches it")
    with links.links() as link, tempfile.TemporaryDirectory(prefix="pushdown-demo-") as folder:
        stack = None
        try:
            stack = Stack(pathlib.Path(folder), link, [MODEL])
            print(f"demo: transfer learning; gateway at {stack.gateway} beside SeaweedFS, one core on each side", flush=True)
            names = [line.split(",")[0] for line in (PHOTOS / "labels.csv").read_text().splitlines()]
            stack.upload({f"photos/{name}": PHOTOS / "images" / name for name in names})
            print(f"demo: {len(names)} labelled photos are stored", flush=True)
            if not link.can_be_shaped:
                print(f"demo: the link is not shaped: {link.reason}\n", flush=True)
                print(transfer(stack, *SIZE), flush=True)
                return
            even = crossover(stack)
            print(f"demo: at {even / 1e6:.1f} Mbit/s plain reading waits for the link as long as for the CPU", flush=True)
            for name, factor in (("below", BELOW), ("above", ABOVE)):
                link.shape(even * factor)
                print(f"\ndemo: a link of {even * factor / 1e6:.1f} Mbit/s, {name} that\n", flush=True)
                print(transfer(stack, *SIZE), flush=True)
        finally:
            if stack:
                stack.stop()


if __name__ == "__main__":
    run(main)
