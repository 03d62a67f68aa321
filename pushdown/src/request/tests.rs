//! Writing and parsing of batch requests.

use pushdown_shard::MemberRange;
use pushdown_wire::ColumnMember;

use super::*;
use crate::ErrorKind;
use crate::pipeline::NoModels;

/// A presigned query without its signature.
const PRESIGN: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20261101%2Fus-east-1%2Fs3%2F\
    aws4_request&X-Amz-Date=20261101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";

type Change = fn(&mut serde_json::Value);

fn request() -> BatchRequest {
    let pipeline = Pipeline::parse("decode | resize(8, 8) | to_float").unwrap();
    let samples = vec![BatchSample::new("/b/k%201.jpg", "0f".repeat(32)); 3];
    BatchRequest::new(pipeline, PRESIGN, samples)
}

/// The error of a request after one change.
fn fault(change: impl FnOnce(&mut serde_json::Value)) -> Error {
    let mut json = serde_json::to_value(request()).unwrap();
    change(&mut json);
    BatchRequest::parse(json.to_string().as_bytes(), 4, &NoModels).unwrap_err()
}

fn demand() -> Demand {
    Demand {
        reader: "trainer-0".to_owned(),
        cores: 3.2,
    }
}

/// A member with two further columns.
fn member() -> serde_json::Value {
    serde_json::json!({
        "path": "/b/train.tar", "signature": "0f".repeat(32), "etag": "\"1\"", "member": "a.jpg", "offset": 0, "size": 5,
        "columns": [null, {"member": "a.json", "offset": 1024, "size": 5}]
    })
}

