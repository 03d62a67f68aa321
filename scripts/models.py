"""Writes the models of the tests, and their outputs in ONNX Runtime's Python. Usage: models.py FOLDER all|test|NAME

A name writes this model only. Otherwise FOLDER/tiny also gets small models with features that the real ones lack, and FOLDER/bad
models that have to be refused: `test` writes what `make test` needs, `all` every model with its outputs.

The architectures are those of the `onnx` wheel, whose weights are constant. Each model gets seeded random weights, scaled so
that values neither vanish nor explode (He et al., 2015). Next to `NAME.onnx` are the outputs for two inputs of noise, and
samples of all inner tensors (`models_golden.py`). EfficientNet-Lite0 has its real weights.
"""

import pathlib
import sys

import efficientnet_lite0
import external_models
import models_golden
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tiny_models import small, tiny

LIGHT = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
MODELS = {
    "alexnet": "bvlc_alexnet",
    "densenet121": "densenet121",
    "inception_v1": "inception_v1",
    "inception_v2": "inception_v2",
    "resnet50": "resnet50",
    "shufflenet": "shufflenet",
    "squeezenet": "squeezenet",
    "vgg19": "vgg19",
}
# The model with real weights.
REAL = "efficientnet_lite0"
# What `make test` needs: these with their golden values, and those as large weights only.
COMPARED = (REAL, "shufflenet", "squeezenet")
UNCOMPARED = ("inception_v1", "inception_v2")


def roles(graph: onnx.GraphProto) -> dict[str, str]:
    """The role of each tensor as a weight of the first node that reads it."""
    found = {}
    for node in graph.node:
        names = {
            "BatchNormalization": ["", "scale", "bias", "bias", "scale"],
            "Conv": ["", "weight", "bias"],
            "Gemm": ["", "weight", "bias"],
            # Caffe's scale layers: a factor and an offset per channel, after an `Unsqueeze`.
            "Mul": ["", "scale"],
            "Add": ["", "bias"],
        }.get(node.op_type, [])
        for name, role in zip(node.input, names):
            found.setdefault(name, role)
    for node in graph.node:
        if node.op_type == "Unsqueeze" and node.output[0] in found:
            found.setdefault(node.input[0], found[node.output[0]])
    return found


def seeded(path: pathlib.Path, seed: int) -> onnx.ModelProto:
    """The model with random weights in place of constant ones."""
    model, random = onnx.load(path), np.random.default_rng(seed)
    graph = model.graph
    role, shapes = roles(graph), {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        name, shape = node.output[0], tuple(int(extent) for extent in shapes[node.input[0]])
        if role.get(name) == "weight":
            values = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        elif role.get(name) == "scale":
            values = random.uniform(0.5, 1.5, shape)
        else:
            values = random.standard_normal(shape) * 0.1
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    del graph.node[:]
    graph.node.extend(kept)
    return model


def bad() -> dict[str, onnx.ModelProto]:
    """Models that a gateway must refuse, by their fault."""
    node = helper.make_node
    numbers = lambda values: numpy_helper.from_array(np.array(values, np.float32), "w")
    external = numbers([1.0] * 4)
    external.ClearField("raw_data")
    external.data_location = TensorProto.EXTERNAL
    external.external_data.add(key="location", value="../../etc/passwd")
    add = [node("Add", ["x", "w"], ["y"])]
    indices = numpy_helper.from_array(np.arange(4), "places")
    sparse = node("Constant", [], ["w"], sparse_value=helper.make_sparse_tensor(external, indices, [4]))
    # An eighth of the values of its shape.
    short = numbers([1.0] * 2048)
    short.dims[:] = [4, 4096]
    return {
        "batch_axis_lost": tiny([node("ReduceSum", ["x"], ["y"], keepdims=0)]),
        "custom_operator": tiny([node("Magic", ["x"], ["y"], domain="acme")], domains=[("acme", 1)]),
        "external_weights": tiny(add, weights=[external]),
        "nan_weights": tiny(add, weights=[numbers([1, np.nan, 1, 1])]),
        "not_made": tiny([node("Add", ["x", "nowhere"], ["y"])]),
        "random_operator": tiny([node("RandomNormalLike", ["x"], ["y"])]),
        "shapes_that_do_not_fit": tiny(add, weights=[numbers([1.0] * 3)]),
        "size_unknown": tiny(add, [("x", [None, None])], [numbers([1.0] * 4)]),
        "sparse_elsewhere": tiny([sparse, *add]),
        "training": tiny(
            [node("Dropout", ["x", "", "t"], ["y"])], weights=[numpy_helper.from_array(np.array(True), "t")]
        ),
        "two_inputs": tiny([node("Add", ["x", "z"], ["y"])], [("x", [None, 4]), ("z", [None, 4])]),
        "weights_too_short": tiny([node("MatMul", ["x", "w"], ["y"])], weights=[short]),
    }


def noise(seed: int, shape: list[int]) -> np.ndarray:
    """Two inputs of noise."""
    return np.random.default_rng(100 + seed).standard_normal((2, *shape)).astype(np.float32)


def write(folder: pathlib.Path, seed: int, name: str) -> pathlib.Path:
    """Writes a model, unless it exists, and returns its path."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        print(f"models: {name}", flush=True)
        if name == REAL:
            efficientnet_lite0.main(folder)
        else:
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_bytes(seeded(LIGHT / f"light_{MODELS[name]}.onnx", seed).SerializeToString())
            unfinished.rename(path)
    return path


def write_golden(path: pathlib.Path, seed: int) -> None:
    """Writes the golden values of a model, unless they exist."""
    inputs = noise(seed, [3, 224, 224])
    if not path.with_suffix(".golden.safetensors").exists():
        print(f"models: outputs of {path.stem}", flush=True)
        models_golden.outputs(path, inputs)
    if not path.with_suffix(".layers.safetensors").exists():
        print(f"models: inner tensors of {path.stem}", flush=True)
        models_golden.layers(path, inputs)


def make_small(folder: pathlib.Path) -> None:
    """Writes the small models, and their golden values."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, model) in enumerate(small().items()):
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        run_small(path, seed)
    for seed, name in enumerate(external_models.write(folder)):
        run_small(folder / f"{name}.onnx", 50 + seed)


def run_small(path: pathlib.Path, seed: int) -> None:
    """Writes the golden values of a model for a small input and a large one."""
    model = onnx.load(path, load_external_data=False)
    shape = [extent.dim_value for extent in model.graph.input[0].type.tensor_type.shape.dim[1:]]
    scales = np.array([0.1, 10], np.float32).reshape(2, *[1] * len(shape))
    inputs = noise(seed, shape) * scales
    models_golden.outputs(path, inputs)
    models_golden.layers(path, inputs)


def make_bad(folder: pathlib.Path) -> None:
    """Writes the models that have to be refused."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in bad().items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    (folder / "garbage.onnx").write_bytes(b"\x08\x07not a model")
    (folder / "empty.onnx").write_bytes(b"")


def main() -> None:
    folder, selection = pathlib.Path(sys.argv[1]), sys.argv[2]
    names = [*MODELS, REAL]
    if selection not in ("all", "test", *names):
        sys.exit(f"models: unknown model {selection}: expected all, test or one of {', '.join(names)}")
    if selection in ("all", "test"):
        make_small(folder / "tiny")
        make_bad(folder / "bad")
    for seed, name in enumerate(names):
        if selection in ("all", name) or (selection == "test" and name in COMPARED + UNCOMPARED):
            path = write(folder, seed, name)
            if selection != "test" or name in COMPARED:
                write_golden(path, seed)


if __name__ == "__main__":
    main()
