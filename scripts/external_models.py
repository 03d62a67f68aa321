"""Small models with weights in external files, each written with other options of onnx. `models.py` writes their golden values."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tiny_models import constants, falling, node, photo, port, scaled, tiny


def digits() -> onnx.ModelProto:
    """The usual first example: two convolutions of a grey image of 28 x 28 pixels, and ten scores."""
    random, nodes, weights = np.random.default_rng(11), [], []
    channels = [1, 8, 16]
    for layer, (before, after) in enumerate(zip(channels, channels[1:])):
        kernels = scaled(random, 9 * before, after).T.reshape(after, before, 3, 3)
        weights.append(numpy_helper.from_array(kernels, f"conv{layer}.weight"))
        weights.append(numpy_helper.from_array(random.standard_normal(after).astype(np.float32), f"conv{layer}.bias"))
        inputs = [f"pooled{layer - 1}" if layer else "x", f"conv{layer}.weight", f"conv{layer}.bias"]
        nodes.append(node("Conv", inputs, [f"convolved{layer}"], pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [f"convolved{layer}"], [f"rectified{layer}"]))
        nodes.append(node("MaxPool", [f"rectified{layer}"], [f"pooled{layer}"], kernel_shape=[2, 2], strides=[2, 2]))
    weights.append(numpy_helper.from_array(scaled(random, 16 * 7 * 7, 10), "scores.weight"))
    # As PyTorch exports `x.view(-1, 784)`.
    weights.append(numpy_helper.from_array(np.array([-1, 784], np.int64), "flat.shape"))
    nodes.append(node("Reshape", ["pooled1", "flat.shape"], ["flat"]))
    nodes.append(node("Gemm", ["flat", "scores.weight"], ["y"]))
    return tiny(nodes, photo(channels=1, side=28), weights)


def in_a_loop() -> onnx.ModelProto:
    """A weight in the graph of a node, and one in the outer graph."""
    random = np.random.default_rng(12)
    turn = helper.make_graph(
        [
            node("Identity", ["again"], ["and_again"]),
            node("MatMul", ["grown", "inner"], ["grown_on"]),
        ],
        "turn",
        [port("index", TensorProto.INT64, []), port("again", TensorProto.BOOL, []), port("grown")],
        [port("and_again", TensorProto.BOOL, []), port("grown_on")],
        [numpy_helper.from_array(scaled(random, 48, 48), "inner")],
    )
    turns = numpy_helper.from_array(np.array(3, np.int64), "turns")
    outer = numpy_helper.from_array(scaled(random, 48, 24), "outer")
    nodes = [
        node("Flatten", ["x"], ["flat"]),
        node("Loop", ["turns", "", "flat"], ["looped"], body=turn),
        node("MatMul", ["looped", "outer"], ["y"]),
    ]
    return tiny(nodes, photo(), [turns, outer])


def in_files_of_their_own(name: str) -> onnx.ModelProto:
    """Six layers, each with its weights in its own file, named like the weights."""
    model = falling(layers=6)
    names = {weight.name: f"{name}.onnx.{weight.name}" for weight in model.graph.initializer}
    for weight in model.graph.initializer:
        weight.name = names[weight.name]
    for layer in model.graph.node:
        layer.input[:] = [names.get(tensor, tensor) for tensor in layer.input]
    return model


def write(folder: pathlib.Path) -> list[str]:
    """Writes the models and their files. Returns the names."""
    models = {
        # Like `torch.onnx.export`: one file, and small tensors stay in the model.
        "external": (digits(), {"size_threshold": 1024}),
        # Also shapes and constant nodes.
        "external_constants": (constants(), {"size_threshold": 0, "convert_attribute": True}),
        "external_each": (in_files_of_their_own("external_each"), {"size_threshold": 0, "all_tensors_to_one_file": False}),
        "external_inner": (in_a_loop(), {"size_threshold": 0}),
    }
    for name, (model, options) in models.items():
        for old in folder.glob(f"{name}.onnx*"):
            # onnx appends to existing files.
            old.unlink()
        options = {"all_tensors_to_one_file": True, **options}
        if options["all_tensors_to_one_file"]:
            options["location"] = f"{name}.onnx.data"
        onnx.save_model(model, folder / f"{name}.onnx", save_as_external_data=True, **options)
    # The same model with embedded weights.
    (folder / "digits.onnx").write_bytes(digits().SerializeToString())
    return [*models, "digits"]
