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
use crate::origin::{Progress, strip_request};
use crate::resign::{BodyCheck, BucketFilter, Deletion};
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
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let (mut parts, body) = request.into_parts();
        strip_request(&mut parts.headers, parts.uri.query());
        let deletion = parts.extensions.remove::<Deletion>();
        let filter = parts.extensions.remove::<BucketFilter>();
        let write = self.services.cache.begin_write(&parts);
        let answer = match (parts.extensions.remove::<BodyCheck>(), deletion) {
            (None, _) if body.is_end_stream() => self.send_without_body(parts).await,
            (None, _) => self.send(parts, body).await,
            (Some(check), None) => self.send_verified(parts, body, check).await,
            // Boxed: rare, and larger than the others.
            (Some(check), Some(deletion)) => Box::pin(self.delete(parts, body, check, deletion)).await,
        }?;
        let answer = match write {
            Some(write) => WriteAnswer::watch(answer, write),
            None => answer,
        };
        match filter {
            Some(filter) => filter.apply(answer).await,
            None => Ok(answer),
        }
    }

    async fn send_without_body(&self, parts: Parts) -> Result<Response<Body>> {
        self.services
            .origin
            .send_without_body(Request::from_parts(parts, ()))
            .await
    }

    /// Sends a body that is verified while it flows. Its end leaves only after all of it was verified.
    async fn send_verified(
        &self,
        mut parts: Parts,
        body: Incoming,
        check: BodyCheck,
    ) -> Result<Response<Body>> {
        let body = VerifyingBody::new(body, check.mode, check.seed, &check.headers)?;
        match body.content_length() {
            Some(0) => {
                body.verify_empty().await?;
                if parts.method == Method::PUT || parts.method == Method::POST {
                    parts.headers.insert(CONTENT_LENGTH, 0.into());
                }
                self.send_without_body(parts).await
            }
            Some(length) => {
                parts.headers.insert(CONTENT_LENGTH, length.into());
                self.send(parts, body).await
            }
            None => {
                parts.headers.remove(CONTENT_LENGTH);
                self.send(parts, body).await
            }
        }
    }

    async fn send<B>(&self, parts: Parts, body: B) -> Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let progress = Arc::new(Progress::default());
        let received = self.services.metrics.bytes_from_clients.clone();
        let audit = parts.extensions.get::<AuditRecord>().cloned();
        let expects = parts
            .headers
            .get(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        if !expects {
            let upload = Upload::new(body, None, Arc::clone(&progress), received, audit);
            let request = Request::from_parts(parts, upload.boxed_unsync());
            return self.services.origin.send(request, &progress, ()).await;
        }
        let (hold, release) = Hold::new();
        let upload = Upload::new(body, Some(hold), Arc::clone(&progress), received, audit);
        let mut request = Request::from_parts(parts, upload.boxed_unsync());
        let on_informational = release.clone();
        hyper::ext::on_informational(&mut request, move |answer| {
            on_informational.on_informational(answer.status());
        });
        let discard = release.discard_on_drop();
        let answer = self.services.origin.send(request, &progress, discard).await?;
        release.on_answer();
        Ok(answer)
    }
}
