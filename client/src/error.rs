//! One error type for the whole library: a kind for callers, a text for people.

use std::{borrow::Cow, fmt, sync::Arc};

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

/// An error of the reader. Clones share the source.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    position: Option<u32>,
    message: Cow<'static, str>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
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
        self.source = Some(source.into().into());
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Implemented by hand: a derived `source` would return the `Arc`, which nobody can downcast.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Passes an error of reading an object through a scan on this host.
impl From<Error> for pushdown::Error {
    fn from(error: Error) -> Self {
        Self::new(pushdown::ErrorKind::Source, error.to_string()).with_source(error)
    }
}

/// An error in the pipeline's text keeps its position; every other error is an invalid value. An error of the reader that
/// passed through a scan comes back unchanged.
impl From<pushdown::Error> for Error {
    fn from(error: pushdown::Error) -> Self {
        let own = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Self>());
        if let Some(own) = own {
            return own.clone();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_passes_through_a_scan() {
        let error = Error::new(ErrorKind::Timeout, "no answer").with_source(std::io::Error::other("timer"));
        let scan_error = pushdown::Error::from(error);
        assert_eq!(scan_error.kind(), pushdown::ErrorKind::Source);
        let error = Error::from(scan_error);
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
        let cause = std::error::Error::source(&error).unwrap();
        assert_eq!(cause.to_string(), "timer");
    }
}
