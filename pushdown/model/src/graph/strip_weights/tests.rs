use onnx_protobuf::{
    AttributeProto, GraphProto, NodeProto, StringStringEntryProto, tensor_proto::DataLocation,
};

use super::*;
use crate::graph::INT64;

fn raw(name: &str, count: u8) -> TensorProto {
    let numbers = (0..=255_u8).cycle().take(usize::from(count) * MIN_STRIPPED_BYTES);
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
        output: vec!["output".to_owned()],
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

/// The bytes of the file at the location of a weight.
fn stripped_bytes<'a>(file: &'a [u8], weight: &TensorProto) -> &'a [u8] {
    let value = |key: &str| {
        let mut entries = weight.external_data.iter();
        let entry = entries.find(|entry| entry.key == key);
        entry.expect(key).value.clone()
    };
    assert_eq!(value("location"), MODEL_FILE);
    assert_eq!(weight.data_location, DataLocation::EXTERNAL.into());
    assert!(is_empty(weight));
    let start: usize = value("offset").parse().unwrap();
    &file[start..start + external_bytes(weight)]
}

#[test]
fn large_weights_stay_in_the_file_and_everything_else_is_read() {
    let (large, small) = (raw("large", 2), raw("small", 0));
    let (typed, constant) = (floats("typed", FLOAT), raw("constant", 1));
    let file = file(
        vec![large.clone(), small.clone(), typed.clone()],
        vec![node("Constant", constant.clone())],
    );
    let model = parse(&file).unwrap();
    assert_eq!((model.ir_version, model.producer_name.as_str()), (8, "test"));
    let [found_large, found_small, found_typed] = model.graph.initializer.as_slice() else {
        panic!("three weights: {model:?}");
    };
    assert_eq!(found_large.name, "large");
    assert_eq!(stripped_bytes(&file, found_large), large.raw_data);
    assert_eq!(*found_small, small);
    let bytes = typed.float_data.iter().flat_map(|number| number.to_le_bytes());
    assert_eq!(stripped_bytes(&file, found_typed), bytes.collect::<Vec<_>>());
    let found = &model.graph.node[0].attribute[0].t;
    assert_eq!(stripped_bytes(&file, found), constant.raw_data);
    assert!(model.write_to_bytes().unwrap().len() < MIN_STRIPPED_BYTES);
}

/// Only plain weights are stripped. Invalid tensors stay, so that ONNX Runtime refuses them.
#[test]
fn other_tensors_are_read_unchanged() {
    let mixed = TensorProto {
        float_data: vec![1.0],
        ..raw("mixed", 1)
    };
    let wrong = floats("wrong", INT64);
    let other = node("Other", raw("attribute", 1));
    let file = file(vec![mixed.clone(), wrong.clone()], vec![other.clone()]);
    let graph = parse(&file).unwrap().graph;
    assert_eq!(graph.initializer, [mixed, wrong]);
    assert_eq!(graph.node, [other]);
}

fn external(file: &str) -> TensorProto {
    TensorProto {
        data_location: DataLocation::EXTERNAL.into(),
        external_data: vec![StringStringEntryProto {
            key: "location".to_owned(),
            value: file.to_owned(),
            ..StringStringEntryProto::default()
        }],
        ..raw("external", 0)
    }
}

/// Files with a weight as an initializer, and as a `Constant`.
fn both_forms(weight: &TensorProto) -> [Vec<u8>; 2] {
    [
        file(vec![weight.clone()], Vec::new()),
        file(Vec::new(), vec![node("Constant", weight.clone())]),
    ]
}

#[test]
fn locations_in_data_files_stay_unchanged() {
    let weight = external("w.data");
    let [initializer, constant] = both_forms(&weight);
    assert_eq!(parse(&initializer).unwrap().graph.initializer[0], weight);
    let graph = parse(&constant).unwrap().graph;
    assert_eq!(*graph.node[0].attribute[0].t, weight);
}

/// A file cannot refer to `MODEL_FILE` itself, and a weight cannot have data both in the model and outside.
#[test]
fn stripped_weights_cannot_be_forged() {
    let forged = external(MODEL_FILE);
    let large = TensorProto {
        raw_data: raw("large", 1).raw_data,
        ..external("w.data")
    };
    let small = TensorProto {
        raw_data: vec![0; 4],
        ..external("w.data")
    };
    for (weight, reason) in [
        (forged, "of `external` in the file \".weights\""),
        (large, "of `external` both in the model and in a data file"),
        (small, "of `external` both in the model and in a data file"),
    ] {
        for file in both_forms(&weight) {
            let error = parse(&file).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}

#[test]
fn truncated_models_are_refused() {
    let whole = file(vec![raw("large", 1)], vec![node("Constant", raw("constant", 1))]);
    for length in (1..whole.len()).step_by(61) {
        // A message may end after any of its fields.
        if let Err(error) = parse(&whole[..length]) {
            assert!(error.to_string().starts_with("invalid ONNX model: "), "{error}");
        }
    }
    assert!(parse(&whole[..whole.len() - 1]).is_err());
}
