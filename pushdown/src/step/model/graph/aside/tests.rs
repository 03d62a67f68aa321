use onnx_protobuf::{
    AttributeProto, GraphProto, NodeProto, StringStringEntryProto, tensor_proto::DataLocation,
};

use super::*;
use crate::step::model::graph::INT64;

fn raw(name: &str, count: u8) -> TensorProto {
    let numbers = (0..=255_u8).cycle().take(usize::from(count) * LEAST);
    TensorProto {
        name: name.to_owned(),
        data_type: FLOAT,
        raw_data: numbers.collect(),
        ..TensorProto::default()
    }
}

fn floats(name: &str, data_type: i32) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type,
        float_data: (0..2_000_u16).map(f32::from).collect(),
        ..TensorProto::default()
    }
}

fn node(operator: &str, value: TensorProto) -> NodeProto {
    let attribute = AttributeProto {
        name: "value".to_owned(),
        t: Some(value).into(),
        ..AttributeProto::default()
    };
    NodeProto {
        op_type: operator.to_owned(),
        output: vec!["made".to_owned()],
        attribute: vec![attribute],
        ..NodeProto::default()
    }
}

fn file(initializer: Vec<TensorProto>, node: Vec<NodeProto>) -> Vec<u8> {
    let graph = GraphProto {
        name: "graph".to_owned(),
        initializer,
        node,
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: 8,
        graph: Some(graph).into(),
        producer_name: "test".to_owned(),
        ..ModelProto::default()
    };
    model.write_to_bytes().unwrap()
}

/// What stands at the place that a weight tells.
fn numbers<'a>(file: &'a [u8], weight: &TensorProto) -> &'a [u8] {
    let told = |key: &str| {
        let mut told = weight.external_data.iter();
        told.find(|told| told.key == key).expect(key).value.clone()
    };
    assert_eq!(told("location"), FILE);
    assert_eq!(weight.data_location, DataLocation::EXTERNAL.into());
    assert!(is_empty(weight));
    let start: usize = told("offset").parse().unwrap();
    &file[start..start + bytes_of(weight)]
}

#[test]
fn large_weights_stay_in_the_file_and_all_else_is_read() {
    let (large, small) = (raw("large", 2), raw("small", 0));
    let (typed, constant) = (floats("typed", FLOAT), raw("constant", 1));
    let file = file(
        vec![large.clone(), small.clone(), typed.clone()],
        vec![node("Constant", constant.clone())],
    );
    let model = scan(&file).unwrap();
    assert_eq!((model.ir_version, model.producer_name.as_str()), (8, "test"));
    let [found_large, found_small, found_typed] = model.graph.initializer.as_slice() else {
        panic!("three weights: {model:?}");
    };
    assert_eq!(found_large.name, "large");
    assert_eq!(numbers(&file, found_large), large.raw_data);
    assert_eq!(*found_small, small);
    let bytes = typed.float_data.iter().flat_map(|number| number.to_le_bytes());
    assert_eq!(numbers(&file, found_typed), bytes.collect::<Vec<_>>());
    let found = &model.graph.node[0].attribute[0].t;
    assert_eq!(numbers(&file, found), constant.raw_data);
    assert!(model.write_to_bytes().unwrap().len() < LEAST);
}

/// Only weights are given to ONNX Runtime beside the model; and what it would refuse is still refused.
#[test]
fn what_is_no_plain_weight_is_read_as_it_is() {
    let mixed = TensorProto {
        float_data: vec![1.0],
        ..raw("mixed", 1)
    };
    let wrong = floats("wrong", INT64);
    let other = node("Other", raw("attribute", 1));
    let file = file(vec![mixed.clone(), wrong.clone()], vec![other.clone()]);
    let graph = scan(&file).unwrap().graph;
    assert_eq!(graph.initializer, [mixed, wrong]);
    assert_eq!(graph.node, [other]);
}

fn elsewhere(file: &str) -> TensorProto {
    TensorProto {
        data_location: DataLocation::EXTERNAL.into(),
        external_data: vec![StringStringEntryProto {
            key: "location".to_owned(),
            value: file.to_owned(),
            ..StringStringEntryProto::default()
        }],
        ..raw("elsewhere", 0)
    }
}

/// As an initializer, and as a `Constant`.
fn both_ways(weight: &TensorProto) -> [Vec<u8>; 2] {
    [
        file(vec![weight.clone()], Vec::new()),
        file(Vec::new(), vec![node("Constant", weight.clone())]),
    ]
}

#[test]
fn places_in_other_files_are_left_as_they_are() {
    let weight = elsewhere("w.data");
    let [initializer, constant] = both_ways(&weight);
    assert_eq!(scan(&initializer).unwrap().graph.initializer[0], weight);
    let graph = scan(&constant).unwrap().graph;
    assert_eq!(*graph.node[0].attribute[0].t, weight);
}

/// A file that is named as ours is nobody's leave to read it; and numbers are in one place.
#[test]
fn what_is_set_aside_cannot_be_forged() {
    let forged = elsewhere(FILE);
    let twice = TensorProto {
        raw_data: raw("large", 1).raw_data,
        ..elsewhere("w.data")
    };
    let few = TensorProto {
        raw_data: vec![0; 4],
        ..elsewhere("w.data")
    };
    for (weight, reason) in [
        (forged, "of `elsewhere` in the file \".weights\""),
        (twice, "of `elsewhere` both in the model and in another file"),
        (few, "of `elsewhere` both in the model and in another file"),
    ] {
        for file in both_ways(&weight) {
            let error = scan(&file).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}

#[test]
fn what_is_cut_short_is_no_model() {
    let whole = file(vec![raw("large", 1)], vec![node("Constant", raw("constant", 1))]);
    for length in (1..whole.len()).step_by(61) {
        // A message may end behind any of its fields.
        if let Err(error) = scan(&whole[..length]) {
            assert!(error.to_string().starts_with("found no ONNX model: "), "{error}");
        }
    }
    assert!(scan(&whole[..whole.len() - 1]).is_err());
}
