//! Parsing of requests for parts of data sets, and what they refuse.

use pushdown_shard::MemberRange;
use pushdown_wire::ColumnMember;
use serde_json::{Value, json};

use super::*;
use crate::{ErrorKind, Pipeline, pipeline::NoModels};

/// A presigned query without its signature.
const PRESIGN: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20261101%2Fus-east-1%2Fs3%2F\
    aws4_request&X-Amz-Date=20261101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";

type Change = fn(&mut Value);

fn parse(json: &Value) -> Result<BatchRequest> {
    BatchRequest::parse(json.to_string().as_bytes(), 4, &NoModels)
}

fn target() -> PartTarget {
    PartTarget {
        store: None,
        path: "/sets/train/part-00000.tar".to_owned(),
        query: Some(format!("{PRESIGN}&X-Amz-Signature={}", "0f".repeat(32))),
    }
}

/// A request for a part of two photos with the numbers of their classes.
fn request() -> BatchRequest {
    let samples = ["/b/train/cat/1.jpg", "/b/train/dog/2.jpg"].map(|path| BatchSample {
        etag: Some("\"1\"".to_owned()),
        ..BatchSample::new(path, "0f".repeat(32))
    });
    let pipeline = Pipeline::parse("decode | resize(8, 8)").unwrap();
    let mut request = BatchRequest::new(pipeline, PRESIGN, samples.to_vec());
    request.part = Some(PartRequest {
        format: PartFormat::Wds,
        prefix: "train/".to_owned(),
        label: Some(LabelType::Class {
            names: vec!["cat".to_owned(), "dog".to_owned()],
        }),
        labels: vec![Label::Int(0), Label::Int(1)],
        engine: Some("decode=4 resample=4".to_owned()),
        target: Some(target()),
    });
    request
}

/// The same without signatures, for the key that signs the request.
fn signed_batch() -> BatchRequest {
    let mut request = request();
    request.presign = None;
    for sample in &mut request.samples {
        sample.signature = None;
    }
    if let Some(target) = request.part.as_mut().and_then(|part| part.target.as_mut()) {
        target.query = None;
    }
    request
}

/// The error of a request after one change.
fn fault(request: &BatchRequest, change: impl FnOnce(&mut Value)) -> Error {
    let mut json = serde_json::to_value(request).unwrap();
    change(&mut json);
    parse(&json).unwrap_err()
}

fn check_faults(request: &BatchRequest, faults: &[(Change, &str)]) {
    for (change, expected) in faults {
        let error = fault(request, change);
        assert_eq!(error.kind(), ErrorKind::InvalidWire, "{error}");
        assert!(
            error.to_string().contains(expected),
            "expected {expected}, found {error}"
        );
    }
}

#[test]
fn requests_for_parts_parse_their_own_json() {
    let whole = request();
    let mut trial = request();
    let part = trial.part.as_mut().unwrap();
    (part.target, part.engine, part.label) = (None, None, None);
    (part.labels, part.prefix, part.format) = (Vec::new(), String::new(), PartFormat::Parquet);
    let mut stated = request();
    let stated_target = stated.part.as_mut().unwrap().target.as_mut().unwrap();
    stated_target.store = Some("https://sets.s3.example; bucket=sets".parse().unwrap());
    // The host names the bucket: a key needs no slash.
    stated_target.path = "/part-00000.tar".to_owned();
    for request in [whole, trial, stated, signed_batch()] {
        let json = request.to_json().unwrap();
        assert_eq!(BatchRequest::parse(&json, 4, &NoModels).unwrap(), request);
    }
}

#[test]
fn the_documented_form_parses() {
    let json = json!({
        "pipeline": "decode | resize(8, 8)", "presign": PRESIGN,
        "samples": [{"path": "/b/train/cat/1.jpg", "signature": "0f".repeat(32), "etag": "\"1\""}],
        "part": {
            "format": "wds", "prefix": "train/", "label": {"class": {"names": ["cat", "dog"]}}, "labels": [0],
            "engine": "decode=4 resample=4", "target": {"path": "/sets/part-00000.tar", "query": "X-Amz-Signature=00"}
        }
    });
    let part = parse(&json).unwrap().part.unwrap();
    assert_eq!((part.format, part.labels), (PartFormat::Wds, vec![Label::Int(0)]));
    let target = part.target.unwrap();
    assert_eq!(target.request_target(), "/sets/part-00000.tar?X-Amz-Signature=00");
    let trial = json!({
        "pipeline": "decode", "samples": [{"path": "/b/1.jpg", "etag": "\"1\""}], "part": {"format": "parquet"}
    });
    // Images of any size are no column of Parquet.
    assert!(parse(&trial).is_err());
    let trial = json!({
        "pipeline": "decode | resize(8, 8)", "samples": [{"path": "/b/1.jpg", "etag": "\"1\""}],
        "part": {"format": "parquet"}
    });
    let part = parse(&trial).unwrap().part.unwrap();
    assert_eq!((part.prefix.as_str(), part.target), ("", None));
}

