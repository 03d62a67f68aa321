//! The head of an admitted request, as the store gets it: canonical, and without what only the caller's signature covered.

use std::mem;

use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};
use pushdown::wire::header::PREFIX;

use crate::{
    error::{Error, ErrorKind, Result},
    s3::auth::{PayloadMode, Verified},
};

const AMZ_PREFIX: &str = "x-amz-";
/// Headers of the caller's signature.
const SIGNATURE_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-amz-content-sha256"),
    HeaderName::from_static("x-amz-date"),
    HeaderName::from_static("x-amz-security-token"),
];
/// Other headers that are sent, signed or not. What the gateway signs, it vouches for: others could be rights that stores and
/// proxies pass to each other. `Connection` names headers to drop, after they were verified.
const ORDINARY: [HeaderName; 12] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::EXPECT,
    header::EXPIRES,
    header::ORIGIN,
    header::RANGE,
    header::TRANSFER_ENCODING,
    header::USER_AGENT,
    header::ACCESS_CONTROL_REQUEST_HEADERS,
    header::ACCESS_CONTROL_REQUEST_METHOD,
];
const ORDINARY_PREFIXES: [&str; 3] = ["content-", "if-", "x-pushdown-"];

/// What a rewritten head is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is sent to the store. The gateway may read the answer as text, which must not be compressed then.
    Forward {
        /// Whether it may.
        reads_answer: bool,
    },
    /// The pipeline route reads from it what the gateway is asked for, and makes the request for the object of it.
    Read,
}

/// Replaces target and headers, once and for all. Returns the headers as sent: they declare lengths and trailers of the body.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`] for a parameter that is no valid header.
pub(super) fn rewrite(head: &mut Parts, verified: &Verified, purpose: Purpose) -> Result<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for (name, value) in &head.headers {
        if is_kept(name, verified) && !purpose.drops(name) {
            headers.append(name, value.clone());
        }
    }
    let mut query = String::new();
    for (name, value) in verified.query().pairs() {
        let lower_case = name.to_ascii_lowercase();
        if lower_case.starts_with(AMZ_PREFIX) {
            hoist(&mut headers, name, value)?;
            continue;
        }
        if lower_case.starts_with(PREFIX) && purpose != Purpose::Read {
            continue;
        }
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(name);
        query.push('=');
        query.push_str(value);
    }
    if verified.payload() == PayloadMode::SignedChunks {
        drop_chunk_headers(&mut headers);
    }
    let target = verified.address().path_style() + &query;
    head.uri = target
        .parse()
        .map_err(|error| invalid("invalid request target").with_source(error))?;
    Ok(mem::replace(&mut head.headers, headers))
}

impl Purpose {
    /// Whether a header is for the gateway alone, or would compress an answer that it reads.
    fn drops(self, name: &HeaderName) -> bool {
        match self {
            Self::Forward { reads_answer } => {
                name.as_str().starts_with(PREFIX) || reads_answer && *name == header::ACCEPT_ENCODING
            }
            Self::Read => false,
        }
    }
}

fn is_kept(name: &HeaderName, verified: &Verified) -> bool {
    let text = name.as_str();
    let has_prefix = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    if text.starts_with(AMZ_PREFIX) {
        return verified.has_signed(name) && !SIGNATURE_HEADERS.contains(name);
    }
    ORDINARY.contains(name) || has_prefix(&ORDINARY_PREFIXES)
}

/// Sends a signed `x-amz-*` parameter as the header that it stands for.
fn hoist(headers: &mut HeaderMap, name: &str, value: &str) -> Result<()> {
    let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|error| {
        invalid("invalid parameter x-amz-*: expected the name of a header").with_source(error)
    })?;
    let value = pushdown_s3::escapes::decode_lenient(value).into_owned();
    let value = HeaderValue::from_bytes(&value).map_err(|error| {
        invalid("invalid parameter x-amz-*: expected the value of a header").with_source(error)
    })?;
    headers.insert(name, value);
    Ok(())
}

/// Drops what describes the framing of chunks: the store gets the decoded bytes.
fn drop_chunk_headers(headers: &mut HeaderMap) {
    headers.remove(HeaderName::from_static("x-amz-decoded-content-length"));
    let encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let encodings: Vec<String> = encodings
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|coding| String::from_utf8_lossy(coding).trim().to_owned())
        .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("aws-chunked"))
        .collect();
    headers.remove(header::CONTENT_ENCODING);
    if let Some(others) = HeaderValue::from_str(&encodings.join(","))
        .ok()
        .filter(|value| !value.is_empty())
    {
        headers.insert(header::CONTENT_ENCODING, others);
    }
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_gets_nothing_that_is_for_the_gateway() {
        let forward = Purpose::Forward { reads_answer: false };
        let own = HeaderName::from_static("x-pushdown-seed");
        assert!(forward.drops(&own) && !Purpose::Read.drops(&own));
        assert!(!forward.drops(&header::CONTENT_TYPE));
    }

    #[test]
    fn the_store_does_not_compress_answers_that_the_gateway_reads() {
        for (purpose, can_compress) in [
            (Purpose::Forward { reads_answer: true }, false),
            (Purpose::Forward { reads_answer: false }, true),
            (Purpose::Read, true),
        ] {
            assert_eq!(
                purpose.drops(&header::ACCEPT_ENCODING),
                !can_compress,
                "{purpose:?}"
            );
        }
    }
}
