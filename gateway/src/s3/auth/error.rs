//! Why the head of a request fails verification.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;

use crate::error::{Error, ErrorKind};
use crate::s3::errors;
use crate::s3::sign::Carrier;

/// The head of a request fails verification. `errors::auth_answer` maps it to the wire.
///
/// `Display` and `Debug` are for the log: they contain no secret, no token and no signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request carries no signature.
    #[error("the request has no signature")]
    Anonymous,
    /// An escape in the path or the query is incomplete, or the path does not begin with a slash.
    #[error("invalid target: expected a path that begins with a slash, and two hex digits after each %")]
    InvalidUri,
    /// The request carries several signatures.
    #[error("expected one signature, in the Authorization header or in the query, found several")]
    SeveralSignatures,
    /// The `Authorization` header is no signature.
    #[error("unknown scheme in the Authorization header: expected AWS4-HMAC-SHA256")]
    UnknownScheme,
    /// The signature is of version 2, or asymmetric.
    #[error("unsupported version of the signature: expected AWS4-HMAC-SHA256")]
    UnsupportedVersion,
    /// The request uploads an object by an HTML form.
    #[error("uploads by HTML forms are not supported")]
    FormUpload,
    /// The signature, or what it needs, is malformed.
    #[error("malformed signature: {reason}")]
    Malformed {
        /// Where the signature is.
        carrier: Carrier,
        /// The explanation of AWS.
        reason: Cow<'static, str>,
    },
    /// The credential is malformed, or its scope is wrong.
    #[error("malformed credential: {reason}")]
    MalformedCredential {
        /// Where the signature is.
        carrier: Carrier,
        /// The explanation of AWS.
        reason: Cow<'static, str>,
    },
    /// The signature is for another region.
    #[error("wrong region in the credential: expected {expected}, found {found}")]
    WrongRegion {
        /// Where the signature is.
        carrier: Carrier,
        /// The region of the credential.
        found: String,
        /// The first configured region. SDKs retry with it.
        expected: String,
    },
    /// `x-amz-date` is missing, malformed or repeated.
    #[error("expected one x-amz-date header of the form yyyyMMdd'T'HHmmss'Z'")]
    MissingDate,
    /// The clocks of the caller and the gateway differ too much.
    #[error("the time of the request is {request_time}, but the gateway's is {server_time}")]
    Skewed {
        /// `x-amz-date` as sent.
        request_time: String,
        /// Time of the gateway.
        server_time: String,
    },
    /// A presigned request was valid before.
    #[error("the presigned request expired at {expired_at}, and it is {server_time}")]
    Expired {
        /// `X-Amz-Expires`.
        expires_seconds: u64,
        /// End of validity.
        expired_at: String,
        /// Time of the gateway.
        server_time: String,
    },
    /// A presigned request will be valid later.
    #[error("the presigned request is not valid yet")]
    NotYetValid,
    /// No such access key.
    #[error("unknown access key {access_key}")]
    UnknownKey {
        /// The access key as sent.
        access_key: String,
    },
    /// Session tokens belong to temporary credentials. The gateway's keys have none.
    #[error("unexpected session token: the gateway's keys have none")]
    SessionToken,
    /// Headers that must be signed are not.
    #[error("headers that must be signed are not: {names}")]
    UnsignedHeaders {
        /// Their names, separated by commas.
        names: String,
    },
    /// The request is signed in a header, but has no `x-amz-content-sha256`.
    #[error("missing x-amz-content-sha256")]
    MissingPayloadHash,
    /// `x-amz-content-sha256` is neither a hash nor a keyword.
    #[error("invalid x-amz-content-sha256: expected 64 hex digits or a keyword of S3, once")]
    InvalidPayloadHash,
    /// The chunks of the body have asymmetric signatures.
    #[error("asymmetric signatures of chunks are not supported")]
    UnsupportedPayload,
    /// The signature is wrong.
    #[error("the signature does not match the request: access key {}", .0.access_key)]
    SignatureMismatch(Box<Mismatch>),
}

/// What the answer to a wrong signature repeats, for the author of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The access key.
    pub access_key: String,
    /// What was signed.
    pub string_to_sign: Quoted,
    /// The signature as sent.
    pub signature_provided: Quoted,
    /// The canonical request, at most [`Quoted::MAX_BYTES`] of it.
    pub canonical_request: Quoted,
}

/// Text of the caller's request for the answer to the same caller. It can contain a signature that is valid elsewhere, or a
/// customer's encryption key: `Debug` shows only its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Quoted(String);

/// A malformed signature. Reasons are complete sentences, as AWS words them.
pub(in crate::s3) fn malformed(carrier: Carrier, reason: impl Into<Cow<'static, str>>) -> AuthError {
    AuthError::Malformed {
        carrier,
        reason: reason.into(),
    }
}

impl From<AuthError> for Error {
    fn from(error: AuthError) -> Self {
        let answer = errors::auth_answer(&error);
        let kind = match answer.status {
            StatusCode::FORBIDDEN => ErrorKind::AccessDenied,
            StatusCode::NOT_IMPLEMENTED => ErrorKind::NotImplemented,
            _ => ErrorKind::InvalidRequest,
        };
        Self::new(kind, answer.message).with_source(error)
    }
}

impl Quoted {
    /// The longest quotation in bytes.
    pub const MAX_BYTES: usize = 8 << 10;

    /// Quotes the beginning of `text`. Bytes that are not UTF-8 are replaced.
    pub fn new(text: &[u8]) -> Self {
        let start = text.get(..Self::MAX_BYTES).unwrap_or(text);
        let mut quoted = String::from_utf8_lossy(start).into_owned();
        // A replacement is longer than the byte that it replaces.
        while quoted.len() > Self::MAX_BYTES {
            quoted.pop();
        }
        Self(quoted)
    }

    /// The text, for the answer to the caller only.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quoted({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_bounded_and_hidden_from_logs() {
        let quoted = Quoted::new(b"a signature\xff");
        assert_eq!(quoted.as_str(), "a signature\u{fffd}");
        assert_eq!(format!("{quoted:?}"), "Quoted(14 bytes)");
        let long = Quoted::new(&[0xff; Quoted::MAX_BYTES]);
        assert_eq!(long.as_str().len(), Quoted::MAX_BYTES / 3 * 3);
    }

    #[test]
    fn an_error_of_the_gateway_keeps_its_cause() {
        let error = Error::from(AuthError::UnknownKey {
            access_key: "AK".to_owned(),
        });
        assert_eq!(error.kind(), ErrorKind::AccessDenied);
        assert!(error.message().starts_with("The AWS Access Key Id"));
        let log = crate::error::ErrorChain(&error).to_string();
        assert!(log.ends_with(": unknown access key AK"), "{log}");
    }
}
