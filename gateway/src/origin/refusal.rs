//! Answers of the store that are about the gateway's own signature: they name its key, and are not for the caller.

use bytes::BytesMut;
use http::header::CONTENT_ENCODING;
use http::{Response, StatusCode};

use super::next_bytes;
use crate::{
    access::Upstream,
    body::{self, Body},
    error::{Error, ErrorKind, Result},
};

/// Most bytes of an error document that are read. Larger ones are no answers of a store.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

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

/// Passes the store's answer to a request that the gateway signed, unless it is about this signature or leads elsewhere.
///
/// # Errors
/// [`ErrorKind::Internal`] for a signature that the store refuses, [`ErrorKind::OriginUnavailable`] for one that it may accept
/// later, and for a redirection, which is not followed.
pub(super) async fn check(answer: Response<Body>, signer: Upstream) -> Result<Response<Body>> {
    match answer.status() {
        StatusCode::NOT_MODIFIED => Ok(answer),
        status if status.is_redirection() => Err(Error::new(
            ErrorKind::OriginUnavailable,
            "the store redirected the request: check the address and the region of the store",
        )),
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => check_refusal(answer, signer).await,
        _ => Ok(answer),
    }
}

async fn check_refusal(answer: Response<Body>, signer: Upstream) -> Result<Response<Body>> {
    let (parts, mut body) = answer.into_parts();
    let mut document = BytesMut::new();
    while let Some(bytes) = next_bytes(&mut body).await? {
        document.extend_from_slice(&bytes);
        if document.len() > MAX_DOCUMENT_BYTES {
            let message = "invalid answer of the store: expected a shorter error document";
            return Err(Error::new(ErrorKind::OriginUnavailable, message));
        }
    }
    let document = document.freeze();
    if document.is_empty() {
        // The answer to a HEAD.
        return Ok(Response::from_parts(parts, body::full(document)));
    }
    let is_encoded = parts.headers.contains_key(CONTENT_ENCODING);
    let Some(found) = element(&document, "Code").filter(|_| !is_encoded) else {
        let status = parts.status.as_u16();
        tracing::error!(status, "the store refuses a request without a readable code");
        let message = "the store refused the request without a readable reason";
        return Err(Error::new(ErrorKind::Internal, message));
    };
    if signer == Upstream::Gateway && found == "AccessDenied" {
        // The store's message names the gateway's identity.
        return Err(Error::new(ErrorKind::AccessDenied, "Access Denied"));
    }
    let about_signature = SIGNATURE_CODES.iter().find(|(name, _)| *name == found);
    let Some((code, can_retry)) = about_signature else {
        return Ok(Response::from_parts(parts, body::full(document)));
    };
    tracing::error!(code, "the store refuses the gateway's signature");
    Err(if *can_retry {
        Error::new(
            ErrorKind::OriginUnavailable,
            "the store refused the gateway's credentials: try again later",
        )
    } else {
        Error::new(ErrorKind::Internal, "the store refused the gateway's signature")
    })
}

/// The content of the first element with this name.
fn element(document: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(document).ok()?;
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once("</")?;
    Some(content.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn answer(status: u16, text: &str) -> Response<Body> {
        let mut answer = Response::new(body::full(text.to_owned()));
        *answer.status_mut() = StatusCode::from_u16(status).unwrap();
        answer
    }

    #[tokio::test]
    async fn answers_about_the_gateways_signature_are_not_forwarded() {
        for (code, kind) in [
            ("SignatureDoesNotMatch", ErrorKind::Internal),
            ("ExpiredToken", ErrorKind::OriginUnavailable),
        ] {
            let document =
                format!("<Error><Code>{code}</Code><AWSAccessKeyId>GATEWAY</AWSAccessKeyId></Error>");
            let error = check(answer(403, &document), Upstream::Caller).await.unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(!error.to_string().contains("GATEWAY"));
        }
        let error = check(answer(308, ""), Upstream::Caller).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OriginUnavailable);
    }

    #[tokio::test]
    async fn other_answers_are_forwarded_unchanged() {
        let document = "<Error><Code>AccessDenied</Code></Error>";
        for status in [200, 403, 404] {
            let passed = check(answer(status, document), Upstream::Caller).await.unwrap();
            assert_eq!(passed.status(), status);
            let bytes = passed.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(bytes, document.as_bytes());
        }
    }

    /// The message of the store names an identity that callers must not know, and an unreadable one may.
    #[tokio::test]
    async fn refusals_of_the_gateways_identity_have_no_details() {
        let denied = "<Error><Code>AccessDenied</Code><Message>User: arn:aws:iam::1:user/g</Message></Error>";
        let error = check(answer(403, denied), Upstream::Gateway).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::AccessDenied, "Access Denied")
        );
        let mut encoded = answer(403, denied);
        encoded
            .headers_mut()
            .insert(CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
        for unreadable in [encoded, answer(400, "no document")] {
            let error = check(unreadable, Upstream::Caller).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
        }
        assert!(check(answer(403, ""), Upstream::Gateway).await.is_ok());
    }
}
