"""Small models, each with a feature that the real ones lack. `models.py` writes them."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def tiny(nodes, inputs=(("x", [None, 4]),), weights=(), domains=(), sparse=()) -> onnx.ModelProto:
    """A model of a few nodes from `x` to `y`."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "tiny", ports, [output], list(weights), sparse_initializer=list(sparse))
    opsets = [helper.make_opsetid(domain, version) for domain, version in (("", 13), *domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def photo(batch: int | None = None, channels: int = 3, side: int = 4) -> list[tuple]:
    """The one input: a photo of a few pixels, with an open batch axis or a fixed one."""
    return [("x", [batch, channels, side, side])]


def constant(name: str, values, kind=np.float32) -> onnx.NodeProto:
    """A weight as a node."""
    return node("Constant", [], [name], value=numpy_helper.from_array(np.array(values, kind)))


def port(name: str, kind: int = TensorProto.FLOAT, shape=None) -> onnx.ValueInfoProto:
    """An input or output of a graph inside a node."""
    return helper.make_tensor_value_info(name, kind, shape)


def scaled(random: np.random.Generator, *shape: int) -> np.ndarray:
    """A matrix scaled so that values neither vanish nor explode."""
    return (random.standard_normal(shape) * np.sqrt(2 / shape[0])).astype(np.float32)


def constants() -> onnx.ModelProto:
    """Weights and shapes as nodes, and a shape that PyTorch derives from the batch. As data it would prevent cuts between layers."""
    random = np.random.default_rng(7)
    # As PyTorch exports `x.view(x.size(0), -1)`.
    shapes = [
        node("Shape", ["x"], ["x_shape"]),
        constant("first", 0, np.int64),
        node("Gather", ["x_shape", "first"], ["batch"], axis=0),
        node("Constant", [], ["axes"], value_ints=[0]),
        node("Unsqueeze", ["batch", "axes"], ["batch_axis"]),
    ]
    nodes = [
        *shapes,
        constant("kernels", random.standard_normal((4, 3, 3, 3))),
        node("Conv", ["x", "kernels"], ["convolved"], pads=[1, 1, 1, 1]),
        constant("offsets", random.standard_normal(4)),
        node("Constant", [], ["channels"], value_ints=[1, 4, 1, 1]),
        node("Reshape", ["offsets", "channels"], ["offset"]),
        node("Add", ["convolved", "offset"], ["shifted"]),
        node("Relu", ["shifted"], ["rectified"]),
        node("Identity", ["rectified"], ["copy"]),
        node("Dropout", ["copy"], ["kept"]),
        node("Constant", [], ["scale"], value_float=0.5),
        node("Div", ["kept", "scale"], ["scaled"]),
        node("Shape", ["rectified"], ["rectified_shape"]),
        node("Constant", [], ["from"], value_ints=[1]),
        node("Constant", [], ["to"], value_ints=[4]),
        node("Slice", ["rectified_shape", "from", "to"], ["extents"]),
        node("ReduceProd", ["extents"], ["size"], axes=[0], keepdims=1),
        node("Concat", ["batch_axis", "size"], ["flat_shape"], axis=0),
        node("Reshape", ["scaled", "flat_shape"], ["flat"]),
        constant("matrix", random.standard_normal((64, 5))),
        node("Gemm", ["flat", "matrix"], ["scores"]),
        node("Identity", ["scores"], ["scores_copy"]),
        node("Relu", ["scores_copy"], ["y"]),
    ]
    return tiny(nodes, photo())


def batch_mean() -> onnx.ModelProto:
    """In a batch every sample would get the mean of all samples."""
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("ReduceMean", ["a"], ["mean"], axes=[0], keepdims=1),
        node("Sub", ["a", "mean"], ["rest"]),
        node("Sub", ["x", "rest"], ["y"]),
    ]
    return tiny(nodes, photo(batch=1))


def part_of_the_mean(share: np.ndarray, side: int) -> onnx.ModelProto:
    """The same in small: each element gets a share of its mean over the batch."""
    nodes = [
        node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
        node("Mul", ["mean", "share"], ["part"]),
        node("Add", ["x", "part"], ["y"]),
    ]
    return tiny(nodes, photo(batch=1, side=side), [numpy_helper.from_array(share.astype(np.float32), "share")])


def one_mixed() -> onnx.ModelProto:
    """One element depends on the batch, all others only on the sample."""
    share = np.zeros((1, 3, 24, 24))
    share[0, 0, 0, 1] = 1
    return part_of_the_mean(share, side=24)


def branches() -> onnx.ModelProto:
    """In a batch one sample would decide the branch of all."""

    def branch(name: str, nodes) -> onnx.GraphProto:
        return helper.make_graph(nodes, name, [], [port(name)])

    nodes = [
        node("Identity", ["x"], ["copy"]),
        node("Abs", ["copy"], ["a"]),
        node("ReduceMax", ["a"], ["most"], keepdims=0),
        node("Constant", [], ["limit"], value_float=1.5),
        node("Greater", ["most", "limit"], ["large"]),
        node("Identity", ["a"], ["a_copy"]),
        node(
            "If",
            ["large"],
            ["chosen"],
            then_branch=branch("halved", [constant("half", 0.5), node("Mul", ["a_copy", "half"], ["halved"])]),
            else_branch=branch("root", [node("Sqrt", ["a_copy"], ["root"])]),
        ),
        node("Neg", ["chosen"], ["y"]),
    ]
    return tiny(nodes, photo())


def loops() -> onnx.ModelProto:
    """A loop of three iterations, which reads a weight and a tensor of the outer graph, the latter by the name of its copy."""
    turn = helper.make_graph(
        [
            node("Identity", ["again"], ["and_again"]),
            node("Mul", ["grown", "factor"], ["multiplied"]),
            node("Add", ["multiplied", "a_copy"], ["grown_on"]),
        ],
        "turn",
        [port("index", TensorProto.INT64, []), port("again", TensorProto.BOOL, []), port("grown")],
        [port("and_again", TensorProto.BOOL, []), port("grown_on")],
    )
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Identity", ["a"], ["a_copy"]),
        constant("turns", 3, np.int64),
        constant("factor", [[[[0.5]], [[0.25]], [[2.0]]]]),
        node("Loop", ["turns", "", "a"], ["looped"], body=turn),
        node("Neg", ["looped"], ["y"]),
    ]
    return tiny(nodes, photo())


