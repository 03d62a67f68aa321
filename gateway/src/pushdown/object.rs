//! GET and HEAD of one object with a pipeline.

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown::{
    ENGINE, Kind, Pipeline,
    wire::{self, Form, Split},
};

use super::{
    Pushdown,
    answer::{ValueBody, slice},
    conditions::{self, Unsatisfiable, Verdict},
    etag,
    request::Job,
    sample::{Fetched, Opened},
    timing::Timing,
};
use crate::{
    body::{self, Body},
    error::{Error, ErrorKind, Result},
    origin::OriginRequest,
    server::Connection,
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

impl Pushdown {
    /// Answers a GET or HEAD with a pipeline.
    ///
    /// # Errors
    /// As listed in the module of the gateway's errors; what the store refuses is passed through, and no error.
    pub async fn object(&self, parts: &Parts) -> Result<Response<Body>> {
        let job = match Job::of(parts, &self.networks) {
            // The text may name a network that has not been looked at yet.
            Err(_) if !self.networks.are_ready() => {
                self.networks.ready(self.limits.queue_wait).await?;
                Job::of(parts, &self.networks)
            }
            job => job,
        }?;
        // Every error that the text alone shows comes before the store is asked.
        if let Split::Full | Split::At(_) = job.split {
            let stage = job
                .split
                .resolve(&job.pipeline, &pushdown::BytesKind::default())?;
            job.pipeline.check_randomness(stage, job.seed, job.epoch)?;
            form_of(parts, &job.pipeline.kinds()[stage])?;
        }
        let deadline = self.limits.request_deadline;
        let answer = tokio::time::timeout(deadline, self.derive(parts, &job)).await;
        let mut answer = answer.unwrap_or_else(|_elapsed| {
            Err(Error::new(
                ErrorKind::OriginTimeout,
                format!("the answer took longer than {deadline:?}"),
            ))
        })?;
        // What the store refused is the store's answer, to which nothing is added.
        if answer.headers().contains_key(wire::header::STAGE) {
            insert(
                answer.headers_mut(),
                wire::header::CORES,
                &self.cpu.threads().to_string(),
            );
            warn(answer.headers_mut(), &job.pipeline);
        }
        Ok(answer)
    }

    async fn derive(&self, parts: &Parts, job: &Job) -> Result<Response<Body>> {
        let request = OriginRequest::from_caller(parts);
        if parts.method == Method::HEAD {
            return self.head(parts, request, job).await;
        }
        let opened = match self.open(request, job).await? {
            Fetched::Object(opened) => opened,
            Fetched::Refused(answer) => return Ok(answer.into_response()),
        };
        let stages = job.pipeline.stages(&Kind::Bytes(opened.kind))?;
        let kind = &stages[opened.stage];
        let form = form_of(parts, kind)?;
        let mut headers = head_of(&opened.headers, job, Some(opened.stage), Some(form));
        let verdict = conditions::evaluate(
            &parts.headers,
            headers.get(header::ETAG),
            headers.get(header::LAST_MODIFIED),
        );
        match verdict {
            Verdict::Proceed => {}
            Verdict::NotModified => return Ok(not_modified(headers)),
            Verdict::Failed => return Err(precondition_failed()),
        }
        insert(
            &mut headers,
            wire::header::SOURCE_BYTES,
            &format!("{0}/{0}", opened.length),
        );
        if opened.stage == 0 {
            return Ok(stored(headers, opened));
        }
        let admitted = self.admit(opened, job).await?;
        let computed = self.compute(admitted, job).await?;
        insert_timing(&mut headers, &computed.timing);
        let encoded = wire::encode(computed.sample, form, kind)?;
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(encoded.content_type),
        );
        for (name, value) in &encoded.metadata {
            insert(&mut headers, name, value);
        }
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let length = encoded.len();
        let (status, content) = match conditions::range(&parts.headers, headers.get(header::ETAG), length) {
            Ok(None) => (StatusCode::OK, encoded.parts),
            Ok(Some(range)) => {
                let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                insert(&mut headers, header::CONTENT_RANGE.as_str(), &text);
                (StatusCode::PARTIAL_CONTENT, slice(&encoded.parts, range))
            }
            Err(Unsatisfiable) => {
                let message = format!("the range lies beyond the derived answer of {length} bytes");
                return Err(Error::new(ErrorKind::InvalidRange, message));
            }
        };
        let sent: usize = content.iter().map(Bytes::len).sum();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(sent));
        let guard = parts
            .extensions
            .get::<Connection>()
            .map(|connection| connection.cut_when_stalled(self.limits.send_stall_timeout));
        let body = ValueBody::new(content, computed.permit, guard);
        Ok(respond(status, headers, body.boxed_unsync()))
    }

    /// The signature of a HEAD is no leave to fetch the object: what the store tells is all there is.
    async fn head(&self, parts: &Parts, request: OriginRequest, job: &Job) -> Result<Response<Body>> {
        let answer = self.origin.read(request).await?;
        if answer.status != StatusCode::OK {
            return Ok(answer.into_response());
        }
        // Which stage is the smallest, and the form of its value, only the object tells.
        let stage = match job.split {
            Split::Smallest => None,
            split => Some(split.resolve(&job.pipeline, &pushdown::BytesKind::default())?),
        };
        let form = stage
            .map(|stage| form_of(parts, &job.pipeline.kinds()[stage]))
            .transpose()?;
        let mut headers = head_of(&answer.headers, job, stage, form);
        if let (Some(stage), Some(form)) = (stage, form) {
            let content_type = form.content_type(&job.pipeline.kinds()[stage]);
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        match conditions::evaluate(
            &parts.headers,
            headers.get(header::ETAG),
            headers.get(header::LAST_MODIFIED),
        ) {
            Verdict::Proceed => Ok(respond(StatusCode::OK, headers, body::empty())),
            Verdict::NotModified => Ok(not_modified(headers)),
            Verdict::Failed => Err(precondition_failed()),
        }
    }
}

