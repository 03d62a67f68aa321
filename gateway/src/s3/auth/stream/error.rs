//! Why a body is refused.

use crate::{
    body::BoxError,
    error::{Error, ErrorKind},
};

/// A body that differs from what the request's head declares or signs. Each variant names the S3 code of its answer.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// `XAmzContentSHA256Mismatch`, status 400: the body has another hash.
    #[error("The provided 'x-amz-content-sha256' header does not match what was computed.")]
    HashMismatch,
    /// `IncompleteBody`, status 400: the body is truncated, or its chunk framing or its length is wrong.
    #[error("the body is incomplete: {0}")]
    IncompleteBody(&'static str),
    /// `MalformedTrailerError`, status 400: a trailer is malformed, missing or not declared.
    #[error("invalid trailer: {0}")]
    MalformedTrailer(&'static str),
    /// `SignatureDoesNotMatch`, status 403: the signature of a chunk or of the trailers is wrong.
    #[error(
        "The request signature we calculated does not match the signature you provided. Check your key and signing method."
    )]
    SignatureMismatch,
    /// `MissingContentLength`, status 411: a chunked body without its decoded length.
    #[error("invalid x-amz-decoded-content-length: expected one number of bytes")]
    MissingContentLength,
    /// The connection to the client failed within the body.
    #[error("the client's connection failed within the body")]
    Client(#[source] BoxError),
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Self {
        Self::new(ErrorKind::InvalidRequest, error.to_string()).with_source(error)
    }
}
