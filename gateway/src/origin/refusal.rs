//! Answers of the store that are about the gateway's own signature: they name its key, and are not for the caller.

mod codes;
mod late;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;
use http::{HeaderName, Method, Response, StatusCode};

use super::next_bytes;
use crate::{
    access::Upstream,
    body::{self, Body},
    error::{Error, ErrorKind, Result},
};

pub(super) use codes::temporarily_refused;
pub use {codes::DeniedByStore, late::can_be_late};

/// Header with the region of a bucket.
const BUCKET_REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");

/// Most bytes of an error document that are read. Larger ones are no answers of a store.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

/// What the caller gets for an answer to a request that the gateway signed.
#[derive(Debug)]
pub(super) struct CheckedAnswer {
    /// The answer, or the error in its place.
    pub(super) answer: Result<Response<Body>>,
    /// What may help, if the request is sent again.
    pub(super) remedy: Option<Remedy>,
}

/// What to change about a request before it is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The region of its bucket, as the answer names it.
    Region(String),
    /// The gateway's credentials, which have expired.
    Credentials,
    /// The gateway's credentials, which may have ended: the answer does not say that they have expired.
    UnconfirmedCredentials,
}

/// Passes the store's answer to a request that the gateway signed, unless it is about this signature or leads elsewhere.
///
/// The error is [`ErrorKind::InvalidIdentity`] for a signature that the store refuses, [`ErrorKind::SlowDown`] for credentials that have
/// expired and for a newly created bucket, and [`ErrorKind::OriginUnavailable`] for a clock that differs and for any other
/// redirection. The address in `Location` is never used. An answer with 200 to a write can still become a refusal, which is
/// masked when it arrives.
pub(super) async fn check(answer: Response<Body>, signer: Upstream, method: &Method) -> CheckedAnswer {
    let region = answer.headers().get(BUCKET_REGION);
    let region = region.and_then(|region| region.to_str().ok()).map(str::to_owned);
    match answer.status() {
        StatusCode::NOT_MODIFIED => CheckedAnswer::pass(answer),
        StatusCode::TEMPORARY_REDIRECT => CheckedAnswer {
            answer: Err(Error::new(
                ErrorKind::SlowDown,
                "the store redirected the request, as for a new bucket: try again later",
            )),
            remedy: region.map(Remedy::Region),
        },
        status if status.is_redirection() => CheckedAnswer {
            answer: Err(Error::new(
                ErrorKind::OriginUnavailable,
                "the store redirected the request: check the address and the region of the store",
            )),
            remedy: region.map(Remedy::Region),
        },
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => check_refusal(answer, region, signer).await,
        StatusCode::OK if can_be_late(method) => CheckedAnswer::pass(late::mask(answer, signer)),
        _ => CheckedAnswer::pass(answer),
    }
}

async fn check_refusal(answer: Response<Body>, region: Option<String>, signer: Upstream) -> CheckedAnswer {
    let (parts, body) = answer.into_parts();
    let document = match read_document(body).await {
        Ok(document) => document,
        Err(error) => return CheckedAnswer::fail(error),
    };
    if document.is_empty() {
        // The answer to a HEAD: it can be about the signature, too.
        let is_malformed = parts.status == StatusCode::BAD_REQUEST;
        let remedy = region.map(Remedy::Region);
        return CheckedAnswer {
            answer: Ok(Response::from_parts(parts, body::full(document))),
            remedy: remedy.or_else(|| is_malformed.then_some(Remedy::UnconfirmedCredentials)),
        };
    }
    let is_encoded = parts.headers.contains_key(CONTENT_ENCODING);
    let Some(found) = element(&document, "Code").filter(|_| !is_encoded) else {
        let status = parts.status.as_u16();
        tracing::error!(status, "the store refuses a request without a readable code");
        return CheckedAnswer::fail(unreadable());
    };
    let Some(error) = codes::replacement(&found, signer) else {
        return CheckedAnswer::pass(Response::from_parts(parts, body::full(document)));
    };
    let remedy = match found.as_str() {
        "AuthorizationHeaderMalformed" => element(&document, "Region").or(region).map(Remedy::Region),
        "ExpiredToken" | "TokenRefreshRequired" => Some(Remedy::Credentials),
        // A session that was ended early, for one.
        "InvalidAccessKeyId" | "InvalidClientTokenId" | "InvalidToken" => {
            Some(Remedy::UnconfirmedCredentials)
        }
        _ => None,
    };
    CheckedAnswer {
        answer: Err(error),
        remedy,
    }
}

async fn read_document(mut body: Body) -> Result<Bytes> {
    let mut document = BytesMut::new();
    while let Some(bytes) = next_bytes(&mut body).await? {
        document.extend_from_slice(&bytes);
        if document.len() > MAX_DOCUMENT_BYTES {
            return Err(too_long());
        }
    }
    Ok(document.freeze())
}

fn too_long() -> Error {
    let message = "invalid answer of the store: expected a shorter error document";
    Error::new(ErrorKind::OriginUnavailable, message)
}

fn unreadable() -> Error {
    Error::new(
        ErrorKind::Internal,
        "the store refused the request without a readable reason",
    )
}

impl CheckedAnswer {
    fn pass(answer: Response<Body>) -> Self {
        Self {
            answer: Ok(answer),
            remedy: None,
        }
    }

    fn fail(error: Error) -> Self {
        Self {
            answer: Err(error),
            remedy: None,
        }
    }
}

/// The content of the first element with this name.
fn element(document: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(document).ok()?;
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once("</")?;
    Some(content.trim().to_owned())
}

#[cfg(test)]
mod tests;