def scans() -> onnx.ModelProto:
    """Sums over the rows of each sample: one iteration per row, for any batch."""
    turn = helper.make_graph(
        [
            node("Mul", ["row", "factor"], ["multiplied"]),
            node("Add", ["so_far", "multiplied"], ["sum"]),
            node("Identity", ["sum"], ["row_sum"]),
        ],
        "turn",
        [port("so_far"), port("row")],
        [port("sum"), port("row_sum")],
    )
    nodes = [
        node("Abs", ["x"], ["a"]),
        constant("factor", 0.5),
        node("ReduceMax", ["a"], ["start"], axes=[2], keepdims=0),
        node(
            "Scan",
            ["start", "a"],
            ["total", "sums"],
            body=turn,
            num_scan_inputs=1,
            scan_input_axes=[2],
            scan_output_axes=[2],
        ),
        node("Neg", ["sums"], ["y"]),
    ]
    return tiny(nodes, photo())


def other_types() -> onnx.ModelProto:
    """All tensors at which the graph can be cut have other types than f32."""
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Cast", ["a"], ["halves"], to=TensorProto.FLOAT16),
        node("Cast", ["halves"], ["singles"], to=TensorProto.FLOAT),
        node("ArgMax", ["singles"], ["places"], axis=1, keepdims=1),
        node("Cast", ["places"], ["levels"], to=TensorProto.FLOAT),
        node("Neg", ["levels"], ["y"]),
    ]
    return tiny(nodes, photo())


