//! The range of an answer that a request asks for.

use std::ops::Range;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use pushdown_s3::conditions::{self, UnsatisfiableRange};

use super::headers::insert;
use crate::error::{Error, ErrorKind, Result};

/// Which bytes of an answer of `length` bytes to send, with the status of the answer: all, or the range that `request` asks for. Adds the
/// headers about ranges and the length to `headers`, which has the ETag.
///
/// # Errors
/// [`ErrorKind::InvalidRange`] for a range outside the answer.
pub(in crate::routes) fn select(
    request: &HeaderMap,
    headers: &mut HeaderMap,
    length: u64,
) -> Result<(StatusCode, Range<u64>)> {
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let (status, range) = match conditions::range(request, headers.get(header::ETAG), length) {
        Ok(None) => (StatusCode::OK, 0..length),
        Ok(Some(range)) => {
            let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            insert(headers, header::CONTENT_RANGE.as_str(), &text);
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Err(UnsatisfiableRange) => {
            let message = format!("invalid range: expected one within the answer of {length} bytes");
            return Err(Error::new(ErrorKind::InvalidRange, message));
        }
    };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    Ok((status, range))
}
