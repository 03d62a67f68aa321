"""Compares a model's outputs on an older processor with those on this one: max|a-b| / max|b|, the measure of law 1.

Debian's qemu-user emulates the older processors. A softmax at the end is left out: it turns one large value into 1 on any
processor and hides differences. The models are those of `scripts/models.sh`. These figures justify that engines which differ
only in the processor count as compatible. Usage: processors.py [MODEL...]; takes minutes for large models.
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
port = session.get_inputs()[0]
shape = [extent if isinstance(extent, int) else 1 for extent in port.shape]
noise = numpy.random.default_rng(1).standard_normal(shape, dtype=numpy.float32)
numpy.savez({out!r}, *session.run(None, {{port.name: noise}}))
"""


def without_softmax(model: pathlib.Path, folder: str) -> pathlib.Path:
    """The model without a softmax at its end."""
    loaded = onnx.load(model)
    producers = {name: node for node in loaded.graph.node for name in node.output}
    for output in loaded.graph.output:
        while (node := producers[output.name]).op_type in ("Softmax", "Reshape", "Identity"):
            output.CopyFrom(onnx.ValueInfoProto(name=node.input[0]))
    cut = pathlib.Path(folder) / "cut.onnx"
    onnx.save(loaded, cut)
    return cut


def outputs(model: pathlib.Path, folder: str, *emulator: str) -> list[np.ndarray]:
    """A model's outputs for noise, from this Python or an emulated one."""
    out = f"{folder}/out.npz"
    code = RUN.format(path=[path for path in sys.path if path], model=str(model), out=out)
    python = pathlib.Path(sys.executable).resolve()
    # qemu warns about unsupported features at every start; none of them matters.
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
            native = outputs(model, folder)
            for processor in PROCESSORS:
                emulated = outputs(model, folder, "qemu-x86_64", "-cpu", processor)
                error = max(float(abs(a - b).max() / abs(b).max()) for a, b in zip(emulated, native))
                print(f"{name} on {processor}: {error:.1e}", flush=True)
                worst = max(worst, error)
    if not worst <= TOLERANCE:
        raise SystemExit(f"outputs differ: expected at most {TOLERANCE:.0e}, found {worst:.1e}")


if __name__ == "__main__":
    main()
