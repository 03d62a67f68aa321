//! The origin, the object store of the gateway: its connection pool, reads on a caller's behalf, and readiness probes.

mod authorization;
mod client;
mod download;
mod frames;
mod headers;
mod object;
mod object_id;
mod progress;
mod refusal;
mod signer;
mod tls;
mod version;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::Instant;

pub use authorization::{Authorization, Confirmation};
pub use frames::{MAX_DRAINED_BYTES, drain, next_bytes, read_to_end};
pub use headers::{derived_headers, strip_request, strip_response};
pub use object::{OriginObject, OriginRequest};
pub use object_id::ObjectId;
pub use progress::{Progress, StallTimeouts};
pub use signer::{SignedPayload, Signer, Signing};
pub use version::{FetchedTail, ObjectTail, TailPart, VersionedObject};

use crate::access::Upstream;
use crate::body::Body;
use crate::config::Limits;
use crate::error::Result;
use crate::telemetry::Metrics;
use download::Download;

/// Timeout of a readiness probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Address of the store, and timeouts.
#[derive(Debug, Clone)]
pub struct Config {
    /// Scheme and authority of the store.
    pub url: Uri,
    /// Certificate authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Timeouts of requests to the store.
    pub limits: Limits,
}

/// The store. Cloning shares the pool.
#[derive(Debug, Clone)]
pub struct Origin {
    client: client::Client,
    idle_timeout: Duration,
    metrics: Metrics,
}

impl Config {
    /// Builds the pool. Does not connect to the store.
    pub fn build(self, metrics: &Metrics) -> io::Result<Origin> {
        let client = client::Config {
            url: self.url,
            ca: self.ca,
            connect_timeout: self.limits.origin_connect_timeout,
            stall_timeouts: StallTimeouts {
                client: self.limits.client_idle_timeout,
                store: self.limits.origin_first_byte_timeout,
            },
        };
        Ok(Origin {
            client: client.build()?,
            idle_timeout: self.limits.origin_idle_timeout,
            metrics: metrics.clone(),
        })
    }
}

// === impl Origin ===

impl Origin {
    /// Sends a request without a body unchanged.
    pub async fn send_without_body(&self, request: Request<()>) -> Result<Response<Body>> {
        let signer = request.extensions().get::<Signing>().map(Signing::upstream);
        let answer = self.client.send_without_body(request).await?;
        self.check(self.forward(answer, ()), signer).await
    }

    /// Sends a request with a body unchanged. `guard` is dropped with the answer's body.
    pub async fn send<G>(
        &self,
        request: Request<Body>,
        progress: &Progress,
        guard: G,
    ) -> Result<Response<Body>>
    where
        G: Unpin + Send + 'static,
    {
        let signer = request.extensions().get::<Signing>().map(Signing::upstream);
        let answer = self.client.send(request, progress).await?;
        self.check(self.forward(answer, guard), signer).await
    }

    /// Sends the caller's signed GET or HEAD with `extra` unsigned headers.
    pub async fn get(&self, caller: &Parts, extra: HeaderMap) -> Result<OriginObject> {
        let mut request = OriginRequest::from_caller(caller);
        let mut name = None;
        for (next, value) in extra {
            name = next.or(name);
            if let Some(name) = &name {
                request.add(name.clone(), value);
            }
        }
        self.read(request).await
    }

    /// Reads an object. A refusal by the store is an answer, and no error.
    pub async fn read(&self, request: OriginRequest) -> Result<OriginObject> {
        // Before it is sent: the store's answer is about a later time.
        let asked_at = request.is_of_gateway().then(Instant::now);
        let (parts, body) = self.send_without_body(request.into_request()).await?.into_parts();
        let content_length = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse().ok());
        Ok(OriginObject {
            status: parts.status,
            headers: parts.headers,
            content_length,
            body,
            asked_at,
            extensions: parts.extensions,
        })
    }

    /// Whether the store answers at all. A refusal counts as an answer.
    pub async fn is_reachable(&self) -> bool {
        let mut probe = Request::new(());
        *probe.method_mut() = Method::HEAD;
        probe
            .headers_mut()
            .insert(header::HOST, HeaderValue::from_static("pushdown-readiness"));
        let answer = tokio::time::timeout(PROBE_TIMEOUT, self.client.send_without_body(probe)).await;
        answer.is_ok_and(|answer| answer.is_ok())
    }

    /// Keeps answers about the gateway's own signature from the caller.
    async fn check(&self, answer: Response<Body>, signer: Option<Upstream>) -> Result<Response<Body>> {
        match signer {
            Some(signer) => refusal::check(answer, signer).await,
            None => Ok(answer),
        }
    }

    fn forward<G>(&self, answer: Response<Incoming>, guard: G) -> Response<Body>
    where
        G: Unpin + Send + 'static,
    {
        let (mut parts, body) = answer.into_parts();
        strip_response(&mut parts.headers);
        parts.version = http::Version::HTTP_11;
        let received = self.metrics.bytes_from_store.clone();
        let body = Download::new(body, self.idle_timeout, received, guard);
        Response::from_parts(parts, body.boxed_unsync())
    }
}
