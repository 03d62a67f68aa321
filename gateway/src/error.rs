//! The gateway's errors: a kind, a message for the caller, and a cause for the log.
//!
//! Only [`crate::s3::errors`] maps a kind to the wire (S3 code, status, headers).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pushdown_s3::Escaped;

use crate::body::BoxError;

/// The kind of a failure, as far as a caller can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The pipeline's text is malformed, too long or ill-typed. A retry is useless.
    InvalidPipeline,
    /// An XML document of the request is not as S3 defines it.
    MalformedXml,
    /// The body of the request does not match a checksum of its head.
    BadDigest,
    /// The request contradicts itself or asks for something that the gateway does not support.
    InvalidRequest,
    /// A header, parameter or field has an invalid value.
    InvalidArgument,
    /// The name of the bucket breaks the rules of S3.
    InvalidBucketName,
    /// The request line and the headers together exceed their limit.
    HeadTooLarge,
    /// The request line exceeds the longest URL of S3.
    UriTooLong,
    /// The method is not supported on this path; also `CONNECT` and `Upgrade`.
    MethodNotAllowed,
    /// None of the formats that the caller accepts can encode the answer.
    NotAcceptable,
    /// A condition of the request is false.
    PreconditionFailed,
    /// The object or the answer exceeds its limit.
    EntityTooLarge,
    /// The range is outside the answer.
    InvalidRange,
    /// The object is not in a format that the pipeline can decode.
    UndecodableObject,
    /// The object is valid, but a step cannot be applied to it.
    UnsuitableObject,
    /// The caller stopped sending within its request.
    RequestTimeout,
    /// The requested resource does not exist.
    NotFound,
    /// The gateway refuses the caller's signature, or the store does after it had authorized the request.
    AccessDenied,
    /// The operator did not allow the store that the request states, or its bucket.
    StoreNotAllowed,
    /// The gateway has no upstream, and the request states no store.
    NoUpstream,
    /// The object was replaced while it was read. A retry can succeed.
    Replaced,
    /// The shard was replaced after it was indexed. A retry is useless.
    ShardReplaced,
    /// A member is not where the caller's list has it.
    InvalidShard,
    /// The requested feature is switched off, or its library is missing.
    NotImplemented,
    /// A bug or failure of the gateway.
    Internal,
    /// The store refuses the identity with which the gateway signs, or the gateway has none. A retry is useless until its operator has
    /// corrected it.
    InvalidIdentity,
    /// The store is unreachable, or closed the connection without an answer. A retry can succeed.
    OriginUnavailable,
    /// The gateway is saturated. A retry after a pause can succeed.
    SlowDown,
    /// The store took too long. A retry can succeed.
    OriginTimeout,
}

/// An error that becomes the answer to the caller. Clones share the cause.
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    retry_after: Option<Duration>,
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error whose message the caller can see: it must not contain addresses, causes or secrets.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let retry_after = kind.default_retry_after();
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            source: None,
            retry_after,
        }))
    }

    /// Adds the cause. Only the log shows it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into().into());
        self
    }

    /// Overrides the `Retry-After` pause.
    #[must_use]
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        self.0.retry_after = Some(pause);
        self
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The `Retry-After` pause, if a retry can succeed.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

/// Maps the kinds of pipeline errors. Kinds that the request did not cause are internal errors of the gateway. An error of
/// the gateway that passed through a scan comes back unchanged.
impl From<pushdown::Error> for Error {
    fn from(error: pushdown::Error) -> Self {
        let own = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Self>());
        if let Some(own) = own {
            return own.clone();
        }
        let kind = match error.kind() {
            pushdown::ErrorKind::InvalidPipeline => ErrorKind::InvalidPipeline,
            pushdown::ErrorKind::InvalidWire => ErrorKind::InvalidRequest,
            pushdown::ErrorKind::Undecodable => ErrorKind::UndecodableObject,
            pushdown::ErrorKind::Unsuitable => ErrorKind::UnsuitableObject,
            pushdown::ErrorKind::TooLarge => ErrorKind::EntityTooLarge,
            pushdown::ErrorKind::ModelRuntime => ErrorKind::NotImplemented,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

/// Passes an error of reading an object through a scan.
impl From<Error> for pushdown::Error {
    fn from(error: Error) -> Self {
        Self::new(pushdown::ErrorKind::Source, error.to_string()).with_source(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl ErrorKind {
    /// Whether the gateway or the store caused the error, and not the caller.
    pub fn is_fault(self) -> bool {
        matches!(
            self,
            Self::Internal | Self::InvalidIdentity | Self::OriginUnavailable | Self::OriginTimeout
        )
    }

    fn default_retry_after(self) -> Option<Duration> {
        matches!(
            self,
            Self::OriginUnavailable | Self::SlowDown | Self::OriginTimeout | Self::Replaced
        )
        .then_some(Duration::from_secs(1))
    }
}

/// An error and its causes on one line, for the log.
///
/// Errors quote input of callers and stores: they are escaped, so that input cannot forge log lines.
#[derive(Debug)]
pub struct ErrorChain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Escaped(self.0))?;
        std::iter::successors(self.0.source(), |error| error.source())
            .try_for_each(|cause| write!(f, ": {}", Escaped(cause)))
    }
}

const _: () = assert!(
    size_of::<Error>() == size_of::<usize>(),
    "every result contains an error: keep it small"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_log_shows_the_cause() {
        let cause = std::io::Error::other("10.0.0.7 refused");
        let error = Error::new(ErrorKind::OriginUnavailable, "the store is unreachable").with_source(cause);
        assert_eq!(error.to_string(), "the store is unreachable");
        assert_eq!(
            ErrorChain(&error).to_string(),
            "the store is unreachable: 10.0.0.7 refused"
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn an_error_passes_through_a_scan() {
        let cause = std::io::Error::other("10.0.0.7 refused");
        let error = Error::new(ErrorKind::Replaced, "the object was replaced").with_source(cause);
        let scan_error = pushdown::Error::from(error);
        assert_eq!(scan_error.kind(), pushdown::ErrorKind::Source);
        let error = Error::from(scan_error);
        assert_eq!(error.kind(), ErrorKind::Replaced);
        assert_eq!(
            ErrorChain(&error).to_string(),
            "the object was replaced: 10.0.0.7 refused"
        );
    }

    #[test]
    fn input_cannot_forge_log_lines() {
        let error = Error::new(
            ErrorKind::InvalidArgument,
            "x-pushdown-seed is `1\r\n2026-01-01 INFO served\u{1b}[2K\u{9b}1A\u{2028}\u{202e}é`",
        );
        assert_eq!(
            ErrorChain(&error).to_string(),
            r"x-pushdown-seed is `1\r\n2026-01-01 INFO served\u{1b}[2K\u{9b}1A\u{2028}\u{202e}é`"
        );
    }
}
