use onnx_protobuf::{NodeProto, SparseTensorProto};

use super::*;
use crate::step::model::{Files, graph::INT64};

const WIDTH: i64 = 64;

fn seam(tensor: &str) -> Seam {
    Seam {
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

/// A matrix with a diagonal.
fn sparse(name: &str) -> SparseTensorProto {
    let values = TensorProto {
        name: name.to_owned(),
        data_type: FLOAT,
        dims: vec![WIDTH],
        float_data: vec![1.0; 64],
        ..TensorProto::default()
    };
    let places = TensorProto {
        data_type: INT64,
        dims: vec![WIDTH],
        int64_data: (0..WIDTH).map(|index| index * (WIDTH + 1)).collect(),
        ..TensorProto::default()
    };
    SparseTensorProto {
        values: Some(values).into(),
        indices: Some(places).into(),
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

/// Two layers, each with a matrix of its own, and an offset for both.
fn two_layers(initializer: Vec<TensorProto>, sparse_initializer: Vec<SparseTensorProto>) -> Graph {
    let offset = TensorProto {
        name: "offset".to_owned(),
        dims: vec![1],
        raw_data: vec![0; 4],
        ..dense("")
    };
    let graph = GraphProto {
        name: "graph".to_owned(),
        input: vec![value_info(&seam("x"), true)],
        output: vec![value_info(&seam("y"), true)],
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
    let files = Files {
        model: model.write_to_bytes().unwrap().into(),
        ..Files::default()
    };
    Graph::read(&files).unwrap()
}

/// The weights of the part between two tensors, and its bytes.
fn part(graph: &Graph, from: &str, to: &str) -> (Vec<String>, usize) {
    let part = graph.part(&seam(from), &seam(to), true).unwrap();
    let model = ModelProto::parse_from_bytes(&part.model).unwrap();
    let dense = model.graph.initializer.iter().map(|weight| weight.name.as_str());
    let sparse = model.graph.sparse_initializer.iter().map(name_of);
    let mut weights: Vec<_> = dense.chain(sparse).map(str::to_owned).collect();
    weights.sort();
    (weights, part.bytes)
}

#[test]
fn a_part_has_the_weights_that_it_needs_and_no_others() {
    let spare = vec![dense("first"), dense("second"), dense("spare")];
    let mixed = (vec![dense("first")], vec![sparse("second"), sparse("spare")]);
    let without_zeros = vec![sparse("first"), sparse("second"), sparse("spare")];
    for (dense, sparse) in [(spare, Vec::new()), mixed, (Vec::new(), without_zeros)] {
        let graph = two_layers(dense, sparse);
        let (all, bytes) = part(&graph, "x", "y");
        assert_eq!(all, ["first", "offset", "second"]);
        let (before, bytes_before) = part(&graph, "x", "b");
        assert_eq!(before, ["first", "offset"]);
        let (behind, bytes_behind) = part(&graph, "b", "y");
        assert_eq!(behind, ["offset", "second"]);
        // What both have is the offset, and what every model begins with.
        let both = bytes_before + bytes_behind;
        assert!((bytes..bytes + 200).contains(&both), "{both} of {bytes} bytes");
    }
}

/// Wherever its numbers are: those of the large ones are in the file.
#[test]
fn a_part_weighs_what_its_weights_do() {
    let graph = two_layers(vec![dense("first")], vec![sparse("second")]);
    let (_, before) = part(&graph, "x", "b");
    let (_, behind) = part(&graph, "b", "y");
    assert!((16 << 10..17 << 10).contains(&before), "{before} bytes");
    // 64 numbers and their places.
    assert!((256..1_024).contains(&behind), "{behind} bytes");
    let target = graph.costs(&HashMap::new()).up_to(&graph, "y");
    assert_eq!(target.parameters, 2 * 64 * 64 + 1);
}
