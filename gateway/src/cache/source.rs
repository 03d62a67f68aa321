//! What the result cache remembers of a stored object: all that an answer needs when the store sends no body.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use pushdown::BytesKind;
use serde::{Deserialize, Serialize};

use crate::origin::derived_headers;

/// A version of an object, as the store described it in the answer from which a value was computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceHead {
    /// The version of the object.
    pub etag: HeaderValue,
    /// Length of the object in bytes.
    pub length: u64,
    /// What its first bytes show.
    pub kind: BytesKind,
    /// The store's headers that also apply to derived answers, without those of each answer alone.
    pub headers: HeaderMap,
}

/// Memory of a head beside its texts: the table of its headers, and its place in the table of known objects.
const ALLOCATION_BYTES: usize = 800;

/// The serialized form.
#[derive(Serialize, Deserialize)]
struct Stored {
    etag: String,
    length: u64,
    kind: BytesKind,
    headers: Vec<(String, String)>,
    /// Entries of earlier versions have none.
    #[serde(default)]
    cost_seconds: Option<f64>,
}

impl SourceHead {
    /// The head of the object in the store's answer with the status 200. `None` if it must not be cached: without a strong ETag,
    /// with `Cache-Control: no-store`, encrypted with a key of a key management service, or with headers that are no text.
    pub fn new(length: u64, kind: BytesKind, answer: &HeaderMap) -> Option<Self> {
        let is_forbidden = answer.get_all(header::CACHE_CONTROL).iter().any(|value| {
            let text = value.to_str().unwrap_or("no-store");
            text.split(',')
                .any(|directive| directive.trim().eq_ignore_ascii_case("no-store"))
        });
        if is_forbidden || is_encrypted_by_kms(answer) {
            return None;
        }
        let mut headers = derived_headers(answer);
        // Of each answer alone.
        headers.remove(header::DATE);
        headers.remove(HeaderName::from_static("x-amz-request-id"));
        headers.remove(HeaderName::from_static("x-amz-id-2"));
        // A weak ETag does not promise the same bytes.
        let etag = answer
            .get(header::ETAG)
            .filter(|etag| !etag.as_bytes().starts_with(b"W/"))?;
        let etag = copy(etag)?;
        // The values of an answer share the buffer that it was read into, which would stay in memory as long as they do.
        headers.values_mut().try_for_each(|value| {
            *value = copy(value)?;
            Some(())
        })?;
        let is_text = headers
            .values()
            .chain([&etag])
            .all(|value| value.to_str().is_ok());
        is_text.then_some(Self {
            etag,
            length,
            kind,
            headers,
        })
    }

    /// The headers of an answer to a request that the store authorized with `answer`: those of this answer, and those of
    /// the object that it lacks, as a 304 does.
    pub fn headers_with(&self, answer: &HeaderMap) -> HeaderMap {
        let mut headers = derived_headers(answer);
        headers.insert(header::ETAG, self.etag.clone());
        for name in self.headers.keys() {
            if !headers.contains_key(name) {
                for value in self.headers.get_all(name) {
                    headers.append(name, value.clone());
                }
            }
        }
        headers
    }

    /// Approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        let headers = self.headers.iter();
        let texts = headers.map(|(name, value)| name.as_str().len() + value.len() + 64);
        size_of::<Self>() + ALLOCATION_BYTES + texts.sum::<usize>()
    }

    /// The serialized form, with the time that the value took from the object.
    pub fn to_json(&self, cost: Duration) -> Vec<u8> {
        let headers = self.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        let stored = Stored {
            etag: String::from_utf8_lossy(self.etag.as_bytes()).into_owned(),
            length: self.length,
            kind: self.kind,
            headers: headers.collect(),
            cost_seconds: Some(cost.as_secs_f64()),
        };
        // Numbers and text: always valid.
        serde_json::to_vec(&stored).unwrap_or_default()
    }

    /// Parses the serialized form; `None` if it is invalid. The time of the value is `None` if it is not known.
    pub fn from_json(json: &[u8]) -> Option<(Self, Option<Duration>)> {
        let stored: Stored = serde_json::from_slice(json).ok()?;
        let mut headers = HeaderMap::with_capacity(stored.headers.len());
        for (name, value) in stored.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_str(&value).ok()?);
        }
        let cost = stored
            .cost_seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let head = Self {
            etag: HeaderValue::from_str(&stored.etag).ok()?,
            length: stored.length,
            kind: stored.kind,
            headers,
        };
        Some((head, cost))
    }
}

