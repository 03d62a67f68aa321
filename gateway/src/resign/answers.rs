//! Documents in the store's answers, read as a whole and replaced.

use bytes::BytesMut;
use http::{
    HeaderMap, Response,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, ETAG},
    response::Parts,
};

use crate::{
    body::{self, Body},
    error::{Error, ErrorKind, Result},
    origin::next_bytes,
};

/// Most bytes of a document of the store.
const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// Reads a document.
///
/// # Errors
/// [`ErrorKind::OriginUnavailable`] if it is too long, compressed or not UTF-8.
pub(super) async fn read_document(headers: &HeaderMap, mut body: Body) -> Result<String> {
    let encoding = headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding.as_bytes() != b"identity") {
        return Err(invalid("no Content-Encoding"));
    }
    let mut document = BytesMut::new();
    while let Some(bytes) = next_bytes(&mut body).await? {
        if document.len() + bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(invalid("a document of at most 8 MiB"));
        }
        document.extend_from_slice(&bytes);
    }
    String::from_utf8(document.into()).map_err(|error| invalid("UTF-8").with_source(error))
}

/// The answer with another document.
pub(super) fn replace_document(mut parts: Parts, document: String) -> Response<Body> {
    // The length is set when the answer is sent.
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(ETAG);
    parts.headers.remove("content-md5");
    Response::from_parts(parts, body::full(document))
}

/// The error for another answer of the store than `expected`.
pub(super) fn invalid(expected: &str) -> Error {
    Error::new(
        ErrorKind::OriginUnavailable,
        format!("invalid answer of the store: expected {expected}"),
    )
}
