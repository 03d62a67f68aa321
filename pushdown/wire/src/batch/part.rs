//! What a gateway reports while it makes a part of a data set: lines of JSON.

use serde::{Deserialize, Serialize};

/// Media type of the answer: a line of JSON for each [`PartEvent`].
pub const PART_EVENTS_TYPE: &str = "application/x-ndjson";
/// The most bytes of a line, with its end.
pub const MAX_PART_EVENT_BYTES: usize = 16 << 20;

/// An event while a part is made. The last one is [`Written`](Self::Written) or [`Refused`](Self::Refused); an answer that ends without
/// them is incomplete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartEvent {
    /// The part is being made. Sent at least every few seconds.
    Progress {
        /// Samples whose values are in it, or failed.
        samples: u32,
    },
    /// The store has the part; or, without a target, it would have been written.
    Written(WrittenPart),
    /// There is no part, and the store has none of this request.
    Refused(RefusedPart),
}

/// A part that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WrittenPart {
    /// Bytes of the object.
    pub bytes: u64,
    /// MD5 of the object, as 32 hex digits.
    pub md5: String,
    /// Samples in it.
    pub samples: u32,
    /// CPU time of the steps in seconds.
    pub seconds: f64,
    /// Samples that are not in it, because a step cannot process their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<PartError>,
}

/// Why there is no part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedPart {
    /// What failed.
    pub action: PartAction,
    /// S3 error code of the gateway or of the store.
    pub code: String,
    /// The text of the gateway or of the store.
    pub message: String,
    /// The samples that failed, if samples did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<PartError>,
}

/// What failed of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartAction {
    /// To read a sample, or to compute its value for another reason than its content.
    Read,
    /// To make the part: it is larger than the gateway's limit.
    Make,
    /// To write it to the store.
    Write,
}

/// A sample without a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartError {
    /// Its index in the request.
    pub row: u32,
    /// S3 error code.
    pub code: String,
    /// What failed.
    pub message: String,
}

/// Whether an error is about the content of an object, so that every computation of its value fails. Other errors can pass, or are about
/// rights and versions.
pub fn is_content_error(code: &str) -> bool {
    matches!(code, "UndecodableObject" | "UnsuitableObject" | "EntityTooLarge")
}

/// Whether an object is no longer the one of the caller's list: another version, or gone.
pub fn is_changed_object(code: &str) -> bool {
    matches!(code, "PreconditionFailed" | "NoSuchKey" | "ShardReplaced")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines_of_json() {
        let written = PartEvent::Written(WrittenPart {
            bytes: 1536,
            md5: "0".repeat(32),
            samples: 1,
            seconds: 0.5,
            errors: vec![PartError {
                row: 1,
                code: "UndecodableObject".to_owned(),
                message: "no image".to_owned(),
            }],
        });
        let refused = PartEvent::Refused(RefusedPart {
            action: PartAction::Write,
            code: "AccessDenied".to_owned(),
            message: "the store answered 403".to_owned(),
            errors: Vec::new(),
        });
        for (event, expected) in [
            (
                PartEvent::Progress { samples: 3 },
                r#"{"progress":{"samples":3}}"#.to_owned(),
            ),
            (
                written,
                format!(
                    r#"{{"written":{{"bytes":1536,"md5":"{}","samples":1,"seconds":0.5,"errors":[{{"row":1,"code":"UndecodableObject","message":"no image"}}]}}}}"#,
                    "0".repeat(32)
                ),
            ),
            (
                refused,
                r#"{"refused":{"action":"write","code":"AccessDenied","message":"the store answered 403"}}"#
                    .to_owned(),
            ),
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(line, expected);
            assert_eq!(serde_json::from_str::<PartEvent>(&line).unwrap(), event);
        }
    }
}
