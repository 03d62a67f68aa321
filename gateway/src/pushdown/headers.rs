//! The head of a derived answer, and answers that are only a head.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, request::Parts};
use pushdown::{Engine, Pipeline, Step, wire};

use super::{
    conditions::{self, Verdict},
    etag,
    form::AnswerForm,
    request::Job,
    timing::Timing,
};
use crate::{
    body::{self, Body},
    error::{Error, ErrorKind, Result},
};

/// What a derived answer depends on beside the object.
const VARY: &str = "accept, x-pushdown-pipeline, x-pushdown-split, x-pushdown-seed, x-pushdown-epoch";

/// Headers of the source that also hold for what is derived from it. Its ETag, checksums, length, type and encoding
/// do not.
const KEPT: [HeaderName; 6] = [
    header::DATE,
    header::LAST_MODIFIED,
    HeaderName::from_static("x-amz-request-id"),
    HeaderName::from_static("x-amz-id-2"),
    HeaderName::from_static("x-amz-version-id"),
    HeaderName::from_static("x-amz-expiration"),
];

/// User metadata goes along: labels are kept there.
const METADATA: &str = "x-amz-meta-";

/// The headers that do not depend on the value: of which stage it is and in which form, as far as that is known.
pub(super) fn head_of(source: &HeaderMap, job: &Job, value: Option<(usize, AnswerForm)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in source {
        if KEPT.contains(name) || name.as_str().starts_with(METADATA) {
            headers.append(name, value.clone());
        }
    }
    if let Some((stage, form)) = value {
        if let Some(etag) = etag::derived(source, job, stage, form) {
            headers.insert(header::ETAG, etag);
        }
        insert(&mut headers, wire::header::STAGE, &stage.to_string());
    }
    if let Some(etag) = source.get(header::ETAG) {
        headers.insert(HeaderName::from_static(wire::header::SOURCE_ETAG), etag.clone());
    }
    // A value that is not known yet may be behind all of them.
    let steps = job.pipeline.steps();
    insert_engine(&mut headers, value.map_or(steps, |(stage, _)| &steps[..stage]));
    headers.insert(
        HeaderName::from_static(wire::header::CACHE),
        HeaderValue::from_static("none"),
    );
    headers.insert(header::VARY, HeaderValue::from_static(VARY));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    headers
}

/// The answer that the conditions of the request ask for in place of the content; `None` where they let it through.
///
/// # Errors
/// [`ErrorKind::PreconditionFailed`] where one of them does not hold.
pub(super) fn conditional(parts: &Parts, headers: &HeaderMap) -> Result<Option<Response<Body>>> {
    let verdict = conditions::evaluate(
        &parts.headers,
        headers.get(header::ETAG),
        headers.get(header::LAST_MODIFIED),
    );
    match verdict {
        Verdict::Proceed => Ok(None),
        Verdict::NotModified => Ok(Some(respond(
            StatusCode::NOT_MODIFIED,
            headers.clone(),
            body::empty(),
        ))),
        Verdict::Failed => Err(Error::new(
            ErrorKind::PreconditionFailed,
            "a condition of the request does not hold for the derived answer",
        )),
    }
}

/// An answer.
pub(super) fn respond(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Adds what computes these steps. Where nothing runs the models among them there is no value from behind one.
pub(super) fn insert_engine(headers: &mut HeaderMap, steps: &[Step]) {
    let engine = Engine::for_steps(steps).unwrap_or_default();
    insert(headers, wire::header::ENGINE, &engine.to_string());
}

/// Adds where the time went.
pub(super) fn insert_timing(headers: &mut HeaderMap, timing: &Timing) {
    insert(headers, "server-timing", &timing.to_string());
}

/// Adds what the caller should know of the pipeline.
pub(super) fn warn(headers: &mut HeaderMap, pipeline: &Pipeline) {
    for warning in pipeline.warnings() {
        if let Ok(warning) = HeaderValue::from_str(&warning) {
            headers.append(HeaderName::from_static(wire::header::WARNING), warning);
        }
    }
}

/// Values are numbers, digests and the like: what is no header value cannot occur, and would be left out.
pub(super) fn insert(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}
