//! GET and HEAD of one object with a pipeline.

mod object_head;
mod sample;
mod steps;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown::{
    Kind,
    wire::{self, Form},
};

use super::{
    Services,
    http::{
        AnswerForm, ValueBody, check_conditions,
        conditions::{self, UnsatisfiableRange},
        derived_headers, insert, insert_timing, insert_warnings, respond, slice,
    },
    prepared::Prepared,
    request::PipelineRequest,
    table::TableRoute,
};
use crate::{
    body::{self, Body},
    error::{Error, ErrorKind, Result},
};
pub(super) use sample::{ComputedSample, FetchedSample, OpenedSample};

/// Answers a GET or HEAD with a pipeline.
#[derive(Debug, Clone)]
pub(super) struct ValueRoute {
    services: Services,
    /// Answers if the prefix is a table scan.
    table: TableRoute,
}

impl ValueRoute {
    /// The route to the objects of a store, computed by `services`.
    pub(super) fn new(services: Services) -> Self {
        Self {
            table: TableRoute::new(services.clone()),
            services,
        }
    }

    /// Answers with the value at the requested stage.
    ///
    /// # Errors
    /// Any kind of [`ErrorKind`]. A refusal by the store is forwarded as an answer, and is no error.
    pub(super) async fn answer<B: http_body::Body>(&self, request: Request<B>) -> Result<Response<Body>> {
        let request = PipelineRequest::read(request, &self.services).await?;
        let deadline = self.services.limits.request_deadline;
        let answer = tokio::time::timeout(deadline, self.derive(&request)).await;
        let mut answer = answer.unwrap_or_else(|_elapsed| {
            Err(Error::new(
                ErrorKind::OriginTimeout,
                format!("the request timed out: expected the start of the answer within {deadline:?}"),
            ))
        })?;
        // A refusal is the store's answer, to which nothing is added.
        if answer.headers().contains_key(wire::header::STAGE) {
            insert(
                answer.headers_mut(),
                wire::header::CORES,
                &self.services.cpu.threads().to_string(),
            );
            if let Some(name) = &self.services.cpu_set_id {
                insert(answer.headers_mut(), wire::header::CPUS, name);
            }
            insert_warnings(answer.headers_mut(), &request.job.pipeline);
        }
        Ok(answer)
    }

    async fn derive(&self, request: &PipelineRequest) -> Result<Response<Body>> {
        let (services, job) = (&self.services, &request.job);
        if request.parts.method == Method::HEAD {
            return self.head(request).await;
        }
        if let Some(answer) = self.table.answer(request).await? {
            return Ok(answer);
        }
        let opened = match FetchedSample::fetch(services, request.to_origin()).await? {
            FetchedSample::Object(opened) => opened,
            FetchedSample::Refused(answer) => return Ok(answer.into_response()),
        };
        let prepared = Prepared::for_object(request, &opened.kind)?;
        let mut headers = derived_headers(&opened.headers, job, Some(&prepared));
        if let Some(answer) = check_conditions(&request.parts, &headers)? {
            return Ok(answer);
        }
        insert(
            &mut headers,
            wire::header::SOURCE_BYTES,
            &format!("{0}/{0}", opened.length),
        );
        match prepared.form {
            AnswerForm::Value(form) if prepared.stage > 0 => {
                let kind = prepared.kind.clone();
                let admitted = opened.admit(services, job, prepared).await?;
                let computed = admitted.compute(services, job).await?;
                self.value(&request.parts, headers, computed, form, &kind)
            }
            _ => Ok(stored_object(headers, opened)),
        }
    }

    /// The answer with a whole value, or with the requested range of it.
    fn value(
        &self,
        parts: &Parts,
        mut headers: HeaderMap,
        computed: ComputedSample,
        form: Form,
        kind: &Kind,
    ) -> Result<Response<Body>> {
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
            Err(UnsatisfiableRange) => {
                let message =
                    format!("invalid range: expected one within the derived answer of {length} bytes");
                return Err(Error::new(ErrorKind::InvalidRange, message));
            }
        };
        let sent: usize = content.iter().map(Bytes::len).sum();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(sent));
        let body = ValueBody::new(content, computed.permit, self.services.stall_guard(parts));
        Ok(respond(status, headers, body.boxed_unsync()))
    }

    /// Answers a HEAD from the store's headers alone, because the signature of a HEAD does not authorize a GET.
    async fn head(&self, request: &PipelineRequest) -> Result<Response<Body>> {
        let answer = self.services.origin.read(request.to_origin()).await?;
        if answer.status != StatusCode::OK {
            return Ok(answer.into_response());
        }
        // The smallest stage, and the form of its value, depend on the object.
        let mut headers = derived_headers(&answer.headers, &request.job, request.known.as_ref());
        if let Some(known) = &request.known {
            let content_type = known.form.content_type(&known.kind);
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        match check_conditions(&request.parts, &headers)? {
            Some(answer) => Ok(answer),
            None => Ok(respond(StatusCode::OK, headers, body::empty())),
        }
    }
}

/// The answer with stage 0: the stored object, streamed without a memory permit, and without ranges.
fn stored_object(mut headers: HeaderMap, opened: OpenedSample) -> Response<Body> {
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
