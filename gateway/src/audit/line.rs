//! A line of the audit log.

use std::net::SocketAddr;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use super::verdict::Verdict;

/// Most bytes of a text of the caller. Keys of S3 have at most 1,024.
const MAX_TEXT_BYTES: usize = 4096;

/// A line, with its fields in order.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    /// When the request arrived: RFC 3339, UTC.
    pub(super) time: String,
    /// Request id of the gateway's own answer.
    pub(super) id: Option<&'a str>,
    /// Request id of the store's answer.
    pub(super) store_id: Option<&'a str>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) tenant: Option<&'a str>,
    /// Only claimed if there is no tenant.
    pub(super) access_key: Option<&'a str>,
    pub(super) operation: Option<&'a str>,
    pub(super) action: Option<&'a str>,
    pub(super) bucket: Option<&'a str>,
    pub(super) key: Option<&'a str>,
    #[serde(flatten)]
    pub(super) verdict: &'a Verdict,
    /// `None` if there was no answer.
    pub(super) status: Option<u16>,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) milliseconds: u64,
    #[serde(flatten)]
    pub(super) objects: Option<ObjectCounts>,
}

/// The decisions on the objects that a body lists: the samples of a batch, or objects to delete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct ObjectCounts {
    #[serde(rename = "objects_allowed")]
    pub(super) allowed: u64,
    #[serde(rename = "objects_denied")]
    pub(super) denied: u64,
}

impl Line<'_> {
    /// Adds the line to `lines`, with its end.
    pub(super) fn write(&self, lines: &mut String) {
        // Texts and numbers can always be written as JSON.
        if let Ok(json) = serde_json::to_string(self) {
            lines.push_str(&json);
            lines.push('\n');
        }
    }
}

/// A time in RFC 3339, UTC, with milliseconds.
pub(super) fn format_time(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A name of the caller. Bytes that are not UTF-8 are replaced. `None` if it is empty.
pub(super) fn name(bytes: &[u8]) -> Option<String> {
    let start = bytes.get(..MAX_TEXT_BYTES).unwrap_or(bytes);
    let text = String::from_utf8_lossy(start).into_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn line<'a>(verdict: &'a Verdict, key: &'a str, objects: Option<ObjectCounts>) -> Line<'a> {
        Line {
            time: format_time(UNIX_EPOCH + Duration::from_millis(1_700_000_000_250)),
            id: None,
            store_id: Some("17A"),
            peer: Some(SocketAddr::from(([10, 0, 0, 7], 4321))),
            tenant: Some("vision"),
            access_key: Some("PDVISION00000001"),
            operation: Some("GetObject"),
            action: Some("read"),
            bucket: Some("photos"),
            key: Some(key),
            verdict,
            status: Some(200),
            bytes_in: 0,
            bytes_out: 7,
            milliseconds: 12,
            objects,
        }
    }

    fn write(line: &Line<'_>) -> String {
        let mut lines = String::new();
        line.write(&mut lines);
        lines
    }

    #[test]
    fn fields_have_an_order() {
        let allowed = Verdict::Allowed { grant: Some(1) };
        let expected = concat!(
            r#"{"time":"2023-11-14T22:13:20.250Z","id":null,"store_id":"17A","peer":"10.0.0.7:4321","#,
            r#""tenant":"vision","access_key":"PDVISION00000001","operation":"GetObject","action":"read","#,
            r#""bucket":"photos","key":"2024/a.jpg","verdict":"allowed","grant":1,"status":200,"bytes_in":0,"#,
            r#""bytes_out":7,"milliseconds":12}"#,
            "\n",
        );
        assert_eq!(write(&line(&allowed, "2024/a.jpg", None)), expected);
    }

    #[test]
    fn a_name_cannot_forge_a_line() {
        let denied = Verdict::Denied {
            reason: "no grant: read".to_owned(),
        };
        let key = "a\"}\n{\"time\":\u{1}";
        let counts = ObjectCounts {
            allowed: 2,
            denied: 1,
        };
        let text = write(&line(&denied, key, Some(counts)));
        assert_eq!(text.matches('\n').count(), 1);
        let fields: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(fields["key"], key);
        assert_eq!(fields["verdict"], "denied");
        assert_eq!(fields["reason"], "no grant: read");
        assert_eq!(fields["objects_allowed"], 2);
        assert_eq!(fields["objects_denied"], 1);
        assert!(fields.get("grant").is_none());
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(name(b""), None);
        assert_eq!(name(b"a\xffb").as_deref(), Some("a\u{fffd}b"));
        assert_eq!(name(&[b'a'; 5000]).unwrap().len(), MAX_TEXT_BYTES);
    }
}
