//! One error for the whole library: a kind that callers act on, a text that people read.

use std::borrow::Cow;

/// What went wrong, as far as a caller has to tell cases apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is missing or makes no sense. Never retried.
    Config,
    /// The pipeline or its split is wrong; [`Error::position`] says where. Never retried.
    Pipeline,
    /// No credentials were found, or they could not be had.
    Credentials,
    /// The endpoint does not serve pushdown batches. Never retried.
    NotAGateway,
    /// The endpoint refused the request: its own code and message are in the text. Never retried.
    Refused,
    /// The endpoint cannot be reached. Retried.
    Unreachable,
    /// The endpoint has no time or capacity now. Retried, no sooner than it asks.
    Unavailable,
    /// A timeout ran out. Retried.
    Timeout,
    /// An answer broke off. Retried; what arrived of it is kept.
    Interrupted,
    /// An answer makes no sense. Never retried.
    Protocol,
    /// A sample could not be delivered; the text names it.
    Sample,
    /// A defect of this library.
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

/// The result of everything fallible in this crate.
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

    /// What callers act on.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where in the pipeline's text, as a byte offset from 0.
    pub const fn position(&self) -> Option<u32> {
        self.position
    }

    /// Whether the same request may fare better later. The reader has retried such an error already.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Unreachable | ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Interrupted
        )
    }
}

/// A fault of the pipeline's text keeps its position; everything else is a value that makes no sense.
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
    "errors travel in every Result: keep them small"
);
