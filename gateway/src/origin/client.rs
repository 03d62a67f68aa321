//! The connection pool to the store, and one exchange over it.

use std::borrow::Cow;
use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use pushdown::wire::header;

use super::headers::strip_framing;
use super::progress::{Patience, Progress};
use crate::body::{self, BUFFER, Body};
use crate::error::{Error, ErrorKind, Result};

/// An idle connection is dropped before most stores would close it, which would cost a retry.
const IDLE: Duration = Duration::from_secs(15);

/// How to reach the store.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// Scheme and authority of the store.
    pub(super) url: Uri,
    /// Authorities to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
    /// Longest time to connect.
    pub(super) connect_timeout: Duration,
    /// Longest silences before an answer begins.
    pub(super) patience: Patience,
}

/// The store, as something that answers requests.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, Body>,
    scheme: Scheme,
    authority: Authority,
    patience: Patience,
}

impl Config {
    /// Builds the pool; nothing is connected yet.
    pub(super) fn build(self) -> io::Result<Client> {
        let parts = self.url.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the store's URL needs scheme and host",
            ));
        };
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.connect_timeout));
        tcp.set_keepalive(Some(Duration::from_mins(1)));
        tcp.enforce_http(false);
        let tls = super::tls::client(scheme == Scheme::HTTPS, self.ca.as_deref())?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_preserve_header_case(true)
            .http1_max_buf_size(BUFFER)
            .http1_max_headers(header::MAX_COUNT)
            .build(connector);
        Ok(Client {
            pool,
            scheme,
            authority,
            patience: self.patience,
        })
    }
}

// === impl Client ===

impl Client {
    /// Sends a request without a body. A pooled connection that the store had just closed costs one retry, if
    /// the method only reads.
    pub(super) async fn ask(&self, request: Request<()>) -> Result<Response<Incoming>> {
        let mut request = self.address(request)?;
        strip_framing(request.headers_mut());
        let spare = is_safe(request.method()).then(|| request.clone());
        match self.ask_once(request).await {
            Err(failure) if failure.is_stale() => match spare {
                Some(request) => self.ask_once(request).await.map_err(Error::from),
                None => Err(failure.into()),
            },
            answer => answer.map_err(Error::from),
        }
    }

    async fn ask_once(&self, request: Request<()>) -> Result<Response<Incoming>, Failure> {
        let answer = self.pool.request(request.map(|()| body::empty()));
        match tokio::time::timeout(self.patience.store, answer).await {
            Ok(answer) => judge(answer),
            Err(_elapsed) => Err(Failure::Slow),
        }
    }

    /// Sends a request with a body, for as long as `progress` shows that it moves.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
        progress: &Progress,
    ) -> Result<Response<Incoming>> {
        let request = self.address(request)?;
        tokio::select! {
            answer = self.pool.request(request) => judge(answer).map_err(Error::from),
            error = progress.stalled(self.patience) => Err(error),
        }
    }

    /// Points a request at the store: the target keeps its bytes, the Host header stays the caller's.
    fn address<B>(&self, request: Request<B>) -> Result<Request<B>> {
        let (mut parts, body) = request.into_parts();
        let target = parts
            .uri
            .into_parts()
            .path_and_query
            .unwrap_or_else(|| PathAndQuery::from_static("/"));
        parts.uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(target)
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::InvalidRequest, "the request target is not a path").with_source(error)
            })?;
        parts.version = Version::HTTP_11;
        Ok(Request::from_parts(parts, body))
    }
}

/// Refuses an answer that changes the protocol: no request asks for that, and the connection would carry other bytes.
fn judge(answer: Result<Response<Incoming>, legacy::Error>) -> Result<Response<Incoming>, Failure> {
    match answer {
        Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => Err(Failure::Switched),
        answer => answer.map_err(Failure::Exchange),
    }
}

/// Methods that a store may see twice without harm. DELETE is not among them: with versioning each one leaves
/// a marker.
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

// === impl Failure ===

#[derive(Debug)]
enum Failure {
    Exchange(legacy::Error),
    Slow,
    Switched,
}

impl Failure {
    /// Whether the connection died without a byte of an answer, as one does that idled for too long.
    fn is_stale(&self) -> bool {
        let Self::Exchange(error) = self else { return false };
        if error.is_connect() {
            return false;
        }
        let Some(cause) = error
            .source()
            .and_then(|source| source.downcast_ref::<hyper::Error>())
        else {
            return false;
        };
        let reset = cause
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .is_some_and(|error| {
                matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                )
            });
        reset || cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed()
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let error = match failure {
            Failure::Slow => return Self::new(ErrorKind::OriginTimeout, "the store did not answer in time"),
            Failure::Switched => {
                return Self::new(
                    ErrorKind::OriginUnavailable,
                    "invalid answer of the store: expected HTTP, found 101 Switching Protocols",
                );
            }
            Failure::Exchange(error) => error,
        };
        let cause = error
            .source()
            .and_then(|source| source.downcast_ref::<hyper::Error>());
        if cause.is_some_and(hyper::Error::is_user) {
            return Self::new(
                ErrorKind::InvalidRequest,
                "the request's body did not arrive whole",
            )
            .with_source(error);
        }
        let message = if error.is_connect() {
            "the store cannot be reached".into()
        } else if cause.is_some_and(hyper::Error::is_parse_too_large) {
            Cow::from(format!(
                "the headers of the store's answer are too large: expected at most {BUFFER} bytes and {} headers",
                header::MAX_COUNT
            ))
        } else if cause.is_some_and(hyper::Error::is_parse) {
            "invalid answer of the store: expected HTTP/1.1".into()
        } else {
            "the store closed the connection without an answer".into()
        };
        Self::new(ErrorKind::OriginUnavailable, message).with_source(error)
    }
}
