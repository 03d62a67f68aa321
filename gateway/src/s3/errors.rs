//! Maps errors to S3 codes, statuses, headers and XML. No other module does this.

mod auth;

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write;
use std::iter;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use pushdown_s3::xml::{TextForm, push_element};

pub use self::auth::{auth_answer, body_answer};

use super::auth::stream::StreamError;
use super::auth::{AuthError, Quoted};
use crate::body::{self, Body};
use crate::error::{Error, ErrorKind};

/// Answer: the id of the request, of the store or of the gateway.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// The message of each denial: it does not say whether the bucket exists.
pub const ACCESS_DENIED: &str = "Access Denied";

/// Identifies an error answer of the gateway, both in the answer and in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(u64);

impl RequestId {
    /// A new random ID.
    pub fn random() -> Self {
        Self(rand::random())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", self.0)
    }
}

/// What an error document says, and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorAnswer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The S3 error code.
    pub code: &'static str,
    /// The message for people.
    pub message: Cow<'static, str>,
    /// Names and contents of the other XML elements, for programs.
    pub fields: Vec<(&'static str, Quoted)>,
}

impl ErrorAnswer {
    fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            fields: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, text: &str) -> Self {
        self.fields.push((name, Quoted::new(text.as_bytes())));
        self
    }

    /// The answer to an error. Errors of verification have their own codes and elements; all others have those of their kind.
    pub fn from_error(error: &Error) -> Self {
        let causes = || iter::successors(std::error::Error::source(error), |cause| cause.source());
        if let Some(error) = causes().find_map(|cause| cause.downcast_ref::<AuthError>()) {
            return auth_answer(error);
        }
        if let Some(error) = causes().find_map(|cause| cause.downcast_ref::<StreamError>()) {
            return body_answer(error);
        }
        let (code, status) = code_and_status(error.kind());
        Self::new(status, code, error.message().to_owned())
    }
}

/// The S3 error code of a kind, as clients and the batch answer's `error` column show it.
pub fn code(kind: ErrorKind) -> &'static str {
    code_and_status(kind).0
}

fn code_and_status(kind: ErrorKind) -> (&'static str, StatusCode) {
    match kind {
        ErrorKind::InvalidPipeline => ("InvalidPipeline", StatusCode::BAD_REQUEST),
        ErrorKind::MalformedXml => ("MalformedXML", StatusCode::BAD_REQUEST),
        ErrorKind::BadDigest => ("BadDigest", StatusCode::BAD_REQUEST),
        ErrorKind::InvalidRequest => ("InvalidRequest", StatusCode::BAD_REQUEST),
        ErrorKind::InvalidArgument => ("InvalidArgument", StatusCode::BAD_REQUEST),
        ErrorKind::InvalidBucketName => ("InvalidBucketName", StatusCode::BAD_REQUEST),
        ErrorKind::RequestTimeout => ("RequestTimeout", StatusCode::BAD_REQUEST),
        ErrorKind::HeadTooLarge => (
            "RequestHeaderSectionTooLarge",
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
        ErrorKind::UriTooLong => ("InvalidURI", StatusCode::URI_TOO_LONG),
        ErrorKind::MethodNotAllowed => ("MethodNotAllowed", StatusCode::METHOD_NOT_ALLOWED),
        ErrorKind::NotAcceptable => ("NotAcceptable", StatusCode::NOT_ACCEPTABLE),
        ErrorKind::PreconditionFailed => ("PreconditionFailed", StatusCode::PRECONDITION_FAILED),
        ErrorKind::EntityTooLarge => ("EntityTooLarge", StatusCode::PAYLOAD_TOO_LARGE),
        ErrorKind::InvalidRange => ("InvalidRange", StatusCode::RANGE_NOT_SATISFIABLE),
        ErrorKind::UndecodableObject => ("UndecodableObject", StatusCode::UNPROCESSABLE_ENTITY),
        ErrorKind::UnsuitableObject => ("UnsuitableObject", StatusCode::UNPROCESSABLE_ENTITY),
        ErrorKind::InvalidShard => ("InvalidShard", StatusCode::UNPROCESSABLE_ENTITY),
        ErrorKind::NotFound => ("NoSuchKey", StatusCode::NOT_FOUND),
        ErrorKind::AccessDenied => ("AccessDenied", StatusCode::FORBIDDEN),
        ErrorKind::StoreNotAllowed => ("StoreNotAllowed", StatusCode::FORBIDDEN),
        ErrorKind::NoUpstream => ("NoUpstream", StatusCode::BAD_REQUEST),
        ErrorKind::Replaced => ("OperationAborted", StatusCode::CONFLICT),
        ErrorKind::ShardReplaced => ("ShardReplaced", StatusCode::CONFLICT),
        ErrorKind::NotImplemented => ("NotImplemented", StatusCode::NOT_IMPLEMENTED),
        ErrorKind::Internal => ("InternalError", StatusCode::INTERNAL_SERVER_ERROR),
        ErrorKind::InvalidIdentity => ("InvalidGatewayIdentity", StatusCode::FORBIDDEN),
        ErrorKind::OriginUnavailable => ("OriginUnavailable", StatusCode::BAD_GATEWAY),
        ErrorKind::SlowDown => ("SlowDown", StatusCode::SERVICE_UNAVAILABLE),
        ErrorKind::OriginTimeout => ("OriginTimeout", StatusCode::GATEWAY_TIMEOUT),
    }
}

/// The answer to a request that failed in the gateway: S3 error XML for `resource`, the path as sent.
pub fn respond(error: &Error, resource: &str, id: RequestId) -> Response<Body> {
    let answer = ErrorAnswer::from_error(error);
    let mut response = Response::new(body::full(xml(&answer, resource, id)));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now())) {
        headers.insert(DATE, date);
    }
    if let Some(pause) = error.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(pause.as_secs().max(1)));
    }
    if error.kind() == ErrorKind::MethodNotAllowed {
        headers.insert(
            ALLOW,
            HeaderValue::from_static("DELETE, GET, HEAD, OPTIONS, POST, PUT"),
        );
    }
    response
}