/// A log with it must give nobody the right to write.
#[test]
fn debug_has_no_query() {
    let text = format!("{:?}", request().part);
    assert!(text.contains("/sets/train/part-00000.tar"), "{text}");
    for secret in ["0f0f", "X-Amz-", "AK%2F"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn the_part_has_the_value_of_the_whole_pipeline() {
    let mut plain = request();
    let spec = plain.part_spec().unwrap().unwrap();
    assert_eq!(Some(&spec.kind), plain.pipeline.kinds().last());
    assert_eq!(spec.format, PartFormat::Wds);
    plain.part = None;
    assert_eq!(plain.part_spec().unwrap(), None);
}

#[test]
fn what_a_part_does_not_have_is_refused() {
    check_faults(
        &request(),
        &[
            (
                |json| json["deliver"] = false.into(),
                "unexpected deliver: expected none with `part`",
            ),
            (
                |json| {
                    json["pipeline"] = "select".into();
                    json["table"] = json!({"key": true});
                },
                "unexpected table: expected none with `part`",
            ),
            (|json| json["split"] = 1.into(), "unexpected split"),
            (|json| json["split"] = "smallest".into(), "unexpected split"),
            (|json| json["samples"][1]["split"] = 2.into(), "unexpected split"),
            (
                |json| {
                    json["samples"][1]["split"] = 0.into();
                    json["samples"][1]["form"] = "cropped-jpeg".into();
                },
                "unexpected split",
            ),
            (
                |json| json["samples"][0]["form"] = "cropped-jpeg".into(),
                "unexpected form",
            ),
            (
                |json| json["samples"][0]["max_bytes"] = 1000.into(),
                "unexpected max_bytes",
            ),
            (
                |json| json["samples"][1]["etag"] = Value::Null,
                "missing etag: expected that of each sample",
            ),
            (|json| json["part"]["name"] = "a".into(), "unknown field `name`"),
            (
                |json| json["part"]["format"] = "zip".into(),
                "unknown variant `zip`",
            ),
        ],
    );
}

#[test]
fn labels_are_one_for_each_sample() {
    check_faults(
        &request(),
        &[
            (
                |json| json["part"]["labels"] = json!([0]),
                "invalid labels: expected 2, found 1",
            ),
            (
                |json| json["part"]["label"] = Value::Null,
                "invalid labels: expected 0, found 2",
            ),
            (
                |json| json["part"]["label"] = json!({"class": {"names": []}}),
                "at least one class",
            ),
            (
                |json| json["part"]["label"] = "bool".into(),
                "unknown variant `bool`",
            ),
            (|json| json["part"]["labels"] = json!([0, [1]]), "did not match"),
        ],
    );
}

#[test]
fn values_that_the_format_cannot_hold_are_refused() {
    check_faults(
        &request(),
        &[
            (
                |json| {
                    json["pipeline"] = "select".into();
                },
                "cannot write tables to wds",
            ),
            (
                |json| {
                    json["pipeline"] = "decode | resize(short=8)".into();
                    json["part"]["format"] = "parquet".into();
                },
                "cannot write",
            ),
            (
                |json| json["columns"] = json!(["cls"]),
                "invalid columns: expected names that differ",
            ),
        ],
    );
}

#[test]
fn the_target_is_a_presigned_put() {
    check_faults(
        &request(),
        &[
            (
                |json| json["part"]["target"]["query"] = Value::Null,
                "target of the part: missing query",
            ),
            (
                |json| json["part"]["target"]["query"] = "a b".into(),
                "target of the part: invalid query",
            ),
            (
                |json| json["part"]["target"]["query"] = "a#b".into(),
                "invalid query",
            ),
            (
                |json| json["part"]["target"]["query"] = "a?b".into(),
                "invalid query",
            ),
            (
                |json| json["part"]["target"]["query"] = "a".repeat(MAX_QUERY_BYTES + 1).into(),
                "of at most 16384 bytes",
            ),
            (
                |json| json["part"]["target"]["path"] = "/sets".into(),
                "target of the part: invalid path",
            ),
            (
                |json| json["part"]["target"]["path"] = "/sets/a?acl".into(),
                "target of the part: invalid path",
            ),
            (
                |json| json["part"]["target"]["store"] = json!({"url": "file:///etc"}),
                "begins with http:// or https://",
            ),
            (
                |json| json["part"]["target"]["key"] = "a".into(),
                "unknown field `key`",
            ),
        ],
    );
    check_faults(
        &signed_batch(),
        &[
            (
                |json| json["part"]["target"]["query"] = "X-Amz-Signature=00".into(),
                "target of the part: unexpected query: expected none without `presign`",
            ),
            (
                |json| json["part"]["target"]["store"] = json!({"url": "https://s3.example"}),
                "target of the part: unexpected store",
            ),
        ],
    );
}

#[test]
fn members_and_their_columns_are_in_a_part() {
    let mut request = request();
    let range = MemberRange::new(1024, 512, 7000).unwrap();
    request.columns = vec!["json".to_owned()];
    let shard = BatchSample::new("/b/train/0.tar", "0f".repeat(32));
    request.samples[1] = BatchSample {
        columns: vec![Some(ColumnMember::new("a.json", &range))],
        ..shard.with_member("a.jpg", &range, "\"1\"")
    };
    let json = request.to_json().unwrap();
    assert_eq!(BatchRequest::parse(&json, 4, &NoModels).unwrap(), request);
    assert_eq!(request.part_spec().unwrap().unwrap().columns, ["json"]);
}
