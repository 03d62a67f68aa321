//! The heads of derived answers.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use pushdown::{Engine, Pipeline, wire};
use pushdown_s3::conditions::{self, ConditionResult};

use super::{Timing, etag};
use crate::{
    body::{self, Body},
    config::ReplicaId,
    engine,
    error::{Error, ErrorKind, Result},
    origin,
    routes::{job::PipelineJob, request::PipelineRequest, stage::AnswerStage},
};

/// Request headers that a derived answer depends on.
const VARY: [&str; 10] = [
    "accept",
    wire::header::PIPELINE,
    wire::header::SPLIT,
    wire::header::FORM,
    wire::header::SEED,
    wire::header::EPOCH,
    wire::header::MEMBER,
    wire::header::OFFSET,
    wire::header::SIZE,
    wire::header::HEADER_SIZE,
];

/// The head of a derived answer, as far as it does not depend on the bytes of the value.
#[derive(Debug)]
pub(in crate::routes) struct AnswerHead {
    /// 304 if the conditions of the request ask for no content.
    status: StatusCode,
    pub(in crate::routes) headers: HeaderMap,
}

impl AnswerHead {
    /// The head that follows from the store's headers and from `value`, which is `None` if its stage is unknown.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionFailed`] if a condition of the request is false.
    pub(in crate::routes) fn derive(
        request: &PipelineRequest,
        source: &HeaderMap,
        value: Option<AnswerStage>,
    ) -> Result<Self> {
        let headers = derived_headers(source, &request.job, value);
        let result = conditions::evaluate(
            &request.parts.headers,
            headers.get(header::ETAG),
            headers.get(header::LAST_MODIFIED),
        );
        let status = match result {
            ConditionResult::Proceed => StatusCode::OK,
            ConditionResult::NotModified => StatusCode::NOT_MODIFIED,
            ConditionResult::Failed => {
                return Err(Error::new(
                    ErrorKind::PreconditionFailed,
                    "a condition of the request is false for the derived answer",
                ));
            }
        };
        Ok(Self { status, headers })
    }

    /// Whether content follows. It does not if the caller has the value.
    pub(in crate::routes) fn has_content(&self) -> bool {
        self.status != StatusCode::NOT_MODIFIED
    }

    /// The answer without content.
    pub(in crate::routes) fn into_empty_response(self) -> Response<Body> {
        respond(self.status, self.headers, body::empty())
    }
}

fn derived_headers(source: &HeaderMap, job: &PipelineJob, value: Option<AnswerStage>) -> HeaderMap {
    let mut headers = origin::derived_headers(source);
    if let Some(AnswerStage { stage, form }) = value {
        if let Some(etag) = etag::derived(source, job, stage, form) {
            headers.insert(header::ETAG, etag);
        }
        insert(&mut headers, wire::header::STAGE, &stage.to_string());
    }
    if let Some(etag) = source.get(header::ETAG) {
        headers.insert(HeaderName::from_static(wire::header::SOURCE_ETAG), etag.clone());
    }
    // A value of unknown stage may be the result of all steps.
    let steps = job.pipeline.steps();
    let steps = value.map_or(steps, |value| &steps[..job.dependency_steps(value.stage)]);
    insert_engine(&mut headers, &engine::stated(steps));
    insert(&mut headers, header::VARY.as_str(), &VARY.join(", "));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    headers
}

/// An answer with this status, these headers and this body.
pub(in crate::routes) fn respond(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Adds the engine that computed the answer.
pub(in crate::routes) fn insert_engine(headers: &mut HeaderMap, engine: &Engine) {
    insert(headers, wire::header::ENGINE, &engine.to_string());
}

/// Adds `Server-Timing`: the replica without a duration, and the times of the sample.
pub(in crate::routes) fn insert_timing(headers: &mut HeaderMap, replica: &ReplicaId, timing: &Timing) {
    let text = format!("replica;desc=\"{replica}\", {timing}");
    insert(headers, "server-timing", &text);
}

/// Adds how much of the data set is cached, if anything is.
pub(in crate::routes) fn insert_cached_ratios(headers: &mut HeaderMap, ratios: &wire::CachedRatios) {
    if !ratios.is_empty() {
        insert(headers, wire::header::CACHED_RATIO, &ratios.to_string());
    }
}

/// Adds the warnings of the pipeline.
pub(in crate::routes) fn insert_warnings(headers: &mut HeaderMap, pipeline: &Pipeline) {
    for warning in pipeline.warnings() {
        if let Ok(warning) = HeaderValue::from_str(&warning) {
            headers.append(HeaderName::from_static(wire::header::WARNING), warning);
        }
    }
}

/// Adds a header. Values are numbers, digests and the like, so that they are always valid; an invalid one is omitted.
pub(in crate::routes) fn insert(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}
