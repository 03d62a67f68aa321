//! Codes of refusals whose documents show the gateway's identity or signature.

use crate::{
    access::Upstream,
    error::{Error, ErrorKind},
    s3::errors::ACCESS_DENIED,
};

/// Codes about a signature, and whether a later request can succeed.
const SIGNATURE_CODES: [(&str, bool); 8] = [
    ("SignatureDoesNotMatch", false),
    ("InvalidAccessKeyId", false),
    ("InvalidClientTokenId", false),
    ("InvalidToken", false),
    ("AuthorizationHeaderMalformed", false),
    ("ExpiredToken", true),
    ("TokenRefreshRequired", true),
    ("RequestTimeTooSkewed", true),
];

/// The store denies a request that the gateway has allowed.
#[derive(Debug, thiserror::Error)]
#[error("the store denies the gateway's identity the request")]
pub struct DeniedByStore;

/// The error for the caller in the place of a refusal with this code. `None` if its document is for the caller. Logs a refused
/// signature.
pub(super) fn replacement(code: &str, signer: Upstream) -> Option<Error> {
    if signer == Upstream::Gateway && code == "AccessDenied" {
        // The store's message names the gateway's identity.
        return Some(Error::new(ErrorKind::AccessDenied, ACCESS_DENIED).with_source(DeniedByStore));
    }
    let (code, can_retry) = SIGNATURE_CODES.iter().find(|(name, _)| *name == code)?;
    tracing::warn!(code, "the store refuses the gateway's signature");
    Some(if *can_retry {
        Error::new(
            ErrorKind::OriginUnavailable,
            "the store refused the gateway's credentials: try again later",
        )
    } else {
        Error::new(ErrorKind::Internal, "the store refused the gateway's signature")
    })
}
