"""Golden values of a model from ONNX Runtime's Python: its outputs, and samples of every inner tensor."""

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import save_file

# A tensor of up to MAX_WHOLE values is stored whole, which includes the features of transfer learning. Of a larger one
# SAMPLES evenly spread values are stored.
MAX_WHOLE, SAMPLES = 4096, 512


def run(model: pathlib.Path | bytes, inputs: np.ndarray) -> list[dict[str, np.ndarray]]:
    """The outputs for each input on its own: some graphs have a fixed batch of one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name, names = session.get_inputs()[0].name, [output.name for output in session.get_outputs()]
    return [dict(zip(names, session.run(names, {name: value[None]}))) for value in inputs]


def outputs(path: pathlib.Path, inputs: np.ndarray) -> None:
    """Writes `NAME.golden.safetensors` with `input`, and the outputs for it as `output`."""
    found = np.concatenate([next(iter(row.values())) for row in run(path, inputs)])
    tensors = {"input": inputs, "output": found.reshape(len(inputs), *found.shape[1:])}
    save_file(tensors, path.with_suffix(".golden.safetensors"))


def inside(graph: onnx.GraphProto) -> list[str]:
    """The tensors that nodes compute from the input, directly or indirectly."""
    weights = {tensor.name for tensor in graph.initializer}
    ports = [port.name for port in graph.input if port.name not in weights]
    found = dict.fromkeys(ports)
    for node in graph.node:
        if any(name in found for name in node.input):
            found.update(dict.fromkeys(filter(None, node.output)))
    return [name for name in found if name not in ports]


def sampled(value: np.ndarray) -> np.ndarray:
    """The largest and the mean magnitude of a tensor, followed by its stored values."""
    flat = value.ravel()
    count = flat.size if flat.size <= MAX_WHOLE else SAMPLES
    # From the first to the last value. The distance is no multiple of a plane or a row, so all channels, rows and columns occur.
    indices = np.arange(count) * (flat.size - 1) // max(count - 1, 1)
    magnitudes = np.abs(flat.astype(np.float64))
    return np.concatenate([[magnitudes.max(), magnitudes.mean()], flat[indices]]).astype(np.float32)


def layers(path: pathlib.Path, inputs: np.ndarray) -> None:
    """Writes `NAME.layers.safetensors`: the stored values of each inner f32 tensor for each input, by name, with the shapes
    without the batch as metadata.

    All tensors are outputs of one model, so Python fuses no nodes. Fusion must not matter.
    """
    model = onnx.load(path)
    names = inside(model.graph)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    rows = run(model.SerializeToString(), inputs)
    floats = [name for name in names if rows[0][name].dtype == np.float32]
    tensors = {name: np.stack([sampled(row[name]) for row in rows]) for name in floats}
    shapes = {name: json.dumps(rows[0][name].shape[1:]) for name in floats}
    save_file(tensors, path.with_suffix(".layers.safetensors"), shapes)
