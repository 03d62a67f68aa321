"""What ONNX Runtime's own Python makes of a model, for tests: of all of it, and of every tensor inside."""

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import save_file

# Of a tensor with more values than WHOLE, so many are kept, evenly spread. What transfer learning takes is kept whole.
WHOLE, SPREAD = 4096, 512


def run(model: pathlib.Path | bytes, inputs: np.ndarray) -> list[dict[str, np.ndarray]]:
    """The outputs for each input alone: some graphs are fixed to a batch of one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name, names = session.get_inputs()[0].name, [output.name for output in session.get_outputs()]
    return [dict(zip(names, session.run(names, {name: value[None]}))) for value in inputs]


def outputs(path: pathlib.Path, inputs: np.ndarray) -> None:
    """Writes `NAME.golden.safetensors`: `input`, and the output for each as `output`."""
    found = np.concatenate([next(iter(row.values())) for row in run(path, inputs)])
    tensors = {"input": inputs, "output": found.reshape(len(inputs), *found.shape[1:])}
    save_file(tensors, path.with_suffix(".golden.safetensors"))


def inside(graph: onnx.GraphProto) -> list[str]:
    """The tensors that nodes make of the input, by way of others or not."""
    weights = {tensor.name for tensor in graph.initializer}
    ports = [port.name for port in graph.input if port.name not in weights]
    found = dict.fromkeys(ports)
    for node in graph.node:
        if any(name in found for name in node.input):
            found.update(dict.fromkeys(filter(None, node.output)))
    return [name for name in found if name not in ports]


def kept(value: np.ndarray) -> np.ndarray:
    """The largest and the mean magnitude of a tensor, and behind them its values, or those that are kept."""
    flat = value.ravel()
    count = flat.size if flat.size <= WHOLE else SPREAD
    # From the first to the last: no multiple of a plane or a row apart, so that all channels, rows and columns occur.
    places = np.arange(count) * (flat.size - 1) // max(count - 1, 1)
    magnitudes = np.abs(flat.astype(np.float64))
    return np.concatenate([[magnitudes.max(), magnitudes.mean()], flat[places]]).astype(np.float32)


def layers(path: pathlib.Path, inputs: np.ndarray) -> None:
    """Writes `NAME.layers.safetensors`: by the name of each tensor of f32 inside what is kept of it for each input, and
    as metadata its shape without the batch.

    All are outputs of the one whole model, so that Python computes no two nodes as one: that must not matter.
    """
    model = onnx.load(path)
    names = inside(model.graph)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    rows = run(model.SerializeToString(), inputs)
    floats = [name for name in names if rows[0][name].dtype == np.float32]
    tensors = {name: np.stack([kept(row[name]) for row in rows]) for name in floats}
    shapes = {name: json.dumps(rows[0][name].shape[1:]) for name in floats}
    save_file(tensors, path.with_suffix(".layers.safetensors"), shapes)
