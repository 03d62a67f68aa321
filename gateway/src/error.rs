//! The gateway's own errors: a kind, a message for the caller, and the cause for the log.
//!
//! What a kind looks like on the wire (S3 code, status, headers) is decided in [`crate::s3::errors`] alone.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::body::BoxError;

/// What went wrong, as far as a caller can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The pipeline's text is malformed, too long or ill-typed. Never works again unchanged.
    InvalidPipeline,
    /// The request contradicts itself or asks for what the gateway does not do.
    InvalidRequest,
    /// A header, parameter or field has a value that means nothing.
    InvalidArgument,
    /// The request line and the headers together are over their limit.
    HeadTooLarge,
    /// The request line is longer than any URL of S3.
    UriTooLong,
    /// A method that makes no sense here, `CONNECT` and `Upgrade` included.
    MethodNotAllowed,
    /// No form that the caller accepts can hold the answer.
    NotAcceptable,
    /// A condition of the request does not hold.
    PreconditionFailed,
    /// The object or the answer is over its limit.
    EntityTooLarge,
    /// A range that the answer does not have.
    InvalidRange,
    /// The object's bytes are not what the pipeline reads.
    UndecodableObject,
    /// The object is well-formed, but a step cannot be applied to it.
    UnsuitableObject,
    /// The caller stopped sending in the middle of its request.
    RequestTimeout,
    /// What is asked for does not exist here.
    NotFound,
    /// The store no longer accepts the caller's signature, which it accepted before.
    AccessDenied,
    /// The object was replaced while it was read. Worth a retry.
    Replaced,
    /// What is asked for is switched off, or the library for it is missing.
    NotImplemented,
    /// A fault of the gateway.
    Internal,
    /// The store cannot be reached, or closed the connection without an answer. Worth a retry.
    OriginUnavailable,
    /// The gateway is at a limit. Worth a retry after a pause.
    SlowDown,
    /// The store took too long. Worth a retry.
    OriginTimeout,
}

/// An error that becomes the caller's answer.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<BoxError>,
    retry_after: Option<Duration>,
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

// === impl Error ===

impl Error {
    /// An error with a message that the caller may read: no addresses, no causes, no secrets.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let retry_after = kind.default_retry_after();
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            source: None,
            retry_after,
        }))
    }

    /// Adds the cause, which only the log shows.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Overrides the pause that the caller is asked for.
    #[must_use]
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        self.0.retry_after = Some(pause);
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The pause that the caller is asked for, if a retry is worth it.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

/// The pipeline's errors by their kinds; what is no fault of the request is one of the gateway's.
impl From<pushdown::Error> for Error {
    fn from(error: pushdown::Error) -> Self {
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
    /// Whether the gateway or the store is at fault, and not the caller.
    pub fn is_fault(self) -> bool {
        matches!(
            self,
            Self::Internal | Self::OriginUnavailable | Self::OriginTimeout
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

/// A cause with its own causes on one line, for the log.
///
/// Errors quote what callers and stores sent. Characters that end a line, steer a terminal or reorder text are escaped here,
/// so that nobody can write log lines of their own.
#[derive(Debug)]
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Escaped(self.0))?;
        std::iter::successors(self.0.source(), |error| error.source())
            .try_for_each(|cause| write!(f, ": {}", Escaped(cause)))
    }
}

/// Text on one line: every character is escaped that is not for display.
#[derive(Debug)]
pub struct Escaped<T>(pub T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaper(f), "{}", self.0)
    }
}

struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(steers) {
            self.0.write_str(&rest[..at])?;
            let mut characters = rest[at..].chars();
            if let Some(character) = characters.next() {
                write!(self.0, "{}", character.escape_default())?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

/// Control characters, Unicode's separators of lines and paragraphs, and its marks that change the direction of text.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

const _: () = assert!(
    size_of::<Error>() == size_of::<usize>(),
    "errors travel in every result: keep them small"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_for_the_log_alone() {
        let cause = std::io::Error::other("10.0.0.7 refused");
        let error =
            Error::new(ErrorKind::OriginUnavailable, "the store cannot be reached").with_source(cause);
        assert_eq!(error.to_string(), "the store cannot be reached");
        assert_eq!(
            Chain(&error).to_string(),
            "the store cannot be reached: 10.0.0.7 refused"
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn nobody_writes_a_log_line_of_their_own() {
        let error = Error::new(
            ErrorKind::InvalidArgument,
            "x-pushdown-seed is `1\r\n2026-01-01 INFO served\u{1b}[2K\u{9b}1A\u{2028}\u{202e}é`",
        );
        assert_eq!(
            Chain(&error).to_string(),
            r"x-pushdown-seed is `1\r\n2026-01-01 INFO served\u{1b}[2K\u{9b}1A\u{2028}\u{202e}é`"
        );
    }
}
