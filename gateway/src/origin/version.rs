//! Reads of ranges of one version of an object.
//!
//! Each read is the caller's signed GET with an unsigned `Range`, and with the first answer's ETag as `If-Match`. Not
//! every store evaluates `If-Match`, so the ETag and the object size of each answer are compared too.

use std::ops::Range;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH, RANGE},
};
use pushdown_s3::ContentRange;

use super::{Origin, OriginObject, OriginRequest, frames};
use crate::error::{Error, ErrorKind, Result};

/// The end of an object.
#[derive(Debug)]
pub enum ObjectTail {
    /// The end, and a handle to read the rest.
    Part(Box<TailPart>),
    /// The whole object, its body unread: the store does not support ranges, or the object is empty.
    Whole(OriginObject),
}

/// The store's answer to a request for the end of an object.
#[derive(Debug)]
pub enum FetchedTail {
    /// The end of the object.
    Tail(ObjectTail),
    /// Any status except 200 and 206: the store's answer to the caller.
    Refused(OriginObject),
}

/// The last bytes of an object.
#[derive(Debug)]
pub struct TailPart {
    /// The store's headers.
    pub headers: HeaderMap,
    /// The last bytes.
    pub bytes: Bytes,
    /// The version of the object that they belong to.
    pub version: ObjectVersion,
}

/// One version of an object. Clones share connections.
#[derive(Debug, Clone)]
pub struct ObjectVersion {
    origin: Origin,
    request: OriginRequest,
    etag: HeaderValue,
    total_bytes: u64,
}

impl Origin {
    /// Reads the last `length` bytes of an object, or the whole object if it is shorter. There is no HEAD before: it would
    /// require another signature.
    pub async fn read_tail(&self, request: OriginRequest, length: u64) -> Result<FetchedTail> {
        let mut suffix = request.clone();
        suffix.add(RANGE, range_value(&format!("-{length}"))?);
        let mut answer = self.read(suffix).await?;
        match answer.status {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Ok(FetchedTail::Tail(ObjectTail::Whole(answer))),
            // No range of an empty object is satisfiable.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let answer = self.read(request).await?;
                return Ok(match answer.status {
                    StatusCode::OK => FetchedTail::Tail(ObjectTail::Whole(answer)),
                    _ => FetchedTail::Refused(answer),
                });
            }
            _ => return Ok(FetchedTail::Refused(answer)),
        }
        let part = ContentRange::from_headers(&answer.headers)
            .filter(|part| part.is_suffix() && part.length() <= length)
            .ok_or_else(|| invalid_answer("Content-Range does not match the requested suffix"))?;
        let etag = answer.headers.get(ETAG).cloned().ok_or_else(|| {
            invalid_answer(
                "expected an ETag with a range, found none; a table is read in parts only with an ETag",
            )
        })?;
        let bytes = frames::read_to_end(&[], &mut answer.body, part.length()).await?;
        let version = ObjectVersion {
            origin: self.clone(),
            request,
            etag,
            total_bytes: part.total_bytes,
        };
        Ok(FetchedTail::Tail(ObjectTail::Part(Box::new(TailPart {
            headers: answer.headers,
            bytes,
            version,
        }))))
    }
}

impl ObjectVersion {
    /// Size of the object in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Reads a range within the object.
    ///
    /// # Errors
    /// [`ErrorKind::Replaced`] if the object was replaced; [`ErrorKind::AccessDenied`] if the signature has expired; and
    /// the errors of [`Origin::read`].
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut request = self.conditional_request();
        let last = range.end.saturating_sub(1);
        request.add(RANGE, range_value(&format!("{}-{last}", range.start))?);
        let mut answer = self.origin.read(request).await?;
        if answer.status == StatusCode::OK {
            return Err(invalid_answer(
                "expected 206 for a range, as for the earlier range, found 200 and the whole object",
            ));
        }
        self.check(&answer, StatusCode::PARTIAL_CONTENT)?;
        match ContentRange::from_headers(&answer.headers) {
            Some(found) if found.total_bytes != self.total_bytes => return Err(replaced_error()),
            Some(found) if found.range == range => {}
            _ => return Err(invalid_answer("Content-Range does not match the requested range")),
        }
        frames::read_to_end(&[], &mut answer.body, range.end - range.start).await
    }

    /// Requests the whole object, and returns the answer with its body unread.
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub async fn read_all(&self) -> Result<OriginObject> {
        let answer = self.origin.read(self.conditional_request()).await?;
        self.check(&answer, StatusCode::OK)?;
        match answer.content_length {
            Some(length) if length == self.total_bytes => Ok(answer),
            _ => Err(replaced_error()),
        }
    }

    fn conditional_request(&self) -> OriginRequest {
        let mut request = self.request.clone();
        request.add(IF_MATCH, self.etag.clone());
        request
    }

    /// Checks that an answer is of this version.
    fn check(&self, answer: &OriginObject, expected: StatusCode) -> Result<()> {
        let status = answer.status;
        if status == expected {
            let is_same = answer.headers.get(ETAG) == Some(&self.etag);
            return if is_same { Ok(()) } else { Err(replaced_error()) };
        }
        Err(match status {
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => replaced_error(),
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Error::new(
                ErrorKind::AccessDenied,
                "the store authorized the request and then refused it during the scan: the signature has expired, or \
                 the permission was revoked; sign the request again and retry",
            ),
            StatusCode::NOT_FOUND => {
                Error::new(ErrorKind::NotFound, "the object was deleted while it was read")
            }
            status => Error::new(
                ErrorKind::OriginUnavailable,
                format!("the store answered {} during the scan", status.as_u16()),
            ),
        })
    }
}

fn replaced_error() -> Error {
    Error::new(
        ErrorKind::Replaced,
        "the object was replaced while it was read; retry to read the new one",
    )
}

fn invalid_answer(reason: &str) -> Error {
    Error::new(
        ErrorKind::OriginUnavailable,
        format!("invalid answer of the store: {reason}"),
    )
}

fn range_value(range: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(&format!("bytes={range}")).map_err(|error| {
        Error::new(ErrorKind::Internal, "cannot write a range as a header value").with_source(error)
    })
}
