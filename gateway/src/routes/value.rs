//! GET and HEAD of one object with a pipeline.

mod cached;
mod compute;
mod computed;
mod fetch;
mod flight;
mod lookup;
mod object_head;
mod sample;
mod source_read;

use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown::{
    Kind,
    wire::{self, Form},
};

use super::{
    Services,
    http::{
        AnswerForm, AnswerHead, ValueBody, insert, insert_cached_ratios, insert_timing, insert_warnings,
        respond,
    },
    prepared::Prepared,
    request::PipelineRequest,
    table::TableRoute,
};
use crate::{
    body::{self, Body},
    error::{Error, ErrorKind, Result},
    resign::ReadAdmission,
};
use sample::OpenedSample;
pub(super) use {
    computed::{ComputedSample, ValueMemory, ValueOrigin},
    fetch::FetchedSample,
    flight::ValueFlights,
    lookup::{SampleHints, cached_ratios},
};

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

    /// Answers with the value at the requested stage, or with the head of that answer.
    ///
    /// # Errors
    /// Any kind of [`ErrorKind`]. A refusal by the store is forwarded as an answer, and is no error.
    pub(super) async fn answer<B: http_body::Body>(
        &self,
        admission: ReadAdmission,
        body: B,
    ) -> Result<Response<Body>> {
        let (services, deadline) = (&self.services, self.services.limits.request_deadline);
        let request = PipelineRequest::read(admission, body, services).await?;
        let job = &request.job;
        let answer = async {
            if !request.needs_value() {
                return self.head(&request).await;
            }
            if let Some(answer) = self.table.answer(&request).await? {
                return Ok(answer);
            }
            let hints = SampleHints::default();
            let read = request.to_origin()?;
            let opened = match FetchedSample::fetch(services, job, &read, None, &hints).await? {
                FetchedSample::Opened(opened) => *opened,
                FetchedSample::Refused(answer) => return Ok(answer.into_response()),
            };
            let prepared = Prepared::for_object(&request, &opened.kind)?;
            let mut head = AnswerHead::derive(&request, &opened.headers, Some(&prepared))?;
            if !head.has_content() {
                return Ok(head.into_empty_response());
            }
            let length = opened.length.unwrap_or_default();
            insert(
                &mut head.headers,
                wire::header::SOURCE_BYTES,
                &format!("{length}/{length}"),
            );
            let form = match prepared.form {
                AnswerForm::Value(form) if prepared.stage > 0 => form,
                _ => return stored_object(head.headers, opened),
            };
            let admitted = opened.admit(services, job, &prepared).await?;
            let computed = admitted.compute(services, job, &prepared).await?;
            insert_timing(&mut head.headers, &computed.timing);
            insert(
                &mut head.headers,
                wire::header::CACHE,
                &computed.origin.to_string(),
            );
            if services.cache.is_on() {
                let ratios = cached_ratios(services, job, read.object_id(), [prepared.stage]);
                insert_cached_ratios(&mut head.headers, &ratios);
            }
            let value = wire::encode(computed.sample, form, &prepared.kind)?;
            let guard = services.stall_guard(&request.parts);
            ValueBody::respond(
                &request.parts.headers,
                head.headers,
                value,
                computed.memory,
                guard,
            )
        };
        let mut answer = tokio::time::timeout(deadline, answer)
            .await
            .unwrap_or_else(|_elapsed| {
                Err(Error::new(
                    ErrorKind::OriginTimeout,
                    format!("the request timed out: expected the start of the answer within {deadline:?}"),
                ))
            })?;
        // A refusal is the store's answer, to which nothing is added.
        if answer.headers().contains_key(wire::header::STAGE) {
            services.insert_cpus(answer.headers_mut());
            insert_warnings(answer.headers_mut(), &job.pipeline);
        }
        // HEAD: the head of the GET without its body, refusals included.
        if request.parts.method == Method::HEAD {
            answer = answer.map(|_| body::empty());
        }
        Ok(answer)
    }

    /// Answers a HEAD from the store's headers alone.
    async fn head(&self, request: &PipelineRequest) -> Result<Response<Body>> {
        let answer = self.services.origin.read(request.to_origin()?).await?;
        if answer.status != StatusCode::OK {
            return Ok(answer.into_response());
        }
        // The smallest stage, and the form of its value, depend on the object.
        let mut head = AnswerHead::derive(request, &answer.headers, request.known.as_ref())?;
        if let Some(known) = &request.known {
            let content_type = HeaderValue::from_static(known.form.content_type(&known.kind));
            head.headers.insert(header::CONTENT_TYPE, content_type);
        }
        Ok(head.into_empty_response())
    }
}

/// The answer with stage 0: the stored object, streamed without a memory permit, and without ranges.
fn stored_object(mut headers: HeaderMap, opened: OpenedSample) -> Result<Response<Body>> {
    insert_timing(&mut headers, &opened.timing);
    insert(
        &mut headers,
        wire::header::CACHE,
        &ValueOrigin::Computed.to_string(),
    );
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(Form::Encoded.content_type(&Kind::object())),
    );
    headers.insert(
        header::CONTENT_LENGTH,
        HeaderValue::from(opened.length.unwrap_or_default()),
    );
    let (head, rest) = opened
        .into_object()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a value is no stored object"))?;
    let head = stream::iter([Ok(Frame::data(head))]);
    let body = StreamBody::new(head.chain(rest.into_data_stream().map(|data| data.map(Frame::data))));
    Ok(respond(StatusCode::OK, headers, body.boxed_unsync()))
}
