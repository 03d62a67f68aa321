//! The forward route: passes plain S3 requests and the store's answers through unchanged.
//!
//! The caller's signature and Host are forwarded, so the gateway has no credentials and the store authorizes each
//! request. Nothing is decoded, re-encoded, buffered or added.
//!
//! In re-sign mode, the body of `DeleteObjects` and the answer to `ListBuckets` are read and written anew for keys that the
//! store does not decide on alone.

mod deletion;
mod hold;
mod upload;
mod write_answer;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Services;
use crate::audit::AuditRecord;
use crate::body::{Body, BoxError};
use crate::error::Result;
use crate::origin::{Progress, StoreSignature, strip_request};
use crate::resign::{ForwardAdmission, SignedRequest};
use crate::s3::auth::stream::VerifyingBody;
use hold::Hold;
use upload::Upload;
use write_answer::WriteAnswer;

/// Forwards plain S3 requests.
#[derive(Debug, Clone)]
pub(super) struct ForwardRoute {
    services: Services,
}

impl ForwardRoute {
    /// Forwards to the store of `services`.
    pub(super) const fn new(services: Services) -> Self {
        Self { services }
    }

    /// Forwards one request and streams both bodies.
    pub(super) async fn answer(&self, admission: ForwardAdmission, body: Incoming) -> Result<Response<Body>> {
        match admission {
            ForwardAdmission::Unchanged(mut head) => {
                strip_request(&mut head.headers, head.uri.query());
                let unchanged = StoreSignature::Unchanged;
                if body.is_end_stream() {
                    self.services.origin.send_without_body(head, unchanged).await
                } else {
                    self.send(head, unchanged, body, None).await
                }
            }
            ForwardAdmission::Signed(request) => {
                let SignedRequest {
                    mut head,
                    signing,
                    body_check: check,
                    bucket_filter,
                    audit,
                } = *request;
                let write = self.services.cache.begin_write(&head);
                let signature = StoreSignature::Renewed(signing);
                // It is verified while it flows, and its end leaves only after all of it was verified.
                let body = VerifyingBody::new(body, check.mode, check.seed, &check.headers)?;
                let answer = match body.content_length() {
                    Some(0) => {
                        body.verify_empty().await?;
                        if head.method == Method::PUT || head.method == Method::POST {
                            head.headers.insert(CONTENT_LENGTH, 0.into());
                        }
                        self.services.origin.send_without_body(head, signature).await?
                    }
                    Some(length) => {
                        head.headers.insert(CONTENT_LENGTH, length.into());
                        self.send(head, signature, body, Some(audit)).await?
                    }
                    None => {
                        head.headers.remove(CONTENT_LENGTH);
                        self.send(head, signature, body, Some(audit)).await?
                    }
                };
                let answer = match write {
                    Some(write) => WriteAnswer::watch(answer, write),
                    None => answer,
                };
                match bucket_filter {
                    Some(filter) => filter.apply(answer).await,
                    None => Ok(answer),
                }
            }
            // Boxed: rare, and larger than the others.
            ForwardAdmission::Deletion(request) => Box::pin(self.delete(*request, body)).await,
        }
    }

    /// Sends a body while it arrives. Its bytes are counted in `audit`, in re-sign mode.
    async fn send<B>(
        &self,
        head: Parts,
        signature: StoreSignature,
        body: B,
        audit: Option<AuditRecord>,
    ) -> Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let origin = &self.services.origin;
        let progress = Arc::new(Progress::default());
        let received = self.services.metrics.bytes_from_clients.clone();
        let expects = head
            .headers
            .get(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        if !expects {
            let upload = Upload::new(body, None, Arc::clone(&progress), received, audit);
            return origin
                .send(head, signature, upload.boxed_unsync(), &progress, ())
                .await;
        }
        let (hold, release) = Hold::new();
        let upload = Upload::new(body, Some(hold), Arc::clone(&progress), received, audit);
        let mut request = Request::from_parts(head, upload.boxed_unsync());
        let on_informational = release.clone();
        hyper::ext::on_informational(&mut request, move |answer| {
            on_informational.on_informational(answer.status());
        });
        let (head, body) = request.into_parts();
        let discard = release.discard_on_drop();
        let answer = origin.send(head, signature, body, &progress, discard).await?;
        release.on_answer();
        Ok(answer)
    }
}
