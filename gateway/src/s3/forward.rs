//! Face 1: plain S3, passed on as it came and answered as the store answered.
//!
//! The signature goes through with the caller's Host, so the gateway holds no credentials and the store
//! decides. Nothing is decoded, re-encoded, buffered or added.

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

/// Passes plain S3 requests on.
#[derive(Debug, Clone)]
pub struct Forward {
    origin: Origin,
    metrics: Metrics,
}

impl Forward {
    /// Forwards to this store.
    pub fn new(origin: Origin, metrics: Metrics) -> Self {
        Self { origin, metrics }
    }

    /// Passes one request on, streaming both ways.
    pub async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let (mut parts, body) = request.into_parts();
        strip_request(&mut parts.headers, parts.uri.query());
        if body.is_end_stream() {
            return self.origin.ask(Request::from_parts(parts, ())).await;
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
        let informed = release.clone();
        hyper::ext::on_informational(&mut request, move |said| informed.informed(said.status()));
        let refusal = release.refuse_at_the_end();
        let answer = self.origin.send(request, &progress, refusal).await?;
        release.answered();
        Ok(answer)
    }
}
