//! HTTP to one endpoint: connections, timeouts and byte counters.

mod answer;
mod metered;

use std::{error::Error as StdError, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Uri, Version, header,
    uri::{Authority, InvalidUri, PathAndQuery, Scheme},
};
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use pushdown::wire::{
    Features,
    header::{FEATURES, MAX_COUNT, MODELS_PATH},
};
use pushdown_exec::sync::RwLock;
use pushdown_s3::{is_transient, seconds};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use tokio::{sync::OnceCell, time::timeout};

pub(crate) use answer::{Answer, Refusal};
use metered::MeteredConnector;

use crate::{
    error::{Error, ErrorKind, Result},
    stats::Traffic,
};

/// Idle connections are closed before the gateway closes them (75 s), so that no request uses a dead one.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// Longest wait for the features of a gateway.
const FEATURES_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait for the endpoint before an attempt fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until a TCP connection is established. Default 5 s.
    #[serde(rename = "connect_seconds", with = "seconds")]
    pub connect: Duration,
    /// From a request to the head of its answer, including connecting. Default 60 s.
    #[serde(rename = "first_byte_seconds", with = "seconds")]
    pub first_byte: Duration,
    /// Between any two pieces of an answer. Default 60 s.
    #[serde(rename = "idle_seconds", with = "seconds")]
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let minute = Duration::from_mins(1);
        Self {
            connect: Duration::from_secs(5),
            first_byte: minute,
            idle: minute,
        }
    }
}

/// Scheme, host and port of an S3 endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    /// The Host header; it is signed.
    host: String,
}

/// A pool of connections to one endpoint.
#[derive(Debug)]
pub(crate) struct Transport {
    client: Client<HttpsConnector<MeteredConnector>, Full<Bytes>>,
    endpoint: Endpoint,
    timeouts: Timeouts,
    traffic: Arc<Traffic>,
    /// The features that the gateway listed last; none before its first answer.
    features: RwLock<Features>,
    /// Set once the gateway has been asked for them.
    asked: OnceCell<()>,
}

impl Endpoint {
    /// Parses `http://host:port` or `https://host`.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let invalid = |found: &str| {
            Error::config(format!(
                "invalid endpoint `{url}`: expected a URL such as http://127.0.0.1:9900, found {found}"
            ))
        };
        let uri: Uri = url
            .parse()
            .map_err(|error: InvalidUri| invalid("no URL").with_source(error))?;
        let parts = uri.into_parts();
        let scheme = parts
            .scheme
            .filter(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
        let scheme = scheme.ok_or_else(|| invalid("neither http:// nor https://"))?;
        let authority = parts.authority.ok_or_else(|| invalid("no host"))?;
        if authority.as_str().contains('@') {
            return Err(Error::config(
                "invalid endpoint: expected scheme, host and port, found a user name or password",
            ));
        }
        if parts.path_and_query.is_some_and(|path| path.as_str() != "/") {
            return Err(invalid("a path"));
        }
        let own_port = if scheme == Scheme::HTTPS { 443 } else { 80 };
        let host = match authority.port_u16() {
            Some(port) if port != own_port => authority.as_str().to_owned(),
            _ => authority.host().to_owned(),
        };
        Ok(Self {
            scheme,
            authority,
            host,
        })
    }

    /// The Host header.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    fn uri(&self, target: &str) -> Result<Uri> {
        let path: PathAndQuery = target
            .parse()
            .map_err(|error: InvalidUri| Error::internal("invalid request target").with_source(error))?;
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .map_err(|error| Error::internal("invalid request URL").with_source(error))
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

