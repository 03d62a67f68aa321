//! The forward route: passes plain S3 requests and the store's answers through unchanged.
//!
//! The caller's signature and Host are forwarded, so the gateway has no credentials and the store authorizes each
//! request. Nothing is decoded, re-encoded, buffered or added.

mod hold;
mod upload;

use std::sync::Arc;

use http::header::EXPECT;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::body::Body;
use crate::error::Result;
use crate::origin::{Origin, Progress, strip_request};
use crate::telemetry::Metrics;
use hold::Hold;
use upload::Upload;

/// Forwards plain S3 requests.
#[derive(Debug, Clone)]
pub(super) struct ForwardRoute {
    origin: Origin,
    metrics: Metrics,
}

impl ForwardRoute {
    /// Forwards to `origin`.
    pub(super) const fn new(origin: Origin, metrics: Metrics) -> Self {
        Self { origin, metrics }
    }

    /// Forwards one request and streams both bodies.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let (mut parts, body) = request.into_parts();
        strip_request(&mut parts.headers, parts.uri.query());
        if body.is_end_stream() {
            return self
                .origin
                .send_without_body(Request::from_parts(parts, ()))
                .await;
        }
        let progress = Arc::new(Progress::default());
        let received = self.metrics.bytes_from_clients.clone();
        let expects = parts
            .headers
            .get(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        if !expects {
            let upload = Upload::new(body, None, Arc::clone(&progress), received);
            let request = Request::from_parts(parts, upload.boxed_unsync());
            return self.origin.send(request, &progress, ()).await;
        }
        let (hold, release) = Hold::new();
        let upload = Upload::new(body, Some(hold), Arc::clone(&progress), received);
        let mut request = Request::from_parts(parts, upload.boxed_unsync());
        let on_informational = release.clone();
        hyper::ext::on_informational(&mut request, move |answer| {
            on_informational.on_informational(answer.status());
        });
        let discard = release.discard_on_drop();
        let answer = self.origin.send(request, &progress, discard).await?;
        release.on_answer();
        Ok(answer)
    }
}
