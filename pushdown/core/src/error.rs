//! The error type of this crate: a kind for callers, a message for people.

use std::{borrow::Cow, fmt, sync::Arc};

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text or the types of a pipeline are invalid; [`Error::position`] says where. A retry does not help.
    InvalidPipeline,
    /// A request or an answer is malformed. A retry does not help.
    InvalidWire,
    /// The bytes cannot be decoded: unknown format, truncated, corrupt, or over the pixel limit.
    Undecodable,
    /// The sample is valid, but the step cannot be applied to it: it is too small to crop, for example.
    Unsuitable,
    /// A value exceeds its limit, or its computation exceeds a resource limit.
    TooLarge,
    /// A [`Source`](crate::Source) failed to read the object.
    Source,
    /// A model cannot be used; the message has the reason.
    InvalidModel,
    /// ONNX Runtime is missing or too old.
    ModelRuntime,
    /// A bug of this crate or of a codec.
    Internal,
}

impl ErrorKind {
    /// The code in error columns, also used as S3 error code where one applies.
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidPipeline => "InvalidPipeline",
            Self::InvalidWire => "InvalidRequest",
            Self::Undecodable => "UndecodableObject",
            Self::Unsuitable => "UnsuitableObject",
            Self::TooLarge => "EntityTooLarge",
            Self::Source => "SourceUnavailable",
            Self::InvalidModel => "InvalidModel",
            Self::ModelRuntime => "ModelRuntimeUnavailable",
            Self::Internal => "InternalError",
        }
    }
}

/// An error of the pipeline language, of an operator or of a wire format.
///
/// Clones share the source. Errors are equal if kind, position and message are.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    position: Option<u32>,
    message: Cow<'static, str>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with a message for people, in lower case and without a final full stop.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            position: None,
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause. A [`Source`](crate::Source) gets its own error back from the error of a scan:
    /// `error.source().downcast_ref()`.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// An error of the kind [`InvalidPipeline`](ErrorKind::InvalidPipeline) at a byte offset of the text.
    pub fn pipeline(position: usize, message: impl fmt::Display) -> Self {
        Self {
            kind: ErrorKind::InvalidPipeline,
            position: u32::try_from(position).ok(),
            message: format!("at {}: {message}", position + 1).into(),
            source: None,
        }
    }

    /// Adds the position in the pipeline's text.
    #[must_use]
    pub fn with_position(mut self, position: usize) -> Self {
        self.message = format!("at {}: {}", position + 1, self.message).into();
        self.position = u32::try_from(position).ok();
        self
    }

    /// The position, and the message without it.
    pub fn split_position(&self) -> (Option<usize>, &str) {
        let Some(position) = self.position else {
            return (None, &self.message);
        };
        let position = position as usize;
        let prefix = format!("at {}: ", position + 1);
        (
            Some(position),
            self.message.strip_prefix(&prefix).unwrap_or(&self.message),
        )
    }

    /// Appends to the message.
    #[must_use]
    pub fn with_suffix(mut self, suffix: impl fmt::Display) -> Self {
        self.message = format!("{}{suffix}", self.message).into();
        self
    }

    /// An error of the kind [`InvalidWire`](ErrorKind::InvalidWire).
    pub fn wire(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidWire, message)
    }

    /// An error of the kind [`Undecodable`](ErrorKind::Undecodable).
    pub fn undecodable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Undecodable, message)
    }

    /// An error of the kind [`Unsuitable`](ErrorKind::Unsuitable).
    pub fn unsuitable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unsuitable, message)
    }

    /// An error of the kind [`TooLarge`](ErrorKind::TooLarge).
    pub fn too_large(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }

    /// An error of the kind [`InvalidModel`](ErrorKind::InvalidModel).
    pub fn model(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidModel, message)
    }

    /// An error of the kind [`ModelRuntime`](ErrorKind::ModelRuntime).
    pub fn runtime(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::ModelRuntime, message)
    }

    /// An error of the kind [`Internal`](ErrorKind::Internal).
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The kind of the error.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The position in the pipeline's text: a byte offset from 0. The message counts from 1.
    pub const fn position(&self) -> Option<u32> {
        self.position
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

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.position, &self.message) == (other.kind, other.position, &other.message)
    }
}

impl Eq for Error {}

const _: () = assert!(
    size_of::<Error>() <= 64,
    "every Result contains an error: keep it small"
);

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn the_source_of_an_error_survives_changes_of_its_message() {
        let error = Error::new(ErrorKind::Source, "cannot read").with_source(std::io::Error::other("disk"));
        let error = error.with_position(3).with_suffix("!").clone();
        let source = error.source().unwrap().downcast_ref::<std::io::Error>();
        assert_eq!(source.unwrap().to_string(), "disk");
        assert_eq!(error.to_string(), "at 4: cannot read!");
        let other = Error::new(ErrorKind::Source, "cannot read")
            .with_position(3)
            .with_suffix("!");
        assert_eq!(error, other, "the source does not count");
        assert!(other.source().is_none());
    }
}