/// The form that the caller accepts for a value of `kind`.
fn form_of(parts: &Parts, kind: &Kind) -> Result<Form> {
    let accept: Vec<&str> = parts
        .headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let accept = (!accept.is_empty()).then(|| accept.join(", "));
    Form::negotiate(accept.as_deref(), kind).ok_or_else(|| {
        Error::new(
            ErrorKind::NotAcceptable,
            format!(
                "a value of {kind} cannot be sent as `{}`",
                accept.as_deref().unwrap_or_default()
            ),
        )
    })
}

/// The headers that do not depend on the value.
fn head_of(source: &HeaderMap, job: &Job, stage: Option<usize>, form: Option<Form>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in source {
        if KEPT.contains(name) || name.as_str().starts_with(METADATA) {
            headers.append(name, value.clone());
        }
    }
    if let (Some(stage), Some(form)) = (stage, form) {
        if let Some(etag) = etag::derived(source, job, stage, form) {
            headers.insert(header::ETAG, etag);
        }
        insert(&mut headers, wire::header::STAGE, &stage.to_string());
    }
    if let Some(etag) = source.get(header::ETAG) {
        headers.insert(HeaderName::from_static(wire::header::SOURCE_ETAG), etag.clone());
    }
    headers.insert(
        HeaderName::from_static(wire::header::ENGINE),
        HeaderValue::from(ENGINE),
    );
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

/// Stage 0: the object as it is stored, streamed through without a permit, and without ranges.
fn stored(mut headers: HeaderMap, opened: Opened) -> Response<Body> {
    insert_timing(&mut headers, &opened.timing);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(Form::Encoded.content_type(&Kind::object())),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(opened.length));
    let (head, rest) = opened.into_stream();
    let head = stream::iter([Ok(Frame::data(head))]);
    let body = StreamBody::new(head.chain(rest.into_data_stream().map(|data| data.map(Frame::data))));
    respond(StatusCode::OK, headers, body.boxed_unsync())
}

fn not_modified(headers: HeaderMap) -> Response<Body> {
    respond(StatusCode::NOT_MODIFIED, headers, body::empty())
}

fn precondition_failed() -> Error {
    Error::new(
        ErrorKind::PreconditionFailed,
        "a condition of the request does not hold for the derived answer",
    )
}

fn respond(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn insert_timing(headers: &mut HeaderMap, timing: &Timing) {
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
fn insert(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}
