//! One error type for the whole library: a kind for callers, a text for people.

use std::borrow::Cow;

/// What went wrong, as far as a caller needs to distinguish cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is missing or invalid. Never retried.
    Config,
    /// The pipeline or its split is invalid; [`Error::position`] is the place in its text. Never retried.
    Pipeline,
    /// No credentials were found, or their provider failed.
    Credentials,
    /// The endpoint does not serve pushdown batches. Never retried.
    NotAGateway,
    /// The endpoint refused the request; the text contains its code and message. Never retried.
    Refused,
    /// The endpoint cannot be reached. Retried.
    Unreachable,
    /// The endpoint is overloaded. Retried, not earlier than it asks for.
    Unavailable,
    /// A timeout ran out. Retried.
    Timeout,
    /// An answer broke off. Retried; the part that arrived is kept.
    Interrupted,
    /// An answer is invalid. Never retried.
    Protocol,
    /// A sample could not be delivered; the text names it.
    Sample,
    /// A bug in this library.
    Internal,
}

/// An error of the reader.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    position: Option<u32>,
    message: Cow<'static, str>,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of every fallible function in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            position: None,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn config(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    pub(crate) fn protocol(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    #[must_use]
    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of error, for callers.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Position in the pipeline's text, as a byte offset from 0.
    pub const fn position(&self) -> Option<u32> {
        self.position
    }

    /// Whether the same request may succeed later. The reader has already retried such an error.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Unreachable | ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Interrupted
        )
    }
}

/// An error in the pipeline's text keeps its position; every other error is an invalid value.
impl From<pushdown::Error> for Error {
    fn from(error: pushdown::Error) -> Self {
        let kind = match error.kind() {
            pushdown::ErrorKind::InvalidPipeline => ErrorKind::Pipeline,
            pushdown::ErrorKind::Internal => ErrorKind::Internal,
            _ => ErrorKind::Protocol,
        };
        Self {
            kind,
            position: error.position(),
            message: error.to_string().into(),
            source: None,
        }
    }
}

const _: () = assert!(
    size_of::<Error>() <= 64,
    "errors are part of every Result: keep them small"
);