/// The bytes of a complete answer to a request that was not read, or could not be parsed. The connection closes after it.
pub fn closing_answer(error: &Error, id: RequestId) -> Bytes {
    let answer = ErrorAnswer::from_error(error);
    let status = answer.status;
    let body = xml(&answer, "/", id);
    let date = httpdate::fmt_http_date(SystemTime::now());
    let retry_after = error.retry_after().map_or_else(String::new, |pause| {
        format!("{RETRY_AFTER}: {}\r\n", pause.as_secs().max(1))
    });
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/xml\r\n{REQUEST_ID}: {id}\r\ndate: {date}\r\n\
         {retry_after}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

fn xml(answer: &ErrorAnswer, resource: &str, id: RequestId) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>");
    let fields = answer.fields.iter().map(|(name, text)| (*name, text.as_str()));
    let elements = [("Code", answer.code), ("Message", &*answer.message)]
        .into_iter()
        .chain(fields)
        .chain([("Resource", resource)]);
    for (name, text) in elements {
        push_element(&mut xml, name, text, TextForm::Printable);
    }
    // Writing to a string cannot fail.
    _ = write!(xml, "<RequestId>{id}</RequestId></Error>");
    xml
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn errors_are_s3_xml() {
        let error = Error::new(ErrorKind::SlowDown, "too many <requests> & \u{1}more");
        let response = respond(&error, "/bucket/a'b", RequestId(7));
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
        assert_eq!(response.headers()["x-amz-request-id"], "0000000000000007");
        assert!(response.headers().contains_key("date"));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        insta::assert_snapshot!(String::from_utf8_lossy(&body));
    }

    #[test]
    fn an_answer_without_a_request_is_complete() {
        let error = Error::new(ErrorKind::SlowDown, "too many connections");
        let answer = closing_answer(&error, RequestId(7));
        let answer = std::str::from_utf8(&answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
        assert!(head.contains("\r\nretry-after: 1\r\n") && head.ends_with("\r\nconnection: close"));
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())));
        let error = Error::new(ErrorKind::InvalidRequest, "no");
        assert!(
            !closing_answer(&error, RequestId(7))
                .windows(5)
                .any(|part| part == b"retry")
        );
    }

    #[tokio::test]
    async fn errors_of_verification_have_their_own_elements() {
        let error = Error::from(AuthError::UnknownKey {
            access_key: "A<K>".to_owned(),
        });
        let response = respond(&error, "/b/k", RequestId(7));
        assert_eq!(response.status(), 403);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let expected = "<Error><Code>InvalidAccessKeyId</Code>\
            <Message>The AWS Access Key Id you provided does not exist in our records.</Message>\
            <AWSAccessKeyId>A&lt;K&gt;</AWSAccessKeyId><Resource>/b/k</Resource>\
            <RequestId>0000000000000007</RequestId></Error>";
        assert!(String::from_utf8_lossy(&body).ends_with(expected));
    }

    #[test]
    fn method_not_allowed_lists_allowed_methods() {
        let error = Error::new(ErrorKind::MethodNotAllowed, "no");
        assert!(respond(&error, "/", RequestId(1)).headers().contains_key("allow"));
    }
}
