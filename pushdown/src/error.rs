//! The error type of this crate: a kind for callers, a message for people.

use std::borrow::Cow;

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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    position: Option<u32>,
    message: Cow<'static, str>,
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
        }
    }

    pub(crate) fn pipeline(position: usize, message: impl std::fmt::Display) -> Self {
        Self {
            kind: ErrorKind::InvalidPipeline,
            position: u32::try_from(position).ok(),
            message: format!("at {}: {message}", position + 1).into(),
        }
    }

    /// Adds the position in the pipeline's text.
    pub(crate) fn with_position(mut self, position: usize) -> Self {
        self.message = format!("at {}: {}", position + 1, self.message).into();
        self.position = u32::try_from(position).ok();
        self
    }

    /// The position, and the message without it.
    pub(crate) fn split_position(&self) -> (Option<usize>, &str) {
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
    pub(crate) fn with_suffix(mut self, suffix: impl std::fmt::Display) -> Self {
        self.message = format!("{}{suffix}", self.message).into();
        self
    }

    pub(crate) fn wire(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidWire, message)
    }

    pub(crate) fn undecodable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Undecodable, message)
    }

    pub(crate) fn unsuitable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unsuitable, message)
    }

    pub(crate) fn too_large(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }

    pub(crate) fn model(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidModel, message)
    }

    pub(crate) fn runtime(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::ModelRuntime, message)
    }

    pub(crate) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
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

const _: () = assert!(
    size_of::<Error>() <= 64,
    "every Result contains an error: keep it small"
);
