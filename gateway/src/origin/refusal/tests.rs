use http_body_util::BodyExt as _;

use super::*;
use crate::s3::errors::ACCESS_DENIED;

/// Checks the answer to a GET.
async fn check(answer: Response<Body>, signer: Upstream) -> CheckedAnswer {
    super::check(answer, signer, &Method::GET).await
}

fn answer(status: u16, text: &str) -> Response<Body> {
    let mut answer = Response::new(body::full(text.to_owned()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
}

#[tokio::test]
async fn answers_about_the_gateways_signature_are_not_forwarded() {
    for (code, kind) in [
        ("SignatureDoesNotMatch", ErrorKind::InvalidIdentity),
        ("InvalidAccessKeyId", ErrorKind::InvalidIdentity),
        ("ExpiredToken", ErrorKind::SlowDown),
        ("RequestTimeTooSkewed", ErrorKind::OriginUnavailable),
    ] {
        let document = format!("<Error><Code>{code}</Code><AWSAccessKeyId>GATEWAY</AWSAccessKeyId></Error>");
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

/// An object can be any document, and an answer to a write cannot.
#[tokio::test]
async fn refusals_with_status_200_are_masked_for_writes() {
    let denied = "<Error><Code>AccessDenied</Code><Message>User: arn:aws:iam::1:user/g</Message></Error>";
    for (method, shows_identity) in [(Method::GET, true), (Method::PUT, false), (Method::POST, false)] {
        let checked = super::check(answer(200, denied), Upstream::Gateway, &method).await;
        let passed = checked.answer.unwrap();
        assert_eq!(passed.status(), 200);
        let bytes = passed.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("<Code>AccessDenied</Code>"), "{text}");
        assert_eq!(text.contains("arn:"), shows_identity, "{method} {text}");
    }
}

#[tokio::test]
async fn an_answer_says_what_may_help() {
    let region = || Some(Remedy::Region("us-west-2".to_owned()));
    let malformed = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-west-2</Region></Error>";
    let expired = "<Error><Code>ExpiredToken</Code></Error>";
    let unknown = "<Error><Code>InvalidAccessKeyId</Code></Error>";
    for (status, document, expected) in [
        (400, malformed, region()),
        (400, expired, Some(Remedy::Credentials)),
        (400, "", Some(Remedy::UnconfirmedCredentials)),
        (403, unknown, Some(Remedy::UnconfirmedCredentials)),
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