/// A log with it must give nobody a right.
#[test]
fn debug_has_no_signature() {
    let text = format!("{:?}", request());
    assert!(text.contains("/b/k%201.jpg"), "{text}");
    for secret in ["0f0f", "X-Amz-", "AK%2F"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn requests_parse_their_own_json() {
    let mut request = request();
    assert_eq!(
        BatchRequest::parse(&request.to_json().unwrap(), 3, &NoModels).unwrap(),
        request
    );
    request.split = Split::Smallest;
    request.seed = Some(u64::MAX);
    request.epoch = Some(3);
    request.on_error = OnError::Fail;
    request.order = Order::Any;
    let range = MemberRange::new(1024, 512, 7000).unwrap();
    request.columns = vec!["cls".to_owned(), "json".to_owned()];
    let shard = BatchSample::new("/b/train.tar", "0f".repeat(32));
    request.samples[1] = BatchSample {
        split: Some(Split::At(2)),
        max_bytes: Some(100_000),
        columns: vec![None, Some(ColumnMember::new("a.json", &range))],
        ..shard.with_member("a.jpg", &range, "\"1\"")
    };
    request.samples[2].version = Some("v1".to_owned());
    request.samples[2].etag = Some("\"0f-2\"".to_owned());
    request.cache = Some(CacheHints {
        epochs: 90,
        samples: u64::MAX,
    });
    request.demand = Some(demand());
    assert_eq!(
        BatchRequest::parse(&request.to_json().unwrap(), 3, &NoModels).unwrap(),
        request
    );
    assert_eq!(request.split_of(&request.samples[0]), Split::Smallest);
    assert_eq!(request.split_of(&request.samples[1]), Split::At(2));
}

/// Gateways of version 0.1.0 know these fields only.
#[test]
fn a_request_without_newer_fields_is_the_same_for_every_gateway() {
    let sample = format!(r#"{{"path":"/b/k%201.jpg","signature":"{}"}}"#, "0f".repeat(32));
    let expected = format!(
        r#"{{"pipeline":"decode | resize(w=8, h=8) | to_float","split":"full","on_error":"row","order":"request","presign":"{PRESIGN}","samples":[{sample},{sample},{sample}]}}"#
    );
    let plain = request();
    for json in [plain.to_json(), plain.to_json_for(&Features::default())] {
        assert_eq!(String::from_utf8(json.unwrap()).unwrap(), expected);
    }
    let mut newer = request();
    newer.samples[1].etag = Some("\"0f\"".to_owned());
    newer.cache = Some(CacheHints {
        epochs: 1,
        samples: 3,
    });
    let json = newer.to_json_for(&Features::parse("families")).unwrap();
    assert_eq!(BatchRequest::parse(&json, 3, &NoModels).unwrap(), plain);
    let json = newer.to_json_for(&Features::parse("cache, families")).unwrap();
    assert_eq!(BatchRequest::parse(&json, 3, &NoModels).unwrap(), newer);
}

/// A demand alone is reason enough to look at the features.
#[test]
fn a_demand_is_written_for_gateways_that_list_the_feature() {
    let mut newer = request();
    newer.demand = Some(demand());
    let json = |features| newer.to_json_for(&Features::parse(features)).unwrap();
    let old = BatchRequest::parse(&json("cache, families"), 3, &NoModels).unwrap();
    assert_eq!(old, request());
    assert_eq!(BatchRequest::parse(&json("demand"), 3, &NoModels).unwrap(), newer);
    let text = String::from_utf8(newer.to_json().unwrap()).unwrap();
    assert!(
        text.contains(r#""demand":{"reader":"trainer-0","cores":3.2}"#),
        "{text}"
    );
}

/// A reader of an answer without values refuses one with values, which a gateway without the feature sends.
#[test]
fn a_request_without_values_is_written_for_gateways_that_list_the_feature() {
    let mut newer = request();
    newer.deliver = false;
    newer.pin = Some(Pin { keep_seconds: 86_400 });
    let json = |features| newer.to_json_for(&Features::parse(features)).unwrap();
    let old = BatchRequest::parse(&json("cache, demand"), 3, &NoModels).unwrap();
    assert_eq!(old, request());
    assert_eq!(
        BatchRequest::parse(&json("deliver"), 3, &NoModels).unwrap(),
        newer
    );
    let text = String::from_utf8(newer.to_json().unwrap()).unwrap();
    assert!(
        text.contains(r#""deliver":false,"pin":{"keep_seconds":86400}"#),
        "{text}"
    );
}

#[test]
fn pins_and_what_has_no_values_are_checked() {
    let cases: [(Change, &str); 5] = [
        (
            |json| json["pin"] = serde_json::json!({"keep_seconds": 60}),
            "expected it with `deliver: false` only",
        ),
        (
            |json| {
                json["deliver"] = false.into();
                json["pin"] = serde_json::json!({"keep_seconds": 0});
            },
            "expected keep_seconds of 1 to 2592000, found 0",
        ),
        (
            |json| {
                json["deliver"] = false.into();
                json["pin"] = serde_json::json!({"keep_seconds": 1, "name": "a"});
            },
            "unknown field `name`",
        ),
        (
            |json| {
                json["deliver"] = false.into();
                json["columns"] = serde_json::json!(["cls"]);
            },
            "unexpected columns: expected none with `deliver: false`",
        ),
        (
            |json| {
                json["deliver"] = false.into();
                json["table"] = serde_json::json!({"key": true});
            },
            "unexpected table: expected none with `deliver: false`",
        ),
    ];
    for (change, expected) in cases {
        let error = fault(change).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_documented_form_parses() {
    let json = format!(
        r#"{{"pipeline": [{{"step": "decode"}}], "split": "full", "on_error": "row", "order": "any",
        "presign": "{PRESIGN}", "samples": [{{"path": "/b/k", "signature": "{}", "split": 1}}]}}"#,
        "0f".repeat(32)
    );
    let request = BatchRequest::parse(json.as_bytes(), 4096, &NoModels).unwrap();
    assert_eq!(request.pipeline.to_string(), "decode");
    assert_eq!((request.order, request.on_error), (Order::Any, OnError::Row));
    assert_eq!((request.seed, request.epoch), (None, None));
}

/// For gateways with the feature `signed-batches`.
#[test]
fn a_signed_batch_has_no_signatures_in_its_body() {
    let json = r#"{"pipeline":"decode","split":"full","on_error":"row","order":"request","samples":[{"path":"/b/k","version":"v1"},{"path":"/b/l"}]}"#;
    let request = BatchRequest::parse(json.as_bytes(), 2, &NoModels).unwrap();
    let version = BatchSample {
        version: Some("v1".to_owned()),
        ..BatchSample::for_signed_batch("/b/k")
    };
    let samples = vec![version, BatchSample::for_signed_batch("/b/l")];
    assert_eq!(
        request,
        BatchRequest::for_signed_batch(Pipeline::parse("decode").unwrap(), samples)
    );
    assert_eq!(String::from_utf8(request.to_json().unwrap()).unwrap(), json);
}

/// For gateways with the feature `stores`.
#[test]
fn a_request_states_the_store_that_its_samples_are_signed_for() {
    let mut request = request();
    request.store = Some("https://photos.s3.example; bucket=photos".parse().unwrap());
    // The host names the bucket: a key needs no slash.
    request.samples[0].path = "/1.jpg".to_owned();
    let json = String::from_utf8(request.to_json_for(&Features::default()).unwrap()).unwrap();
    let stated =
        r#""order":"request","store":{"url":"https://photos.s3.example","bucket":"photos"},"presign":"#;
    assert!(json.contains(stated), "{json}");
    assert_eq!(
        BatchRequest::parse(json.as_bytes(), 3, &NoModels).unwrap(),
        request
    );
    assert_eq!(request.samples[1].id(request.store.as_ref()), b"b/k 1.jpg");
    request.samples.remove(0);
    request.store = Some("http://127.0.0.1:8333".parse().unwrap());
    let json = String::from_utf8(request.to_json().unwrap()).unwrap();
    assert!(
        json.contains(r#""store":{"url":"http://127.0.0.1:8333"},"presign":"#),
        "{json}"
    );
    assert_eq!(
        BatchRequest::parse(json.as_bytes(), 3, &NoModels).unwrap(),
        request
    );
}

#[test]
fn the_presigned_query_is_not_shown() {
    let request = request();
    assert!(!format!("{request:?}").contains("X-Amz-Credential"));
    assert!(format!("{request:?}").contains("/b/k%201.jpg"));
}

#[test]
fn invalid_stores_are_errors_without_secrets() {
    let at = |url: &str, bucket: Option<&str>| serde_json::json!({"url": url, "bucket": bucket});
    for (store, expected) in [
        (at("file:///etc/passwd", None), "begins with http:// or https://"),
        (at("http://key:secret@store", None), "without a user name"),
        (
            at("http://store/?X-Amz-Security-Token=secret", None),
            "found a path or a query",
        ),
        (
            at("http://s3.example", Some("photos")),
            "the first label of the host `s3.example`",
        ),
        (
            serde_json::json!({"bucket": "photos"}),
            "expected an object with `url`",
        ),
        (
            serde_json::json!({"url": "http://s3.example", "region": "secret"}),
            "expected an object with `url`",
        ),
        (
            "https://s3.example/?X-Amz-Security-Token=secret".into(),
            "expected an object with `url`",
        ),
    ] {
        let error = fault(|json| json["store"] = store);
        assert_eq!(error.kind(), ErrorKind::InvalidWire, "{error}");
        let error = error.to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
    let error = fault(|json| {
        json["store"] = at("http://photos.s3.example", Some("photos"));
        json["samples"][1]["path"] = "/".into();
    });
    assert!(
        error
            .to_string()
            .contains("sample 1: invalid path: expected /key"),
        "{error}"
    );
    let unsigned = r#"{"pipeline":"decode","store":{"url":"http://store"},"samples":[{"path":"/b/k"}]}"#;
    let error = BatchRequest::parse(unsigned.as_bytes(), 2, &NoModels).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("unexpected store: expected it with `presign`"),
        "{error}"
    );
}

#[test]
fn pipeline_errors_keep_kind_and_position() {
    let error = fault(|json| json["pipeline"] = "decode | rezise(8)".into());
    assert_eq!(
        (error.kind(), error.position()),
        (ErrorKind::InvalidPipeline, Some(9))
    );
    let error = fault(|json| json["pipeline"] = serde_json::json!([{"step": "to_float"}]));
    assert_eq!(
        (error.kind(), error.position()),
        (ErrorKind::InvalidPipeline, Some(0))
    );
}

#[test]
fn invalid_requests_are_errors_with_a_reason() {
    let faults: [(Change, &str); 28] = [
        (
            |json| {
                json["pipeline"] = "select".into();
                json["samples"][1]["max_bytes"] = 1000.into();
            },
            "sample 1: max_bytes is not supported for pipelines with tables",
        ),
        (
            |json| json["pipelines"] = "decode".into(),
            "unknown field `pipelines`",
        ),
        (
            |json| json["samples"][0]["key"] = "k".into(),
            "unknown field `key`",
        ),
        (
            |json| json["pipeline"] = 1.into(),
            "expected a string or an array",
        ),
        (|json| json["split"] = 4.into(), "found split 4, expected 0 to 3"),
        (|json| json["split"] = "half".into(), "found split \"half\""),
        (
            |json| json["samples"][2]["split"] = 4.into(),
            "sample 2: found split 4",
        ),
        (
            |json| json["samples"] = serde_json::json!([]),
            "expected 1 to 4 samples, found 0",
        ),
        (
            |json| json["samples"][1]["path"] = "/b".into(),
            "sample 1: invalid path",
        ),
        (|json| json["presign"] = "acl".into(), "found \"acl\""),
        (
            |json| json["presign"] = serde_json::Value::Null,
            "sample 0: unexpected signature",
        ),
        (
            |json| json["samples"][1]["signature"] = serde_json::Value::Null,
            "sample 1: missing signature",
        ),
        (
            |json| json["on_error"] = "raise".into(),
            "unknown variant `raise`",
        ),
        (
            |json| json["samples"][1]["etag"] = "\"a b\"".into(),
            "sample 1: invalid etag",
        ),
        (
            |json| json["cache"] = serde_json::json!({"epochs": 1}),
            "missing field `samples`",
        ),
        (
            |json| json["cache"] = serde_json::json!({"epochs": 1, "samples": 2, "uses": 3}),
            "unknown field `uses`",
        ),
        (
            |json| json["demand"] = serde_json::json!({"reader": "a", "cores": 1e7}),
            "invalid demand: expected 0 to 1000000 cores, found 10000000",
        ),
        (
            |json| json["demand"] = serde_json::json!({"reader": "a", "cores": -1}),
            "found -1",
        ),
        (
            |json| json["demand"] = serde_json::json!({"reader": "a b", "cores": 1}),
            "found \"a b\"",
        ),
        (
            |json| json["demand"] = serde_json::json!({"reader": "a"}),
            "missing field `cores`",
        ),
        (
            |json| json["demand"] = serde_json::json!({"reader": "a", "cores": 1, "rate": 2}),
            "unknown field `rate`",
        ),
        (
            |json| json["samples"][1]["member"] = "a.jpg".into(),
            "sample 1: invalid member: expected `offset`",
        ),
        (
            |json| json["columns"] = serde_json::json!(["cls", "cls"]),
            "repeated \"cls\"",
        ),
        (
            |json| {
                json["columns"] = serde_json::json!(["cls"]);
                json["samples"][2] = member();
            },
            "sample 2: invalid columns: expected 1, as the request has names, or none, found 2",
        ),
        (
            |json| json["samples"][0] = member(),
            "sample 0: invalid columns: expected 0",
        ),
        (
            |json| {
                json["pipeline"] = "select".into();
                json["table"] = serde_json::json!({});
                json["samples"][1] = member();
            },
            "sample 1 is a member of a shard",
        ),
        (|json| json["seed"] = (-1).into(), "invalid value"),
        (|json| json["epoch"] = 4_294_967_296_u64.into(), "invalid value"),
    ];
    for (change, expected) in faults {
        let error = fault(change);
        assert_eq!(error.kind(), ErrorKind::InvalidWire, "{error}");
        assert!(
            error.to_string().contains(expected),
            "expected {expected}, found {error}"
        );
    }
    let error = BatchRequest::parse(&request().to_json().unwrap(), 2, &NoModels).unwrap_err();
    assert!(
        error.to_string().contains("expected 1 to 2 samples, found 3"),
        "{error}"
    );
}

#[test]
fn hostile_json_is_an_error() {
    for json in ["", "null", "[]", "{}", "{\"pipeline\":", "\u{0}"] {
        assert_eq!(
            BatchRequest::parse(json.as_bytes(), 1, &NoModels)
                .unwrap_err()
                .kind(),
            ErrorKind::InvalidWire,
            "{json}"
        );
    }
    let deep = format!("{{\"pipeline\": {}", "[".repeat(1 << 20));
    assert_eq!(
        BatchRequest::parse(deep.as_bytes(), 1, &NoModels)
            .unwrap_err()
            .kind(),
        ErrorKind::InvalidWire
    );
    let long = vec![b' '; MAX_REQUEST_BYTES + 1];
    assert_eq!(
        BatchRequest::parse(&long, 1, &NoModels).unwrap_err().kind(),
        ErrorKind::TooLarge
    );
}
