//! Headers that are forwarded: all except those that describe a single hop.

use http::header::{
    CONNECTION, CONTENT_LENGTH, DATE, EXPECT, LAST_MODIFIED, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::s3::errors::REQUEST_ID;
use crate::s3::sign::ClaimedHeaders;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

const HOP_BY_HOP: [HeaderName; 5] = [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, UPGRADE];

/// Headers of an object that also apply to a derived answer. Its ETag, checksums, length, type and encoding do not.
const DERIVED: [HeaderName; 6] = [
    DATE,
    LAST_MODIFIED,
    REQUEST_ID,
    HeaderName::from_static("x-amz-id-2"),
    HeaderName::from_static("x-amz-version-id"),
    HeaderName::from_static("x-amz-expiration"),
];

/// User metadata applies, too: it may contain labels.
const METADATA_PREFIX: &str = "x-amz-meta-";

/// The headers of the store's answer that also apply to an answer that is derived from the object.
pub fn derived_headers(source: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in source {
        if DERIVED.contains(name) || name.as_str().starts_with(METADATA_PREFIX) {
            headers.append(name, value.clone());
        }
    }
    headers
}

/// Drops the hop-by-hop headers of a request, except signed ones.
///
/// `transfer-encoding` stays: hyper reads it to know that a GET has a body, and keeps it correct.
pub fn strip_request(headers: &mut HeaderMap, query: Option<&str>) {
    if !has_hop_by_hop(headers) {
        return;
    }
    let original = headers.clone();
    let signed = ClaimedHeaders::read(&original, query);
    strip(headers, &original, |name| signed.contains(name));
}

/// Drops from a request without a body every header that could make the store wait for a body or parse the connection
/// differently. Signed ones too: an unverified signature must not decide how the next request on the connection is
/// parsed. A store that requires such a signed header refuses the request.
///
/// One `Content-Length: 0` is correct, and stays.
pub(super) fn strip_framing(headers: &mut HeaderMap) {
    let is_zero_length =
        |name: &HeaderName, value: &HeaderValue| name == CONTENT_LENGTH && value.as_bytes() == b"0";
    let is_dropped =
        |name: &HeaderName, value: &HeaderValue| is_framing(name) && !is_zero_length(name, value);
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    if lengths <= 1 && !headers.iter().any(|(name, value)| is_dropped(name, value)) {
        return;
    }
    // Rebuilt, because removing a header from a map moves its last header into the gap.
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in &*headers {
        let is_repeated = name == CONTENT_LENGTH && kept.contains_key(CONTENT_LENGTH);
        if !is_dropped(name, value) && !is_repeated {
            kept.append(name, value.clone());
        }
    }
    *headers = kept;
}

/// Whether a header describes the framing of the body, or the connection.
fn is_framing(name: &HeaderName) -> bool {
    const FRAMING: [HeaderName; 8] = [
        CONTENT_LENGTH,
        TRANSFER_ENCODING,
        TE,
        TRAILER,
        EXPECT,
        CONNECTION,
        KEEP_ALIVE,
        UPGRADE,
    ];
    FRAMING.contains(name) || name.as_str().starts_with("proxy-")
}

/// Drops the hop-by-hop headers of an answer, and its framing: hyper sets the framing of the next hop.
pub fn strip_response(headers: &mut HeaderMap) {
    if has_hop_by_hop(headers) {
        let original = headers.clone();
        strip(headers, &original, |_| false);
    }
    headers.remove(TRANSFER_ENCODING);
}

fn has_hop_by_hop(headers: &HeaderMap) -> bool {
    HOP_BY_HOP.iter().any(|name| headers.contains_key(name))
}

/// Rebuilds the map, because removing a header from a map moves its last header into the gap.
fn strip(headers: &mut HeaderMap, original: &HeaderMap, keep: impl Fn(&HeaderName) -> bool) {
    let named: Vec<HeaderName> = original
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    headers.clear();
    for (name, value) in original {
        if keep(name) || !(HOP_BY_HOP.contains(name) || named.contains(name)) {
            headers.append(name, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            })
    }

    #[test]
    fn hop_by_hop_headers_are_dropped_and_others_keep_their_order() {
        let mut request = headers(&[
            ("connection", "keep-alive, x-mine"),
            ("host", "gateway"),
            ("x-mine", "1"),
            ("x-amz-meta-a", "1"),
            ("keep-alive", "timeout=5"),
            ("x-amz-meta-a", "2"),
            ("transfer-encoding", "chunked"),
        ]);
        strip_request(&mut request, None);
        let left: Vec<_> = request
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        let expected = [
            ("host", "gateway"),
            ("x-amz-meta-a", "1"),
            ("x-amz-meta-a", "2"),
            ("transfer-encoding", "chunked"),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn signed_headers_are_never_dropped() {
        let mut request = headers(&[
            ("te", "trailers"),
            ("connection", "close"),
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=a/d/r/s3/aws4_request, SignedHeaders=host;te, Signature=0",
            ),
        ]);
        strip_request(&mut request, None);
        assert!(request.contains_key("te") && !request.contains_key("connection"));
    }

    #[test]
    fn framing_headers_are_dropped_from_requests_without_a_body() {
        let mut read = headers(&[
            ("host", "gateway"),
            ("content-length", "49"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("x-amz-meta-a", "1"),
            ("connection", "close"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "x"),
            ("proxy-connection", "close"),
            ("trailer", "x-amz-checksum-crc32"),
            ("upgrade", "h2c"),
            ("user-agent", "test"),
        ]);
        strip_framing(&mut read);
        let left: Vec<_> = read.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["host", "x-amz-meta-a", "user-agent"]);
    }

    #[test]
    fn a_single_zero_content_length_is_kept() {
        let mut read = headers(&[
            ("host", "gateway"),
            ("content-length", "0"),
            ("content-length", "0"),
            ("content-length", "49"),
            ("accept", "*/*"),
        ]);
        strip_framing(&mut read);
        let expected = headers(&[("host", "gateway"), ("content-length", "0"), ("accept", "*/*")]);
        assert_eq!(
            read.iter().collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>()
        );
    }
}