def batch_moved() -> onnx.ModelProto:
    """The batch moves to the second axis, to the last one and back. For one sample all shapes but the last begin with 1."""
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Transpose", ["a"], ["second"], perm=[1, 0, 2, 3]),
        node("Transpose", ["second"], ["last"], perm=[2, 3, 0, 1]),
        node("Transpose", ["last"], ["back"], perm=[3, 2, 0, 1]),
        node("Neg", ["back"], ["y"]),
    ]
    return tiny(nodes, photo(channels=1))


def falling(layers: int = 16) -> onnx.ModelProto:
    """Many layers, each with fewer features than the one before."""
    random, nodes, weights = np.random.default_rng(8), [node("Flatten", ["x"], ["r0"])], []
    for layer in range(1, layers + 1):
        before, features = 50 - 2 * layer, 48 - 2 * layer
        weights.append(numpy_helper.from_array(scaled(random, before, features), f"w{layer}"))
        nodes.append(node("Gemm", [f"r{layer - 1}", f"w{layer}"], [f"g{layer}"]))
        nodes.append(node("Relu", [f"g{layer}"], ["y" if layer == layers else f"r{layer}"]))
    return tiny(nodes, photo(), weights)


def wide_inside() -> onnx.ModelProto:
    """Like VGG: after the first layers a photo has many times its bytes, and only after the last one few."""
    random, nodes, weights = np.random.default_rng(10), [], []
    channels = [3, 32, 32, 64]
    for layer, (before, after) in enumerate(zip(channels, channels[1:])):
        kernels = scaled(random, 9 * before, after).T.reshape(after, before, 3, 3)
        weights.append(numpy_helper.from_array(kernels, f"w{layer}"))
        inner = [f"p{layer - 1}" if layer else "x", f"c{layer}", f"r{layer}", f"p{layer}"]
        nodes.append(node("Conv", [inner[0], f"w{layer}"], [inner[1]], pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [inner[1]], [inner[2]]))
        nodes.append(node("MaxPool", [inner[2]], [inner[3]], kernel_shape=[2, 2], strides=[2, 2]))
    weights.append(numpy_helper.from_array(scaled(random, 64 * 8 * 8, 10), "w3"))
    nodes += [node("Flatten", ["p2"], ["flat"]), node("Gemm", ["flat", "w3"], ["y"])]
    return tiny(nodes, photo(side=64), weights)


def sparse_weights() -> onnx.ModelProto:
    """Two sparse matrices, one for each layer."""
    random = np.random.default_rng(9)

    def sparse(name: str, *shape: int) -> onnx.SparseTensorProto:
        places = np.flatnonzero(random.random(shape) < 0.2)
        values = numpy_helper.from_array(random.standard_normal(len(places)).astype(np.float32), name)
        return helper.make_sparse_tensor(values, numpy_helper.from_array(places, f"{name}_places"), shape)

    nodes = [
        node("Flatten", ["x"], ["flat"]),
        node("MatMul", ["flat", "first"], ["multiplied"]),
        node("Relu", ["multiplied"], ["rectified"]),
        node("MatMul", ["rectified", "second"], ["y"]),
    ]
    return tiny(nodes, photo(), sparse=[sparse("first", 48, 12), sparse("second", 12, 5)])


def small() -> dict[str, onnx.ModelProto]:
    """Valid models, by their feature. New ones go last: the position is the seed of the inputs."""
    return {
        "batch_mean": batch_mean(),
        "branches": branches(),
        "constants": constants(),
        "loops": loops(),
        "scans": scans(),
        "other_types": other_types(),
        "batch_moved": batch_moved(),
        "falling": falling(),
        # Between the tolerance of samples and ten times that.
        "faint_mean": part_of_the_mean(np.full((1, 1, 1, 1), 5e-5), side=4),
        "one_mixed": one_mixed(),
        "sparse_weights": sparse_weights(),
        "wide_inside": wide_inside(),
    }
