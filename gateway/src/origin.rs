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

pub use authorization::Authorization;
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
use crate::error::{Error, ErrorKind, Result};
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
    /// Whether a request may only be sent with a [`Signing`]: in re-sign mode.
    pub requires_signing: bool,
}

/// The store. Cloning shares the pool.
#[derive(Debug, Clone)]
pub struct Origin {
    client: client::Client,
    requires_signing: bool,
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
            requires_signing: self.requires_signing,
            idle_timeout: self.limits.origin_idle_timeout,
            metrics: metrics.clone(),
        })
    }
}

// === impl Origin ===

impl Origin {
    /// Sends a request without a body unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] in re-sign mode for a request that was not decided on.
    pub async fn send_without_body(&self, request: Request<()>) -> Result<Response<Body>> {
        let signer = self.signer(&request)?;
        let answer = self.client.send_without_body(request).await?;
        self.check(self.forward(answer, ()), signer).await
    }

    /// Sends a request with a body unchanged. `guard` is dropped with the answer's body.
    ///
    /// # Errors
    /// Like [`send_without_body`](Self::send_without_body).
    pub async fn send<G>(
        &self,
        request: Request<Body>,
        progress: &Progress,
        guard: G,
    ) -> Result<Response<Body>>
    where
        G: Unpin + Send + 'static,
    {
        let signer = self.signer(&request)?;
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

    /// Who signs a request at the store; `None` in forward mode.
    fn signer<B>(&self, request: &Request<B>) -> Result<Option<Upstream>> {
        let signer = request.extensions().get::<Signing>().map(Signing::upstream);
        if signer.is_none() && self.requires_signing {
            return Err(Error::new(
                ErrorKind::Internal,
                "a request for the store was not decided on",
            ));
        }
        Ok(signer)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// No store listens at this address.
    fn origin(requires_signing: bool) -> Origin {
        let config = Config {
            url: Uri::from_static("http://127.0.0.1:1"),
            ca: None,
            limits: Limits::default(),
            requires_signing,
        };
        config.build(&Metrics::default()).unwrap()
    }

    /// A bug that skips the decision must not become a request of the gateway's, or one that is forwarded.
    #[tokio::test]
    async fn re_sign_mode_sends_nothing_that_was_not_decided_on() {
        for (requires_signing, kind) in [(true, ErrorKind::Internal), (false, ErrorKind::OriginUnavailable)] {
            let origin = origin(requires_signing);
            let target = "/b/k".parse().unwrap();
            let read = OriginRequest::for_sample(HeaderValue::from_static("gateway"), target);
            assert_eq!(origin.read(read).await.unwrap_err().kind(), kind);
            let upload = Request::put("/b/k").body(crate::body::empty()).unwrap();
            let sent = origin.send(upload, &Progress::default(), ()).await;
            assert_eq!(sent.unwrap_err().kind(), kind);
        }
    }
}
