use onnx_protobuf::{AttributeProto, Message as _, ModelProto, NodeProto};
use protobuf::CodedOutputStream;

use super::*;
use pushdown_core::ErrorKind;

const FLOAT: i32 = 1;

fn external_data(entries: &[(&str, &str)]) -> Vec<StringStringEntryProto> {
    let entries = entries.iter().map(|(key, value)| StringStringEntryProto {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
        ..StringStringEntryProto::default()
    });
    entries.collect()
}

/// A weight of f32 at a location.
fn weight(dims: &[i64], entries: &[(&str, &str)]) -> TensorProto {
    TensorProto {
        name: "w".to_owned(),
        data_type: FLOAT,
        dims: dims.to_vec(),
        data_location: DataLocation::EXTERNAL.into(),
        external_data: external_data(entries),
        ..TensorProto::default()
    }
}

fn graph(weight: TensorProto) -> GraphProto {
    GraphProto {
        initializer: vec![weight],
        ..GraphProto::default()
    }
}

/// A graph of one node with an attribute: a weight, or a subgraph with a weight.
fn with_node(operator: &str, attribute: AttributeProto) -> GraphProto {
    GraphProto {
        node: vec![NodeProto {
            op_type: operator.to_owned(),
            attribute: vec![attribute],
            ..NodeProto::default()
        }],
        ..GraphProto::default()
    }
}

fn data() -> BTreeMap<String, Arc<[u8]>> {
    let bytes = (0..=255_u8).cycle().take(3 * MIN_STRIPPED_BYTES).collect();
    BTreeMap::from([("w.data".to_owned(), bytes)])
}

fn file(graph: GraphProto) -> Vec<u8> {
    let model = ModelProto {
        graph: Some(graph).into(),
        ..ModelProto::default()
    };
    model.write_to_bytes().unwrap()
}

#[test]
fn large_weights_stay_in_their_file_and_small_ones_are_read() {
    let data = data();
    let entries = [("location", "w.data"), ("offset", "100"), ("length", "4096")];
    let mut large = graph(weight(&[1024], &entries));
    resolve(&mut large, &data).unwrap();
    assert_eq!(large.initializer[0].external_data, external_data(&entries));
    assert!(large.initializer[0].raw_data.is_empty());
    // The length defaults to that of the shape, and the offset to 0. Unknown keys are ignored.
    for (entries, start) in [
        (
            &[("location", "w.data"), ("offset", "7"), ("checksum", "0")][..],
            7,
        ),
        (&[("location", "w.data"), ("length", "40")], 0),
        // Similar to a stripped weight.
        (
            &[("checksum", MODEL_FILE), ("location", "w.data"), ("length", "40")],
            0,
        ),
    ] {
        let mut small = graph(weight(&[2, 5], entries));
        resolve(&mut small, &data).unwrap();
        let [small] = small.initializer.as_slice() else {
            panic!("one weight: {small:?}")
        };
        assert_eq!(small.raw_data, data["w.data"][start..start + 40]);
        assert!(small.external_data.is_empty() && small.data_location == DataLocation::DEFAULT.into());
    }
    let mut empty = graph(weight(&[3, 0], &[("location", "w.data")]));
    resolve(&mut empty, &data).unwrap();
    assert!(empty.initializer[0].raw_data.is_empty());
    assert!(!is_external(&empty.initializer[0]), "an empty weight is read");
}

