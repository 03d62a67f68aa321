//! One error for the whole library: a kind that callers act on, a text that people read.

use std::borrow::Cow;

/// What went wrong, as far as a caller has to tell cases apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The pipeline's text or types are wrong; [`Error::position`] says where. Retrying cannot help.
    InvalidPipeline,
    /// A request or an answer in a wire form is malformed. Retrying cannot help.
    InvalidWire,
    /// The bytes are not an image that can be decoded: foreign, truncated, corrupt, or over the pixel limit.
    Undecodable,
    /// The sample is well-formed but the step cannot be applied to it (too small to crop, say).
    Unsuitable,
    /// A value would be larger than its limit, or computing it takes more than there is.
    TooLarge,
    /// The object could not be read: what a [`Source`](crate::Source) fails with.
    Source,
    /// A model that cannot be used, with the reason.
    InvalidModel,
    /// ONNX Runtime is missing or too old.
    ModelRuntime,
    /// A defect of the library or of a codec.
    Internal,
}

impl ErrorKind {
    /// The name that stands in error columns and, where it makes sense, as the S3 error code.
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

/// An error of the pipeline language, of an operator or of a wire form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    position: Option<u32>,
    message: Cow<'static, str>,
}

/// The result of everything fallible in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with a text for people: lower case, no final dot.
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

    /// The same error at a place in the pipeline.
    pub(crate) fn located(mut self, position: usize) -> Self {
        self.message = format!("at {}: {}", position + 1, self.message).into();
        self.position = u32::try_from(position).ok();
        self
    }

    /// Its place, and its text without it.
    pub(crate) fn unlocated(&self) -> (Option<usize>, &str) {
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

    /// The same error, its text continued.
    pub(crate) fn explained(mut self, more: impl std::fmt::Display) -> Self {
        self.message = format!("{}{more}", self.message).into();
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

    /// What callers act on.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where in the pipeline's text, as a byte offset from 0. The message counts from 1.
    pub const fn position(&self) -> Option<u32> {
        self.position
    }
}

const _: () = assert!(
    size_of::<Error>() <= 64,
    "errors travel in every Result: keep them small"
);
