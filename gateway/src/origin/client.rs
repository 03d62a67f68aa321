//! A connection pool to stores, and single exchanges over it.

use std::borrow::Cow;
use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use pushdown::wire::header;
use rustls::CertificateError;

use super::connector::{HostCheck, HostRefusal, StoreConnector};
use super::headers::strip_framing;
use super::progress::{Progress, StallTimeouts};
use crate::body::{self, BUFFER, Body};
use crate::error::{Error, ErrorKind, Result};
use crate::s3::auth::stream::StreamError;

/// Idle connections close after this time, before most stores close them: a connection closed by the store costs a retry.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// How to connect to stores.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// Whether any of them has TLS.
    pub(super) is_tls: bool,
    /// Certificate authorities to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
    /// The setting that `ca` comes from.
    pub(super) ca_setting: &'static str,
    /// What is checked before a connection, for stores that callers state.
    pub(super) check: Option<HostCheck>,
    /// Longest time to connect.
    pub(super) connect_timeout: Duration,
    /// Longest silences before an answer begins.
    pub(super) stall_timeouts: StallTimeouts,
}

/// An HTTP client of stores. It sends addressed requests, and follows no redirect.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pool: Pool<HttpsConnector<StoreConnector>, Body>,
    stall_timeouts: StallTimeouts,
    /// Whose certificates are trusted, for errors.
    trusted: String,
}

impl Config {
    /// Builds the pool. Does not connect.
    pub(super) fn build(self) -> io::Result<Client> {
        let tcp = StoreConnector::new(self.connect_timeout, self.check);
        let tls = super::tls::client(self.is_tls, self.ca.as_deref(), self.ca_setting)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .http1_preserve_header_case(true)
            .http1_max_buf_size(BUFFER)
            .http1_max_headers(header::MAX_COUNT)
            .build(connector);
        let setting = self.ca_setting;
        let trusted = if self.ca.is_some() {
            format!("by an authority in the file of {setting}")
        } else {
            format!("by an authority of the gateway's system; {setting} sets others")
        };
        Ok(Client {
            pool,
            stall_timeouts: self.stall_timeouts,
            trusted,
        })
    }
}

impl Client {
    /// Sends a request without a body. Retries once, for read-only methods, if the store had already closed the pooled
    /// connection.
    pub(super) async fn send_without_body(&self, mut request: Request<()>) -> Result<Response<Incoming>> {
        strip_framing(request.headers_mut());
        let url = request.uri().clone();
        let retry = is_safe(request.method()).then(|| request.clone());
        let answer = match self.send_once(request).await {
            Err(error) if error.is_stale_connection() => match retry {
                Some(request) => self.send_once(request).await,
                None => Err(error),
            },
            answer => answer,
        };
        answer.map_err(|error| self.error(&url, error))
    }

    async fn send_once(&self, request: Request<()>) -> Result<Response<Incoming>, ExchangeError> {
        let answer = self.pool.request(request.map(|()| body::empty()));
        match tokio::time::timeout(self.stall_timeouts.store, answer).await {
            Ok(answer) => check_protocol(answer),
            Err(_elapsed) => Err(ExchangeError::Timeout),
        }
    }

    /// Sends a request with a body. Fails if `progress` shows a stall.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
        progress: &Progress,
    ) -> Result<Response<Incoming>> {
        let url = request.uri().clone();
        tokio::select! {
            answer = self.pool.request(request) => check_protocol(answer).map_err(|error| self.error(&url, error)),
            error = progress.wait_for_stall(self.stall_timeouts) => Err(error),
        }
    }

    /// The error of an exchange with the store of a URL. A certificate that is refused is named with what would be accepted.
    fn error(&self, url: &Uri, error: ExchangeError) -> Error {
        match error {
            ExchangeError::Http(error) => match find_cause::<rustls::Error>(&error) {
                Some(rustls::Error::InvalidCertificate(fault)) => {
                    let message = format!(
                        "invalid certificate of the store `{}`: expected one for this host, {}; found {}",
                        url.host().unwrap_or_default(),
                        self.trusted,
                        describe_certificate(fault)
                    );
                    Error::new(ErrorKind::OriginUnavailable, message).with_source(error)
                }
                _ => ExchangeError::Http(error).into(),
            },
            other => other.into(),
        }
    }
}

/// Refuses a change of the protocol: no request asks for it, and the connection would no longer be HTTP.
fn check_protocol(
    answer: Result<Response<Incoming>, legacy::Error>,
) -> Result<Response<Incoming>, ExchangeError> {
    match answer {
        Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => Err(ExchangeError::Switched),
        answer => answer.map_err(ExchangeError::Http),
    }
}

/// Whether a request with this method can be repeated without harm. DELETE cannot: with versioning each one creates a
/// delete marker.
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[derive(Debug)]
enum ExchangeError {
    Http(legacy::Error),
    Timeout,
    Switched,
}

impl ExchangeError {
    /// Whether the connection closed before the first byte of an answer, as stores close connections that idle too long.
    fn is_stale_connection(&self) -> bool {
        let Self::Http(error) = self else { return false };
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

/// What is wrong with a certificate. Not all that it says: that is in the log.
fn describe_certificate(fault: &CertificateError) -> &'static str {
    match fault {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "one for another host"
        }
        // Of one with the same name, if it is the signature that is wrong.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => "one of another authority",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "one that has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "one that is not valid yet"
        }
        _ => "one that is not valid",
    }
}

/// The first cause of this type.
fn find_cause<'a, T>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a T>
where
    T: std::error::Error + 'static,
{
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error has what it was made of inside, and that one's source as its own.
        cause = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

impl From<ExchangeError> for Error {
    fn from(error: ExchangeError) -> Self {
        let error = match error {
            ExchangeError::Timeout => {
                return Self::new(ErrorKind::OriginTimeout, "the store did not answer in time");
            }
            ExchangeError::Switched => {
                return Self::new(
                    ErrorKind::OriginUnavailable,
                    "invalid answer of the store: expected HTTP, found 101 Switching Protocols",
                );
            }
            ExchangeError::Http(error) => error,
        };
        let cause = error
            .source()
            .and_then(|source| source.downcast_ref::<hyper::Error>());
        if let Some(reason) = find_cause::<StreamError>(&error) {
            let message = reason.to_string();
            return Self::new(ErrorKind::InvalidRequest, message).with_source(error);
        }
        if cause.is_some_and(hyper::Error::is_user) {
            return Self::new(ErrorKind::InvalidRequest, "the request's body is incomplete")
                .with_source(error);
        }
        match find_cause::<HostRefusal>(&error) {
            Some(refusal @ (HostRefusal::TooMany | HostRefusal::TooManyLookups)) => {
                return Self::new(ErrorKind::SlowDown, refusal.to_string());
            }
            // Without a source: what was looked up stays in the gateway.
            Some(refusal @ HostRefusal::Address(_)) => {
                return Self::new(ErrorKind::StoreNotAllowed, refusal.to_string());
            }
            None => {}
        }
        let message = if error.is_connect() {
            "the store is unreachable".into()
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
