//! Conditions of requests for objects, which s3s-fs ignores (RFC 9110, section 13).
//!
//! They are evaluated on the store's answer, so after signature and access were checked.

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use pushdown_s3::conditions::{ConditionResult, evaluate};
use s3s::service::S3Service;
use s3s::{Body, HttpError, s3_error};

/// Headers of the object's answer that a 304 has, too.
const OF_NOT_MODIFIED: [header::HeaderName; 3] = [header::ETAG, header::CACHE_CONTROL, header::EXPIRES];

/// The store's answer: without the object if a condition of the request asks for none.
pub(super) async fn answer(
    service: &S3Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, HttpError> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let conditions = request.headers().clone();
    let answer = service.call(request.map(Body::from)).await?;
    if is_read && answer.status().is_success() && answer.headers().contains_key(header::ETAG) {
        apply(&conditions, answer)
    } else {
        Ok(answer)
    }
}

/// Applies the conditions of a request to the answer with an object.
fn apply(conditions: &HeaderMap, answer: Response<Body>) -> Result<Response<Body>, HttpError> {
    let headers = answer.headers();
    let (etag, modified) = (headers.get(header::ETAG), headers.get(header::LAST_MODIFIED));
    match evaluate(conditions, etag, modified) {
        ConditionResult::Proceed => Ok(answer),
        ConditionResult::NotModified => {
            let mut not_modified = Response::new(Body::empty());
            *not_modified.status_mut() = StatusCode::NOT_MODIFIED;
            for name in OF_NOT_MODIFIED {
                if let Some(value) = headers.get(&name) {
                    not_modified.headers_mut().insert(name, value.clone());
                }
            }
            Ok(not_modified)
        }
        ConditionResult::Failed => {
            let error = s3_error!(
                PreconditionFailed,
                "At least one of the preconditions that you specified did not hold"
            );
            error
                .to_http_response()
                .map_err(|error| HttpError::new(error.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn answered(condition: (header::HeaderName, &'static str)) -> (StatusCode, HeaderMap, String) {
        let object = Response::builder()
            .header(header::ETAG, "\"abc\"")
            .header(header::LAST_MODIFIED, "Sun, 06 Nov 1994 08:49:37 GMT")
            .header(header::CONTENT_LENGTH, "5")
            .header(header::CACHE_CONTROL, "max-age=60")
            .body(Body::from("bytes".to_owned()))
            .unwrap();
        let (name, value) = condition;
        let conditions = HeaderMap::from_iter([(name, header::HeaderValue::from_static(value))]);
        let (parts, body) = apply(&conditions, object).unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (
            parts.status,
            parts.headers,
            String::from_utf8(body.to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn a_matching_etag_is_answered_without_the_object() {
        for tags in ["\"abc\"", "*", "\"x\", \"abc\"", "\"abc\",\"x\""] {
            let (status, headers, body) = answered((header::IF_NONE_MATCH, tags)).await;
            assert_eq!((status, body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{tags}");
            assert_eq!(headers[header::ETAG], "\"abc\"");
            assert_eq!(headers[header::CACHE_CONTROL], "max-age=60");
            assert!(!headers.contains_key(header::CONTENT_LENGTH));
        }
        for tags in ["\"ab\"", "\"x\", \"y\"", "abcd"] {
            let (status, _, body) = answered((header::IF_NONE_MATCH, tags)).await;
            assert_eq!((status, body.as_str()), (StatusCode::OK, "bytes"), "{tags}");
        }
    }

    #[tokio::test]
    async fn a_false_precondition_is_412() {
        for (tags, expected) in [
            ("\"abc\"", 200),
            ("*", 200),
            ("\"x\", \"abc\"", 200),
            ("\"x\"", 412),
        ] {
            let (status, _, body) = answered((header::IF_MATCH, tags)).await;
            assert_eq!(status, expected, "{tags}");
            assert_eq!(body.contains("<Code>PreconditionFailed</Code>"), expected == 412);
        }
    }
}
