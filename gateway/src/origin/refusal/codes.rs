//! Codes of refusals whose documents show the gateway's identity or signature.

use crate::{
    access::Upstream,
    error::{Error, ErrorKind},
    s3::errors::ACCESS_DENIED,
};

/// Codes about a signature, and the error in its place: [`ErrorKind::Internal`] unless a later request can succeed. Credentials that
/// have expired by the store's clock are the same to the caller as those that have expired by the gateway's.
const SIGNATURE_CODES: [(&str, ErrorKind); 8] = [
    ("SignatureDoesNotMatch", ErrorKind::Internal),
    ("InvalidAccessKeyId", ErrorKind::Internal),
    ("InvalidClientTokenId", ErrorKind::Internal),
    ("InvalidToken", ErrorKind::Internal),
    ("AuthorizationHeaderMalformed", ErrorKind::Internal),
    ("ExpiredToken", ErrorKind::SlowDown),
    ("TokenRefreshRequired", ErrorKind::SlowDown),
    ("RequestTimeTooSkewed", ErrorKind::OriginUnavailable),
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
    let (code, kind) = SIGNATURE_CODES.iter().find(|(name, _)| *name == code)?;
    tracing::warn!(code, "the store refuses the gateway's signature");
    let message = match kind {
        ErrorKind::Internal => "the store refused the gateway's signature",
        _ => "the store refused the gateway's credentials: try again later",
    };
    Some(Error::new(*kind, message))
}
