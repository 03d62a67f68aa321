//! The answer to a request, read in pieces with a timeout.

use std::{fmt, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use pushdown_s3::{AnswerBody, AnswerHead, ErrorDocument, is_transient, parse_retry_after};
use tokio::time::timeout;

use crate::error::{Error, ErrorKind, Result};

/// Header with the region of a bucket.
pub(crate) const BUCKET_REGION: &str = "x-amz-bucket-region";

/// The most bytes of an error document that are read.
const DOCUMENT_BYTES: u64 = 64 << 10;

/// An answer whose body has not been read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// Whether the head says where the body ends. Otherwise a connection that is closed early looks like the end.
    has_end: bool,
    idle: Duration,
}

/// An answer that is an error, with S3's code and message if it has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    /// The region of the bucket, if the answer names it.
    pub(crate) region: Option<String>,
}

impl Answer {
    pub(super) fn new(response: Response<Incoming>, idle: Duration) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            has_end: [header::CONTENT_LENGTH, header::TRANSFER_ENCODING]
                .iter()
                .any(|name| parts.headers.contains_key(name)),
            headers: parts.headers,
            body,
            idle,
        }
    }

    /// A header's value, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The length from `Content-Length`.
    pub(crate) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body; `None` at the end of a complete body.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>> {
        loop {
            let frame = timeout(self.idle, self.body.frame()).await.map_err(|_elapsed| {
                Error::new(ErrorKind::Timeout, format!("no data arrived for {:?}", self.idle))
            })?;
            match frame {
                // An error document may end anywhere.
                None if self.has_end || !self.status.is_success() => return Ok(None),
                None => {
                    let text =
                        "the answer may be incomplete: expected Content-Length or chunks, found neither";
                    return Err(Error::protocol(text));
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    return Err(Error::new(ErrorKind::Interrupted, "the answer broke off").with_source(error));
                }
            }
        }
    }

    /// The whole body; `None` if it has more than `limit` bytes.
    pub(crate) async fn collect(self, limit: u64) -> Result<Option<Bytes>> {
        self.collect_observed(limit, &|_| ()).await
    }

    /// The same. Calls `arrived` with the number of bytes of each part.
    pub(crate) async fn collect_observed(
        mut self,
        limit: u64,
        arrived: &(dyn Fn(u64) + Sync),
    ) -> Result<Option<Bytes>> {
        let promised = self.length().unwrap_or_default();
        if promised > limit {
            return Ok(None);
        }
        let mut whole = BytesMut::with_capacity(usize::try_from(promised).unwrap_or_default());
        while let Some(chunk) = self.chunk().await? {
            if (whole.len() + chunk.len()) as u64 > limit {
                return Ok(None);
            }
            arrived(chunk.len() as u64);
            if whole.is_empty() && chunk.len() as u64 == promised {
                return Ok(Some(chunk));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(Some(whole.freeze()))
    }

    /// Reads the error document.
    pub(crate) async fn refusal(self) -> Refusal {
        let status = self.status;
        let retry_after = self
            .header(header::RETRY_AFTER.as_str())
            .and_then(parse_retry_after);
        let bucket_region = self.header(BUCKET_REGION).map(str::to_owned);
        // If the document cannot be read, the status alone describes the error.
        let document = self
            .collect(DOCUMENT_BYTES)
            .await
            .ok()
            .flatten()
            .unwrap_or_default();
        let ErrorDocument {
            code,
            message,
            region,
        } = ErrorDocument::parse(&document);
        let reason = status.canonical_reason().unwrap_or("no reason given");
        Refusal {
            status,
            code: code.unwrap_or_else(|| format!("Http{}", status.as_u16())),
            message: message.unwrap_or_else(|| reason.to_owned()),
            retry_after,
            region: bucket_region.or(region),
        }
    }
}

impl AnswerHead for Answer {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn content_length(&self) -> Option<u64> {
        self.length()
    }
}

impl AnswerBody for Answer {
    type Error = Error;

    async fn chunk(&mut self) -> Result<Option<Bytes>> {
        Self::chunk(self).await
    }
}

impl Refusal {
    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        // AWS redirects requests for a bucket for a while after it was created. `Location` is never followed.
        is_transient(self.status) || self.status == StatusCode::TEMPORARY_REDIRECT
    }

    /// Converts to an error about `subject`.
    pub(crate) fn into_error(self, subject: &str) -> Error {
        let kind = if self.is_transient() {
            ErrorKind::Unavailable
        } else {
            ErrorKind::Refused
        };
        Error::new(kind, format!("{subject}: {self}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status.as_u16(), self.code, self.message)
    }
}
