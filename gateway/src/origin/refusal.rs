//! Answers of the store that are about the gateway's own signature: they name its key, and are not for the caller.

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;
use http::{HeaderName, Response, StatusCode};

use super::next_bytes;
use crate::{
    access::Upstream,
    body::{self, Body},
    error::{Error, ErrorKind, Result},
    s3::errors::ACCESS_DENIED,
};

/// Header with the region of a bucket.
const BUCKET_REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");

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

/// What the caller gets for an answer to a request that the gateway signed.
#[derive(Debug)]
pub(super) struct Checked {
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
    /// The gateway's credentials.
    Credentials,
}

/// Passes the store's answer to a request that the gateway signed, unless it is about this signature or leads elsewhere.
///
/// The error is [`ErrorKind::Internal`] for a signature that the store refuses, [`ErrorKind::OriginUnavailable`] for one that it
/// may accept later, [`ErrorKind::SlowDown`] for a bucket in the making, and [`ErrorKind::OriginUnavailable`] for any other
/// redirection. None is followed.
pub(super) async fn check(answer: Response<Body>, signer: Upstream) -> Checked {
    let region = answer.headers().get(BUCKET_REGION);
    let region = region.and_then(|region| region.to_str().ok()).map(str::to_owned);
    match answer.status() {
        StatusCode::NOT_MODIFIED => Checked::pass(answer),
        StatusCode::TEMPORARY_REDIRECT => Checked {
            answer: Err(Error::new(
                ErrorKind::SlowDown,
                "the store redirected the request, as for a new bucket: try again later",
            )),
            remedy: region.map(Remedy::Region),
        },
        status if status.is_redirection() => Checked {
            answer: Err(Error::new(
                ErrorKind::OriginUnavailable,
                "the store redirected the request: check the address and the region of the store",
            )),
            remedy: region.map(Remedy::Region),
        },
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => check_refusal(answer, region, signer).await,
        _ => Checked::pass(answer),
    }
}

async fn check_refusal(answer: Response<Body>, region: Option<String>, signer: Upstream) -> Checked {
    let (parts, body) = answer.into_parts();
    let document = match read_document(body).await {
        Ok(document) => document,
        Err(error) => return Checked::fail(error),
    };
    if document.is_empty() {
        // The answer to a HEAD: it can be about the signature, too.
        let is_malformed = parts.status == StatusCode::BAD_REQUEST;
        let remedy = region.map(Remedy::Region);
        return Checked {
            answer: Ok(Response::from_parts(parts, body::full(document))),
            remedy: remedy.or_else(|| is_malformed.then_some(Remedy::Credentials)),
        };
    }
    let is_encoded = parts.headers.contains_key(CONTENT_ENCODING);
    let Some(found) = element(&document, "Code").filter(|_| !is_encoded) else {
        let status = parts.status.as_u16();
        tracing::error!(status, "the store refuses a request without a readable code");
        let message = "the store refused the request without a readable reason";
        return Checked::fail(Error::new(ErrorKind::Internal, message));
    };
    if signer == Upstream::Gateway && found == "AccessDenied" {
        // The store's message names the gateway's identity.
        return Checked::fail(Error::new(ErrorKind::AccessDenied, ACCESS_DENIED));
    }
    let about_signature = SIGNATURE_CODES.iter().find(|(name, _)| *name == found);
    let Some((code, can_retry)) = about_signature else {
        return Checked::pass(Response::from_parts(parts, body::full(document)));
    };
    let remedy = match *code {
        "AuthorizationHeaderMalformed" => element(&document, "Region").or(region).map(Remedy::Region),
        "ExpiredToken" | "TokenRefreshRequired" => Some(Remedy::Credentials),
        _ => None,
    };
    tracing::warn!(code, "the store refuses the gateway's signature");
    let error = if *can_retry {
        Error::new(
            ErrorKind::OriginUnavailable,
            "the store refused the gateway's credentials: try again later",
        )
    } else {
        Error::new(ErrorKind::Internal, "the store refused the gateway's signature")
    };
    Checked {
        answer: Err(error),
        remedy,
    }
}

async fn read_document(mut body: Body) -> Result<Bytes> {
    let mut document = BytesMut::new();
    while let Some(bytes) = next_bytes(&mut body).await? {
        document.extend_from_slice(&bytes);
        if document.len() > MAX_DOCUMENT_BYTES {
            let message = "invalid answer of the store: expected a shorter error document";
            return Err(Error::new(ErrorKind::OriginUnavailable, message));
        }
    }
    Ok(document.freeze())
}

// === impl Checked ===

impl Checked {
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
            let error = check(answer(403, &document), Upstream::Caller)
                .await
                .answer
                .unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(!error.to_string().contains("GATEWAY"));
        }
        let error = check(answer(308, ""), Upstream::Caller).await.answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OriginUnavailable);
    }

    #[tokio::test]
    async fn other_answers_are_forwarded_unchanged() {
        let document = "<Error><Code>AccessDenied</Code></Error>";
        for status in [200, 403, 404] {
            let passed = check(answer(status, document), Upstream::Caller)
                .await
                .answer
                .unwrap();
            assert_eq!(passed.status(), status);
            let bytes = passed.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(bytes, document.as_bytes());
        }
    }

    /// The message of the store names an identity that callers must not know, and an unreadable one may.
    #[tokio::test]
    async fn refusals_of_the_gateways_identity_have_no_details() {
        let denied = "<Error><Code>AccessDenied</Code><Message>User: arn:aws:iam::1:user/g</Message></Error>";
        let error = check(answer(403, denied), Upstream::Gateway)
            .await
            .answer
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::AccessDenied, ACCESS_DENIED)
        );
        let mut encoded = answer(403, denied);
        encoded
            .headers_mut()
            .insert(CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
        for unreadable in [encoded, answer(400, "no document")] {
            let error = check(unreadable, Upstream::Caller).await.answer.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
        }
        assert!(check(answer(403, ""), Upstream::Gateway).await.answer.is_ok());
    }

    #[tokio::test]
    async fn an_answer_says_what_may_help() {
        let region = || Some(Remedy::Region("us-west-2".to_owned()));
        let malformed = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-west-2</Region></Error>";
        let expired = "<Error><Code>ExpiredToken</Code></Error>";
        for (status, document, expected) in [
            (400, malformed, region()),
            (400, expired, Some(Remedy::Credentials)),
            (400, "", Some(Remedy::Credentials)),
            (403, "", None),
            (404, "", None),
        ] {
            let checked = check(answer(status, document), Upstream::Gateway).await;
            assert_eq!(checked.remedy, expected, "{status} {document}");
        }
        for status in [301, 307, 400, 403] {
            let mut redirect = answer(status, "");
            let value = http::HeaderValue::from_static("us-west-2");
            redirect.headers_mut().insert(BUCKET_REGION, value);
            let checked = check(redirect, Upstream::Gateway).await;
            assert_eq!(checked.remedy, region(), "{status}");
        }
    }
}
