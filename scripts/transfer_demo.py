"""Transfer learning on real photos over a slow and over a fast link. Usage: transfer_demo.py

SeaweedFS stores the solar cells of `photos.sh elpv`, the gateway runs next to it, and the example `transfer-learning` trains on
the other side of the link. As root the link between them is shaped; otherwise it is open. Prints one table; FULL=1 prints whole
reports, of all photos and ten augmented epochs. Leaves nothing behind.
"""

import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable

import links
from programs import ROOT, columns, run
from stack import BUCKET, MODELS, RUNTIME, Stack

PHOTOS = ROOT / ".cache/photos/elpv"
MODEL = "efficientnet_lite0"
FULL = os.environ.get("FULL") == "1"
SIZE = ["--epochs", "10"] if FULL else ["--samples", "400", "--epochs", "0"]
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


def rows(link: str, report: str) -> list[tuple[str, ...]]:
    """The cells of one row per read method, from the report of a link."""
    methods = {"plain": "plain GETs", "pushed": "pushed down", "auto": "as planned"}
    return [
        (
            link,
            methods[line["method"]],
            f"{line['received_bytes'] / 1e6:.1f} MB",
            f"{line['seconds']:.1f} s",
            f"{line['cpu_seconds']:.1f} s",
            f"{line['balanced_accuracy']:.3f}",
        )
        for line in json.loads(report)["parts"][0]["lines"]
    ]


def compare(stack: Stack, links: dict[str, float | None], shape: Callable[[float], None]) -> None:
    """Trains over each link, given by bits per second or open, and prints what it took."""
    print("demo: features of EfficientNet-Lite0 for 400 photos of solar cells, and a head that finds the defective ones\n", flush=True)
    lines = [("link", "read by", "received", "time", "host CPU", "accuracy")]
    for name, bandwidth in links.items():
        if bandwidth:
            shape(bandwidth)
        lines += rows(name, transfer(stack, *SIZE, "--methods", "plain,pushed,auto", "--json"))
    print(columns(lines))
    print("\nOver a slow link the layers run next to the store and features travel; over a fast one the planner reads photos.")
    print("The accuracy is the same, wherever a layer runs. FULL=1 shows all photos, augmented epochs, and the plans.")


def main() -> None:
    for file in (PHOTOS / "labels.csv", MODELS / f"{MODEL}.onnx", RUNTIME):
        if not file.exists():
            sys.exit(f"demo: {file} is missing: `make demo` fetches it")
    with links.create() as link, tempfile.TemporaryDirectory(prefix="pushdown-demo-") as folder:
        stack = None
        try:
            stack = Stack(pathlib.Path(folder), link, [MODEL])
            names = [line.split(",")[0] for line in (PHOTOS / "labels.csv").read_text().splitlines()]
            stack.upload({f"photos/{name}": PHOTOS / "images" / name for name in names})
            speeds: dict[str, float | None] = {"not limited": None}
            if link.can_be_shaped:
                bandwidth = crossover(stack)
                speeds = {f"{bandwidth * factor / 1e6:.1f} Mbit/s": bandwidth * factor for factor in (BELOW, ABOVE)}
            else:
                print(f"demo: the link is not shaped: {link.reason}", flush=True)
            if not FULL:
                compare(stack, speeds, link.shape)
                return
            print(f"demo: gateway at {stack.gateway} next to SeaweedFS, one core on each side; {len(names)} labelled photos")
            for name, bandwidth in speeds.items():
                if bandwidth:
                    link.shape(bandwidth)
                print(f"\ndemo: link: {name}\n", flush=True)
                print(transfer(stack, *SIZE), flush=True)
        finally:
            if stack:
                stack.stop()


if __name__ == "__main__":
    run(main)