impl Transport {
    pub(crate) fn new(endpoint: Endpoint, timeouts: Timeouts) -> Result<Self> {
        let traffic = Arc::new(Traffic::default());
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(timeouts.connect));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&endpoint)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(MeteredConnector::new(tcp, Arc::clone(&traffic)));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .http1_max_headers(MAX_COUNT)
            .build(connector);
        Ok(Self {
            client,
            endpoint,
            timeouts,
            traffic,
            features: RwLock::default(),
            asked: OnceCell::new(),
        })
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// The features that the gateway listed last. None if it has not answered yet, or is older than these lists.
    pub(crate) fn features(&self) -> Features {
        self.features.read().clone()
    }

    /// The features of the gateway, which is asked for them before its first answer. None if it does not answer soon.
    ///
    /// Costs a round trip once: it is for what the first batch would otherwise lack.
    pub(crate) async fn ask_for_features(&self) -> Features {
        let ask = async || {
            if self.features() == Features::default() {
                let asking = self.send(Method::HEAD, MODELS_PATH, HeaderMap::new(), Bytes::new());
                // A gateway that cannot be reached fails the batch, with a better message.
                drop(timeout(FEATURES_TIMEOUT, asking).await);
            }
        };
        self.asked.get_or_init(ask).await;
        self.features()
    }

    /// The features of the gateway, which is asked for them if it has not answered yet. `None` if its answer lists none: the endpoint is
    /// no gateway.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) async fn known_features(&self) -> Result<Option<Features>> {
        let known = self.features();
        if known != Features::default() {
            return Ok(Some(known));
        }
        let asking = self.send(Method::HEAD, MODELS_PATH, HeaderMap::new(), Bytes::new());
        let answer = asking.await?;
        match listed_features(&answer.headers) {
            None if is_transient(answer.status) => {
                let subject = format!("{} did not list its features", self.endpoint);
                Err(answer.refusal().await.into_error(&subject))
            }
            listed => Ok(listed),
        }
    }

    /// Notes the features that an answer lists.
    fn note_features(&self, headers: &HeaderMap) {
        if let Some(listed) = listed_features(headers)
            && *self.features.read() != listed
        {
            *self.features.write() = listed;
        }
    }

    /// Sends a request and waits for the head of its answer, with any status.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.endpoint.uri(target)?;
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = headers;
        let host = HeaderValue::from_str(&self.endpoint.host).map_err(|error| {
            Error::config("the endpoint's host is not a valid header value").with_source(error)
        })?;
        request.headers_mut().insert(header::HOST, host);
        let first_byte = self.timeouts.first_byte;
        match timeout(first_byte, self.client.request(request)).await {
            Ok(Ok(response)) => {
                self.note_features(response.headers());
                Ok(Answer::new(response, self.timeouts.idle))
            }
            Ok(Err(error)) if error.is_connect() => {
                let text = format!("cannot connect to {}: {}", self.endpoint, root_cause(&error));
                Err(Error::new(ErrorKind::Unreachable, text).with_source(error))
            }
            Ok(Err(error)) => {
                let text = format!(
                    "{} closed the connection before it answered: {}",
                    self.endpoint,
                    root_cause(&error)
                );
                Err(Error::new(ErrorKind::Interrupted, text).with_source(error))
            }
            Err(_elapsed) => Err(Error::new(
                ErrorKind::Timeout,
                format!("{} did not answer within {first_byte:?}", self.endpoint),
            )),
        }
    }
}

/// The features that a gateway lists in an answer. `None` in an answer of a store.
pub(crate) fn listed_features(headers: &HeaderMap) -> Option<Features> {
    let listed = headers.get(FEATURES)?.to_str().ok()?;
    Some(Features::parse(listed))
}

/// The text of the innermost cause, the most specific one.
pub(crate) fn root_cause(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The system's root certificates for https; reads nothing for http.
fn tls(endpoint: &Endpoint) -> Result<ClientConfig> {
    let missing = |error: io::Error| {
        Error::config("no certificates to trust: install ca-certificates, or set SSL_CERT_FILE to a PEM file")
            .with_source(error)
    };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal("no TLS protocol version").with_source(error))?;
    let config = if endpoint.scheme == Scheme::HTTPS {
        config.with_native_roots().map_err(missing)?
    } else {
        config.with_root_certificates(rustls::RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_are_those_that_the_gateway_listed_last() {
        let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
        let transport = Transport::new(endpoint, Timeouts::default()).unwrap();
        assert_eq!(transport.features(), Features::default());
        let note = |listed: &'static str| {
            transport.note_features(&HeaderMap::from_iter([(
                header::HeaderName::from_static(FEATURES),
                HeaderValue::from_static(listed),
            )]));
        };
        note("families, later");
        // An answer of the store, which lists none.
        transport.note_features(&HeaderMap::new());
        assert!(transport.features().has("families") && transport.features().has("later"));
        note("families");
        assert!(!transport.features().has("later"), "the gateway was replaced");
    }

    #[test]
    fn the_host_header_leaves_out_the_default_port() {
        for (url, host) in [
            ("http://127.0.0.1:9900", "127.0.0.1:9900"),
            ("http://store:80/", "store"),
            ("https://store:443", "store"),
            ("https://store:80", "store:80"),
            ("http://[::1]:9000", "[::1]:9000"),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap().host(), host, "{url}");
        }
    }

    #[test]
    fn invalid_endpoints_are_refused_with_the_reason() {
        let messages: Vec<_> = [
            "",
            "127.0.0.1:9900",
            "ftp://store",
            "http://store/path",
            "http://u:p@store",
            "http://",
        ]
        .iter()
        .map(|url| Endpoint::parse(url).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }
}
