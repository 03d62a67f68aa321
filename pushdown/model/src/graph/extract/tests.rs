use onnx_protobuf::{NodeProto, SparseTensorProto};

use super::*;
use crate::{ModelFiles, graph::INT64};

const WIDTH: i64 = 64;

fn spec(tensor: &str) -> TensorSpec {
    TensorSpec {
        tensor: tensor.to_owned(),
        shape: vec![64],
    }
}

/// A matrix of 16 KiB.
fn dense(name: &str) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: FLOAT,
        dims: vec![WIDTH, WIDTH],
        raw_data: vec![0; 4 * 64 * 64],
        ..TensorProto::default()
    }
}

/// A diagonal matrix.
fn sparse(name: &str) -> SparseTensorProto {
    let values = TensorProto {
        name: name.to_owned(),
        data_type: FLOAT,
        dims: vec![WIDTH],
        float_data: vec![1.0; 64],
        ..TensorProto::default()
    };
    let indices = TensorProto {
        data_type: INT64,
        dims: vec![WIDTH],
        int64_data: (0..WIDTH).map(|index| index * (WIDTH + 1)).collect(),
        ..TensorProto::default()
    };
    SparseTensorProto {
        values: Some(values).into(),
        indices: Some(indices).into(),
        dims: vec![WIDTH, WIDTH],
        ..SparseTensorProto::default()
    }
}

fn node(operator: &str, input: [&str; 2], output: &str) -> NodeProto {
    NodeProto {
        op_type: operator.to_owned(),
        input: input.map(str::to_owned).to_vec(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

/// Two layers, each with its own matrix, and with a common offset.
fn two_layers(initializer: Vec<TensorProto>, sparse_initializer: Vec<SparseTensorProto>) -> Graph {
    let offset = TensorProto {
        name: "offset".to_owned(),
        dims: vec![1],
        raw_data: vec![0; 4],
        ..dense("")
    };
    let graph = GraphProto {
        name: "graph".to_owned(),
        input: vec![value_info(&spec("x"), true)],
        output: vec![value_info(&spec("y"), true)],
        initializer: initializer.into_iter().chain([offset]).collect(),
        sparse_initializer,
        node: vec![
            node("MatMul", ["x", "first"], "a"),
            node("Add", ["a", "offset"], "b"),
            node("MatMul", ["b", "second"], "c"),
            node("Add", ["c", "offset"], "y"),
        ],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: 8,
        graph: Some(graph).into(),
        ..ModelProto::default()
    };
    let files = ModelFiles {
        model: model.write_to_bytes().unwrap().into(),
        ..ModelFiles::default()
    };
    Graph::read(&files).unwrap()
}

/// The names of the weights between two tensors, and the bytes of that part.
fn submodel(graph: &Graph, from: &str, to: &str) -> (Vec<String>, usize) {
    let submodel = graph.submodel(&spec(from), &spec(to), true).unwrap();
    let model = ModelProto::parse_from_bytes(&submodel.model).unwrap();
    let dense = model.graph.initializer.iter().map(|weight| weight.name.as_str());
    let sparse = model.graph.sparse_initializer.iter().map(sparse_name);
    let mut weights: Vec<_> = dense.chain(sparse).map(str::to_owned).collect();
    weights.sort();
    (weights, submodel.bytes)
}

#[test]
fn a_submodel_has_only_the_weights_that_it_needs() {
    let spare = vec![dense("first"), dense("second"), dense("spare")];
    let mixed = (vec![dense("first")], vec![sparse("second"), sparse("spare")]);
    let without_zeros = vec![sparse("first"), sparse("second"), sparse("spare")];
    for (dense, sparse) in [(spare, Vec::new()), mixed, (Vec::new(), without_zeros)] {
        let graph = two_layers(dense, sparse);
        let (all, bytes) = submodel(&graph, "x", "y");
        assert_eq!(all, ["first", "offset", "second"]);
        let (before, bytes_before) = submodel(&graph, "x", "b");
        assert_eq!(before, ["first", "offset"]);
        let (after, bytes_after) = submodel(&graph, "b", "y");
        assert_eq!(after, ["offset", "second"]);
        // Both contain the offset, and the header of every model.
        let total = bytes_before + bytes_after;
        assert!((bytes..bytes + 200).contains(&total), "{total} of {bytes} bytes");
    }
}

/// Bytes include large weights, whose data stays in the file.
#[test]
fn the_bytes_of_a_submodel_are_those_of_its_weights() {
    let graph = two_layers(vec![dense("first")], vec![sparse("second")]);
    let (_, before) = submodel(&graph, "x", "b");
    let (_, after) = submodel(&graph, "b", "y");
    assert!((16 << 10..17 << 10).contains(&before), "{before} bytes");
    // 64 numbers and their indices.
    assert!((256..1_024).contains(&after), "{after} bytes");
    let target = graph.costs(&HashMap::new()).until(&graph, "y");
    assert_eq!(target.parameters, 2 * 64 * 64 + 1);
}