/// Whether a GET of the object requires the right to use a key: a 304 decrypts nothing, and may be sent without this right.
fn is_encrypted_by_kms(answer: &HeaderMap) -> bool {
    let encryption = answer.get(HeaderName::from_static("x-amz-server-side-encryption"));
    encryption.is_some_and(|value| value.as_bytes().starts_with(b"aws:kms"))
}

fn copy(value: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_bytes(value.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(extra: &[(&'static str, &'static str)]) -> HeaderMap {
        let all = [
            ("etag", "\"e\""),
            ("date", "Thu, 26 Nov 2026 08:00:00 GMT"),
            ("last-modified", "Wed, 25 Nov 2026 08:00:00 GMT"),
            ("x-amz-request-id", "1"),
            ("x-amz-meta-label", "cat"),
            ("content-type", "image/jpeg"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in all.iter().chain(extra) {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn head(answer: &HeaderMap) -> Option<SourceHead> {
        let kind = BytesKind {
            length: Some(5),
            ..BytesKind::default()
        };
        SourceHead::new(5, kind, answer)
    }

    #[test]
    fn a_head_survives_its_serialized_form() {
        let head = head(&answer(&[("x-amz-meta-label", "tabby")])).unwrap();
        let (json, cost) = (
            head.to_json(Duration::from_millis(3)),
            Some(Duration::from_millis(3)),
        );
        assert_eq!(SourceHead::from_json(&json), Some((head.clone(), cost)));
        // As earlier versions wrote it.
        let earlier = String::from_utf8(json)
            .unwrap()
            .replace(",\"cost_seconds\":0.003", "");
        assert_eq!(SourceHead::from_json(earlier.as_bytes()), Some((head, None)));
        for wrong in [
            &b""[..],
            b"{}",
            b"{\"etag\":\"\",\"length\":1,\"kind\":{},\"headers\":[[\"\\n\",\"\"]]}",
        ] {
            assert_eq!(SourceHead::from_json(wrong), None);
        }
    }

    #[test]
    fn an_answer_without_a_body_gets_the_headers_of_the_object() {
        let head = head(&answer(&[])).unwrap();
        let not_modified = HeaderMap::from_iter([
            (header::ETAG, HeaderValue::from_static("\"e\"")),
            (
                header::DATE,
                HeaderValue::from_static("Fri, 27 Nov 2026 08:00:00 GMT"),
            ),
        ]);
        let headers = head.headers_with(&not_modified);
        assert_eq!(headers["date"], "Fri, 27 Nov 2026 08:00:00 GMT");
        assert_eq!(headers["last-modified"], "Wed, 25 Nov 2026 08:00:00 GMT");
        assert_eq!(headers["x-amz-meta-label"], "cat");
        for gone in ["x-amz-request-id", "content-type"] {
            assert!(!headers.contains_key(gone), "{gone}");
        }
    }

    #[test]
    fn some_objects_are_never_cached() {
        assert!(head(&answer(&[("cache-control", "max-age=5")])).is_some());
        assert_eq!(head(&answer(&[("cache-control", "private, No-Store")])), None);
        let encrypted = |by| head(&answer(&[("x-amz-server-side-encryption", by)]));
        assert!(encrypted("AES256").is_some());
        assert_eq!((encrypted("aws:kms"), encrypted("aws:kms:dsse")), (None, None));
        let weak = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("W/\"e\""))]);
        assert_eq!(head(&weak), None);
        let mut unnamed = answer(&[]);
        unnamed.remove(header::ETAG);
        assert_eq!(head(&unnamed), None);
    }
}
