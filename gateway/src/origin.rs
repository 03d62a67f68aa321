//! The store behind the gateway: the pool, reads on a caller's behalf, and whether it is there at all.

mod client;
mod download;
mod frames;
mod headers;
mod object;
mod progress;
mod tls;
mod version;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;

pub use frames::{next, whole};
pub use headers::{strip_request, strip_response};
pub use object::{OriginObject, OriginRequest};
pub use progress::{Patience, Progress};
pub use version::{End, Part, Version};

use crate::body::Body;
use crate::config::Limits;
use crate::error::Result;
use crate::telemetry::Metrics;
use download::Download;

/// A readiness probe is about now: an answer that takes longer is none.
const PROBE: Duration = Duration::from_secs(2);

/// How to reach the store, and how patient to be with it.
#[derive(Debug, Clone)]
pub struct Config {
    /// Scheme and authority of the store.
    pub url: Uri,
    /// Authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Timeouts towards the store.
    pub limits: Limits,
}

/// The store. Cloning shares the pool.
#[derive(Debug, Clone)]
pub struct Origin {
    client: client::Client,
    idle: Duration,
    metrics: Metrics,
}

impl Config {
    /// Builds the pool; the store is not contacted.
    pub fn build(self, metrics: &Metrics) -> io::Result<Origin> {
        let client = client::Config {
            url: self.url,
            ca: self.ca,
            connect_timeout: self.limits.origin_connect_timeout,
            patience: Patience {
                client: self.limits.client_idle_timeout,
                store: self.limits.origin_first_byte_timeout,
            },
        };
        Ok(Origin {
            client: client.build()?,
            idle: self.limits.origin_idle_timeout,
            metrics: metrics.clone(),
        })
    }
}

// === impl Origin ===

impl Origin {
    /// Sends a request without a body as it is.
    pub async fn ask(&self, request: Request<()>) -> Result<Response<Body>> {
        let answer = self.client.ask(request).await?;
        Ok(self.passed_on(answer, ()))
    }

    /// Sends a request with a body as it is. `kept` lives as long as the answer's body.
    pub async fn send<K>(
        &self,
        request: Request<Body>,
        progress: &Progress,
        kept: K,
    ) -> Result<Response<Body>>
    where
        K: Unpin + Send + 'static,
    {
        let answer = self.client.send(request, progress).await?;
        Ok(self.passed_on(answer, kept))
    }

    /// Sends the caller's own signed GET or HEAD, with `extra` unsigned headers.
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

    /// Reads an object. The store's refusals are answers too.
    pub async fn read(&self, request: OriginRequest) -> Result<OriginObject> {
        let (parts, body) = self.ask(request.into_request()).await?.into_parts();
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
            extensions: parts.extensions,
        })
    }

    /// Whether the store answers anything at all: a refusal is an answer.
    pub async fn is_reachable(&self) -> bool {
        let mut probe = Request::new(());
        *probe.method_mut() = Method::HEAD;
        probe
            .headers_mut()
            .insert(header::HOST, HeaderValue::from_static("pushdown-readiness"));
        let answer = tokio::time::timeout(PROBE, self.client.ask(probe)).await;
        answer.is_ok_and(|answer| answer.is_ok())
    }

    fn passed_on<K>(&self, answer: Response<Incoming>, kept: K) -> Response<Body>
    where
        K: Unpin + Send + 'static,
    {
        let (mut parts, body) = answer.into_parts();
        strip_response(&mut parts.headers);
        parts.version = http::Version::HTTP_11;
        let body = Download::new(body, self.idle, self.metrics.bytes_from_store.clone(), kept);
        Response::from_parts(parts, body.boxed_unsync())
    }
}