/// Only weights of the outermost graph can stay in their file.
#[test]
fn weights_in_nodes_are_read_at_any_size() {
    let data = data();
    let large = || weight(&[2048], &[("location", "w.data"), ("offset", "4")]);
    let value = AttributeProto {
        name: "value".to_owned(),
        t: Some(large()).into(),
        ..AttributeProto::default()
    };
    let body = AttributeProto {
        g: Some(graph(large())).into(),
        ..AttributeProto::default()
    };
    let bodies = AttributeProto {
        graphs: vec![with_node("Constant", value.clone())],
        ..AttributeProto::default()
    };
    let many = AttributeProto {
        tensors: vec![large()],
        ..AttributeProto::default()
    };
    let numbers = &data["w.data"][4..4 + 8192];
    for (operator, attribute) in [
        ("Loop", body),
        ("If", bodies),
        ("Other", value.clone()),
        ("Other", many),
    ] {
        let mut graph = with_node(operator, attribute);
        assert_eq!(
            data_files(&file(graph.clone())).unwrap(),
            BTreeSet::from(["w.data".to_owned()])
        );
        resolve(&mut graph, &data).unwrap();
        let text = graph.write_to_bytes().unwrap();
        let found = text.windows(numbers.len()).filter(|window| *window == numbers);
        assert_eq!(found.count(), 1, "{operator}");
    }
    let mut constant = with_node("Constant", value);
    resolve(&mut constant, &data).unwrap();
    assert!(
        is_external(&constant.node[0].attribute[0].t),
        "a `Constant` is a weight of the graph"
    );
}

