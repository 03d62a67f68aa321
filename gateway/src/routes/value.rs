//! GET and HEAD of one object with a pipeline.

mod compute;
mod fetch;
mod lookup;
mod source;

use std::sync::Arc;

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
    request::PipelineRequest,
    stage::{AnswerStage, StagedJob},
    table,
};
use crate::{
    body::{self, Body},
    error::{Error, ErrorKind, Result},
    resign::ReadAdmission,
};
use source::OpenedSample;
pub(super) use {
    compute::ValueOrigin,
    fetch::FetchedSample,
    lookup::SampleHints,
    source::{ComputedSample, ValueFlights, ValueMemory},
};

/// Answers a GET or HEAD with a pipeline.
#[derive(Debug, Clone)]
pub(super) struct ValueRoute {
    services: Arc<Services>,
}

impl ValueRoute {
    /// The route to the objects of a store, computed by `services`.
    pub(super) fn new(services: Services) -> Self {
        Self {
            services: Arc::new(services),
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
            if let Some(scan) = StagedJob::of_scan(services, job)
                && let Some(answer) = table::answer(&request, scan).await?
            {
                return Ok(answer);
            }
            let hints = SampleHints::default();
            let read = request.to_origin()?;
            let opened = match FetchedSample::fetch(services, job, &read, None, &hints).await? {
                FetchedSample::Opened(opened) => *opened,
                FetchedSample::Refused(answer) => return Ok(answer.into_response()),
            };
            let staged = Arc::clone(&opened.staged);
            let stage = match request.known {
                // Only the stored object has forms that depend on its bytes.
                Some(known) if staged.stage > 0 => known,
                _ => AnswerStage::of_job(&request.parts, &staged)?,
            };
            let mut head = AnswerHead::derive(&request, &opened.headers, Some(stage))?;
            if !head.has_content() {
                return Ok(head.into_empty_response());
            }
            let length = opened.length.unwrap_or_default();
            insert(
                &mut head.headers,
                wire::header::SOURCE_BYTES,
                &format!("{length}/{length}"),
            );
            let form = match stage.form {
                AnswerForm::Value(form) if staged.stage > 0 || staged.crop_memory.is_some() => form,
                _ => return stored_object(head.headers, opened),
            };
            let computed = opened.compute(()).await?;
            insert_timing(&mut head.headers, &services.replica, &computed.timing);
            insert(
                &mut head.headers,
                wire::header::CACHE,
                &computed.origin.to_string(),
            );
            if services.cache.is_on() {
                let ratios = job.cached_ratios(&services.cache, read.object_id(), [staged.stage]);
                insert_cached_ratios(&mut head.headers, &ratios);
            }
            let value = wire::encode(computed.sample, form, staged.kind())?;
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
        let mut head = AnswerHead::derive(request, &answer.headers, request.known)?;
        if let Some(AnswerStage { stage, form }) = request.known {
            let kind = &request.job.pipeline.kinds()[stage];
            let content_type = HeaderValue::from_static(form.content_type(kind));
            head.headers.insert(header::CONTENT_TYPE, content_type);
        }
        Ok(head.into_empty_response())
    }
}

/// The answer with stage 0: the stored object, streamed without a memory permit, and without ranges.
fn stored_object(mut headers: HeaderMap, opened: OpenedSample) -> Result<Response<Body>> {
    insert_timing(&mut headers, &opened.staged.services.replica, &opened.timing);
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
