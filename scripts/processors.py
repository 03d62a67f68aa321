"""How far a model's outputs on an older processor are from those on this one: max|a-b| / max|b|, the measure of law 1.

qemu emulates the older ones, by Debian's qemu-user. A softmax at the end is left out: of one large value it makes 1 on any
processor, whatever stands before it. Models are those of `scripts/models.sh`. An Engine that differs in its
processor alone agrees, on the strength of these figures. Usage: processors.py [MODEL...]; minutes for the large ones.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

MODELS = pathlib.Path(__file__).parent.parent / ".cache/models"
# SSE 4.2, and AVX2 with FMA.
PROCESSORS = ("Nehalem", "Haswell")
TOLERANCE = 1e-5
RUN = """
import sys
sys.path[:0] = {path!r}
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 3
session = onnxruntime.InferenceSession({model!r}, options, ["CPUExecutionProvider"])
wanted = session.get_inputs()[0]
shape = [extent if isinstance(extent, int) else 1 for extent in wanted.shape]
noise = numpy.random.default_rng(1).standard_normal(shape, dtype=numpy.float32)
numpy.savez({out!r}, *session.run(None, {{wanted.name: noise}}))
"""


def without_softmax(model: pathlib.Path, folder: str) -> pathlib.Path:
    """The model up to a softmax at its end, if it has one."""
    loaded = onnx.load(model)
    made = {name: node for node in loaded.graph.node for name in node.output}
    for output in loaded.graph.output:
        while (node := made[output.name]).op_type in ("Softmax", "Reshape", "Identity"):
            output.CopyFrom(onnx.ValueInfoProto(name=node.input[0]))
    cut = pathlib.Path(folder) / "cut.onnx"
    onnx.save(loaded, cut)
    return cut


def outputs(model: pathlib.Path, folder: str, *emulator: str) -> list[np.ndarray]:
    """What a model makes of noise, by Python itself or by one that is emulated."""
    out = f"{folder}/out.npz"
    code = RUN.format(path=[path for path in sys.path if path], model=str(model), out=out)
    python = pathlib.Path(sys.executable).resolve()
    # qemu says of what it cannot emulate, on every start; nothing here is of that.
    ended = subprocess.run([*emulator, python, "-c", code], stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        raise SystemExit(ended.stderr)
    with np.load(out) as found:
        return [found[name] for name in found.files]


def main() -> None:
    names = sys.argv[1:] or sorted(path.stem for path in MODELS.glob("*.onnx"))
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model = without_softmax(MODELS / f"{name}.onnx", folder)
            here = outputs(model, folder)
            for processor in PROCESSORS:
                there = outputs(model, folder, "qemu-x86_64", "-cpu", processor)
                far = max(float(abs(a - b).max() / abs(b).max()) for a, b in zip(there, here))
                print(f"{name} on {processor}: {far:.1e}", flush=True)
                worst = max(worst, far)
    if not worst <= TOLERANCE:
        raise SystemExit(f"{worst:.1e} found, expected {TOLERANCE:.0e} at most")


if __name__ == "__main__":
    main()
