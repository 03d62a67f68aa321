//! Fields of a batch request that not every gateway knows.

use pushdown_wire::Features;
use serde::Serialize;
use serde_json::{Result, Value};

/// Names of the fields, of a request or of its samples, that are newer than version 0.1.0, each with the feature of a gateway that
/// knows it. A field is sent only to a gateway that lists its feature. A field may be added here if a request without it has the
/// same values.
pub(super) const OPTIONAL_FIELDS: &[(&str, &str)] = &[
    ("cache", Features::CACHE),
    ("deliver", Features::DELIVER),
    ("demand", Features::DEMAND),
    ("etag", Features::CACHE),
    ("form", Features::CROPPED_JPEG),
    ("pin", Features::DELIVER),
];

/// The field of a sample that is a condition if the sample is a member of a shard.
const CONDITION: &str = "etag";

/// The request as JSON, without the `optional` fields whose features are not listed.
pub(super) fn to_json(
    request: &impl Serialize,
    optional: &[(&str, &str)],
    features: &Features,
) -> Result<Vec<u8>> {
    let unknown = optional.iter().filter(|(_, feature)| !features.has(feature));
    let unknown: Vec<&str> = unknown.map(|(name, _)| *name).collect();
    // A value is a copy of all samples.
    if unknown.is_empty() {
        return serde_json::to_vec(request);
    }
    let mut json = serde_json::to_value(request)?;
    remove(&mut json, &unknown);
    if let Some(samples) = json.get_mut("samples").and_then(Value::as_array_mut) {
        for sample in samples {
            remove(sample, &unknown);
        }
    }
    serde_json::to_vec(&json)
}

/// Removes fields. That of a member which is a condition stays: without it the value could be another one.
fn remove(json: &mut Value, names: &[&str]) {
    if let Value::Object(fields) = json {
        let is_member = fields.contains_key("member");
        for name in names.iter().filter(|name| !(is_member && **name == CONDITION)) {
            fields.remove(*name);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_newer_field_is_sent_once_its_feature_is_listed() {
        let request = json!({
            "pipeline": "decode",
            "priority": 3,
            "samples": [{"path": "/b/k", "digest": "00"}, {"path": "/b/l"}]
        });
        let sent = |features: &str| -> Value {
            let optional = [("priority", "priority"), ("digest", "check")];
            let json = to_json(&request, &optional, &Features::parse(features)).unwrap();
            serde_json::from_slice(&json).unwrap()
        };
        assert_eq!(sent("check, families, priority"), request);
        let old = json!({"pipeline": "decode", "samples": [{"path": "/b/k"}, {"path": "/b/l"}]});
        assert_eq!(sent(""), old);
        let some =
            json!({"pipeline": "decode", "priority": 3, "samples": [{"path": "/b/k"}, {"path": "/b/l"}]});
        assert_eq!(sent("priority"), some);
    }

    #[test]
    fn the_version_of_a_shard_is_always_sent() {
        let request = json!({
            "samples": [{"path": "/b/k.tar", "member": "a.jpg", "etag": "1"}, {"path": "/b/l", "etag": "2"}]
        });
        let json = to_json(&request, OPTIONAL_FIELDS, &Features::parse("members")).unwrap();
        let expected = json!({
            "samples": [{"path": "/b/k.tar", "member": "a.jpg", "etag": "1"}, {"path": "/b/l"}]
        });
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), expected);
    }

    #[test]
    fn a_gateway_of_this_version_knows_all_fields() {
        let features = Features::all();
        assert!(OPTIONAL_FIELDS.iter().all(|(_, feature)| features.has(feature)));
    }
}
