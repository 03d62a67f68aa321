//! Codes of refusals whose documents show the gateway's identity or signature.

use crate::{
    access::Upstream,
    error::{Error, ErrorKind},
    s3::errors::ACCESS_DENIED,
};

/// Codes about a signature, and the error in its place: [`ErrorKind::InvalidIdentity`], which clients do not retry, unless a later
/// request can succeed. Credentials that have expired by the store's clock are the same to the caller as those that have expired by
/// the gateway's.
const SIGNATURE_CODES: [(&str, ErrorKind); 8] = [
    ("SignatureDoesNotMatch", ErrorKind::InvalidIdentity),
    ("InvalidAccessKeyId", ErrorKind::InvalidIdentity),
    ("InvalidClientTokenId", ErrorKind::InvalidIdentity),
    ("InvalidToken", ErrorKind::InvalidIdentity),
    ("AuthorizationHeaderMalformed", ErrorKind::InvalidIdentity),
    ("ExpiredToken", ErrorKind::SlowDown),
    ("TokenRefreshRequired", ErrorKind::SlowDown),
    ("RequestTimeTooSkewed", ErrorKind::OriginUnavailable),
];

const SIGNATURE_REFUSED: &str = "the store refused the gateway's signature: the gateway's operator has to check identity, region and clock";
const CREDENTIALS_REFUSED: &str = "the store refused the gateway's credentials: try again later";

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
        ErrorKind::InvalidIdentity => SIGNATURE_REFUSED,
        _ => CREDENTIALS_REFUSED,
    };
    Some(Error::new(*kind, message))
}

/// The error for refused credentials that others will follow.
pub(in crate::origin) fn temporarily_refused() -> Error {
    Error::new(ErrorKind::SlowDown, CREDENTIALS_REFUSED)
}