#[test]
fn invalid_locations_are_refused() {
    let data = data();
    let all = data["w.data"].len();
    assert_eq!(all, 12_288);
    let fault = |weight: TensorProto| {
        let error = resolve(&mut graph(weight), &data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
        error.to_string()
    };
    let at = |dims: &[i64], entries: &[(&str, &str)]| {
        fault(weight(dims, &[&[("location", "w.data")], entries].concat()))
    };
    let max = u64::MAX.to_string();
    let beyond = "of the file `w.data`, 40 bytes, expected them within its 12288";
    for (found, reason) in [
        (at(&[10], &[("offset", "12249")]), beyond),
        (at(&[10], &[("offset", max.as_str())]), beyond),
        (
            at(&[10], &[("offset", "-4")]),
            "found the offset \"-4\" for the weights of `w`, expected a number",
        ),
        (at(&[10], &[("offset", "")]), "the offset \"\""),
        (at(&[10], &[("length", "1e3")]), "the length \"1e3\""),
        (
            at(&[10], &[("length", "18446744073709551616")]),
            "the length \"18446744073709551616\"",
        ),
        (
            at(&[10], &[("length", "36")]),
            "found 36 bytes for the weights of `w`, expected 40",
        ),
        (
            at(&[10], &[("length", max.as_str())]),
            "expected 40 for their type and shape",
        ),
        (
            at(&[10], &[("offset", "0"), ("offset", "4")]),
            "found `offset` twice for the weights of `w`",
        ),
        (at(&[10], &[("location", "v.data")]), "found `location` twice"),
        (at(&[-10], &[]), "the shape [-10], more than any weights may have"),
        (at(&[i64::MAX, 4], &[]), "more than any weights may have"),
        (at(&[i64::MAX], &[]), "more than any weights may have"),
        (
            fault(weight(&[1], &[("location", "v.data")])),
            "missing the data file `v.data` with the weights of `w`",
        ),
        (
            fault(weight(&[1], &[])),
            "in the file \"\", expected the bare name",
        ),
    ] {
        assert!(found.contains(reason), "{reason} in {found}");
    }
    let text = TensorProto {
        data_type: 8,
        ..weight(&[1], &[("location", "w.data")])
    };
    assert!(fault(text).contains("with ONNX's type 8 in a data file, expected numbers"));
}

/// Shared locations are valid, but a small file that many weights share makes a large model.
#[test]
fn weights_that_share_a_location_count_once_each() {
    let shared = [("a", "0"), ("b", "4")].map(|(name, offset)| TensorProto {
        name: name.to_owned(),
        ..weight(&[1500], &[("location", "w.data"), ("offset", offset)])
    });
    let mut few = GraphProto {
        initializer: shared.into(),
        ..GraphProto::default()
    };
    resolve(&mut few, &data()).unwrap();
    assert!(few.initializer.iter().all(is_external));
    let data = BTreeMap::from([("w.data".to_owned(), Arc::from(vec![0; 16 << 20]))]);
    let many = |times: usize| GraphProto {
        initializer: vec![weight(&[4 << 20], &[("location", "w.data")]); times],
        ..GraphProto::default()
    };
    resolve(&mut many(128), &data).unwrap();
    let error = resolve(&mut many(129), &data).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(
        error.to_string(),
        "weights of 2164260864 bytes up to `w` are more than the limit of 2147483648"
    );
}

#[test]
fn file_names_have_to_be_bare() {
    for name in [
        "../w.data",
        "/etc/passwd",
        "a/b",
        "a\\b",
        ".",
        "..",
        ".weights",
        "",
        "a\0b",
        "a\nb",
        "./w.data",
        "C:\\w.data",
        &"w".repeat(256),
    ] {
        let file = file(graph(weight(&[1], &[("location", name)])));
        let error = data_files(&file).unwrap_err().to_string();
        assert!(
            error.contains("expected the bare name of a file in the model's folder"),
            "{error}"
        );
        let inner = AttributeProto {
            g: Some(graph(weight(&[1], &[("location", name)]))).into(),
            ..AttributeProto::default()
        };
        let error = data_files(&self::file(with_node("Loop", inner)))
            .unwrap_err()
            .to_string();
        assert!(error.contains("expected the bare name"), "{error}");
    }
    for name in [
        "model.onnx.data",
        "model.onnx_data",
        "w 1",
        "Gewichte-ä",
        "a..b",
        "weights",
    ] {
        let file = file(graph(weight(&[1], &[("location", name)])));
        assert_eq!(data_files(&file).unwrap(), BTreeSet::from([name.to_owned()]));
    }
}

#[test]
fn files_and_depth_have_limits() {
    let weights = (0..=MAX_FILES).map(|index| weight(&[1], &[("location", &format!("w{index}"))]));
    let many = GraphProto {
        initializer: weights.collect(),
        ..GraphProto::default()
    };
    let error = data_files(&file(many)).unwrap_err().to_string();
    assert_eq!(error, "found 4097 data files, expected at most 4096");
    let deep = (0..20).fold(graph(weight(&[1], &[("location", "w.data")])), |graph, _| {
        let body = AttributeProto {
            g: Some(graph).into(),
            ..AttributeProto::default()
        };
        with_node("If", body)
    });
    let error = data_files(&file(deep)).unwrap_err().to_string();
    assert!(error.contains("nested deeper than 8"), "{error}");
}

/// Of a repeated field the last one counts, and its location is checked like any other.
#[test]
fn the_last_of_two_locations_counts() {
    let internal = TensorProto {
        name: "w".to_owned(),
        data_type: FLOAT,
        dims: vec![1024],
        raw_data: vec![0; MIN_STRIPPED_BYTES],
        ..TensorProto::default()
    };
    let attribute = |weight: TensorProto| {
        let attribute = AttributeProto {
            t: Some(weight).into(),
            ..AttributeProto::default()
        };
        attribute.write_to_bytes().unwrap()
    };
    let repeated = [
        attribute(internal),
        attribute(weight(&[1024], &[("location", "w.data")])),
    ]
    .concat();
    let field = |number: u32, content: &[u8]| {
        let mut field = Vec::new();
        let mut output = CodedOutputStream::vec(&mut field);
        output.write_bytes(number, content).unwrap();
        output.flush().unwrap();
        drop(output);
        field
    };
    // Attribute 5 of a node with operator 4, node 1 of graph 7.
    let node = [field(4, b"Constant"), field(5, &repeated)].concat();
    let file = field(7, &field(1, &node));
    assert_eq!(data_files(&file).unwrap(), BTreeSet::from(["w.data".to_owned()]));
    let mut graph = parse(&file).unwrap().graph.take().unwrap();
    let error = resolve(&mut graph, &BTreeMap::new()).unwrap_err().to_string();
    assert!(
        error.contains("missing the data file `w.data` with the weights of `w`"),
        "{error}"
    );
}
