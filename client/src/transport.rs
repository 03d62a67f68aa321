//! HTTP to a store and its gateway: connections, timeouts and byte counters.

mod answer;
mod endpoint;
mod metered;
mod replica;
mod resolver;

use std::{error::Error as StdError, io, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Version, header};
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use pushdown::wire::{
    Features,
    header::{FEATURES, MAX_COUNT},
};
use pushdown_s3::seconds;
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

pub(crate) use answer::{Answer, BUCKET_REGION, Refusal};
pub(crate) use endpoint::Endpoint;
use metered::{MeteredConnector, Meters};
pub(crate) use replica::{GatewayConnector, Prober, ReplicaTransport};
pub(crate) use resolver::DnsResolver;

use crate::{
    error::{Error, ErrorKind, Result},
    stats::Traffic,
};

/// Idle connections are closed before the gateway closes them (75 s), so that no request uses a dead one.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// How long to wait for a store or a gateway before an attempt fails.
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

/// A pool of connections to the hosts of a store.
#[derive(Debug)]
pub(crate) struct Transport {
    client: HttpClient,
    connectors: Connectors,
}

type Connector = HttpsConnector<MeteredConnector>;
type HttpClient = Client<Connector, Full<Bytes>>;

/// What connections are made with, and where their bytes are counted.
#[derive(Debug, Clone)]
struct Connectors {
    tls: ClientConfig,
    resolver: DnsResolver,
    timeouts: Timeouts,
    traffic: Arc<Traffic>,
    /// The part of it that is with a gateway beside the store.
    gateway_traffic: Arc<Traffic>,
}

/// A request, and how long to wait for its answer.
struct Outgoing<'a> {
    endpoint: &'a Endpoint,
    method: Method,
    target: &'a str,
    headers: HeaderMap,
    body: Bytes,
    first_byte: Duration,
    idle: Duration,
}

impl Transport {
    /// `has_tls`: whether an address has TLS. Otherwise certificates are not loaded.
    pub(crate) fn new(has_tls: bool, timeouts: Timeouts, resolver: DnsResolver) -> Result<Self> {
        let connectors = Connectors {
            tls: tls(has_tls)?,
            resolver,
            timeouts,
            traffic: Arc::default(),
            gateway_traffic: Arc::default(),
        };
        let traffic = Arc::clone(&connectors.traffic);
        let client = connectors.pool(None, [traffic]);
        Ok(Self { client, connectors })
    }

    /// All traffic.
    pub(crate) const fn traffic(&self) -> &Arc<Traffic> {
        &self.connectors.traffic
    }

    /// The part of it that is with a gateway beside the store.
    pub(crate) const fn gateway_traffic(&self) -> &Arc<Traffic> {
        &self.connectors.gateway_traffic
    }

    /// Sends a request to an endpoint, and waits for the head of its answer, with any status.
    pub(crate) async fn send(
        &self,
        endpoint: &Endpoint,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer> {
        let Timeouts { first_byte, idle, .. } = self.connectors.timeouts;
        let outgoing = Outgoing {
            endpoint,
            method,
            target,
            headers,
            body,
            first_byte,
            idle,
        };
        outgoing.send(&self.client).await
    }
}

impl Connectors {
    /// A connector to one address of each host, or to all of them, whose bytes are counted here.
    fn connector(
        &self,
        address: Option<IpAddr>,
        traffic: impl IntoIterator<Item = Arc<Traffic>>,
    ) -> Connector {
        let resolver = address.map_or_else(|| self.resolver.clone(), |address| self.resolver.pinned(address));
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.timeouts.connect));
        HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(MeteredConnector::new(tcp, Meters::new(traffic)))
    }

    /// The same as a pool of connections.
    fn pool(&self, address: Option<IpAddr>, traffic: impl IntoIterator<Item = Arc<Traffic>>) -> HttpClient {
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .http1_max_headers(MAX_COUNT)
            .build(self.connector(address, traffic))
    }
}

impl Outgoing<'_> {
    /// Waits for the head of the answer, with any status.
    async fn send(self, client: &HttpClient) -> Result<Answer> {
        let endpoint = self.endpoint;
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = endpoint.uri(self.target)?;
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = self.headers;
        let host = HeaderValue::from_str(endpoint.host()).map_err(|error| {
            Error::config("the endpoint's host is not a valid header value").with_source(error)
        })?;
        request.headers_mut().insert(header::HOST, host);
        let first_byte = self.first_byte;
        match timeout(first_byte, client.request(request)).await {
            Ok(Ok(response)) => Ok(Answer::new(response, self.idle)),
            Ok(Err(error)) if error.is_connect() => {
                let text = format!("cannot connect to {endpoint}: {}", root_cause(&error));
                Err(Error::new(ErrorKind::Unreachable, text).with_source(error))
            }
            Ok(Err(error)) => {
                let text = format!(
                    "{endpoint} closed the connection before it answered: {}",
                    root_cause(&error)
                );
                Err(Error::new(ErrorKind::Interrupted, text).with_source(error))
            }
            Err(_elapsed) => Err(Error::new(
                ErrorKind::Timeout,
                format!("{endpoint} did not answer within {first_byte:?}"),
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

/// The system's root certificates, if connections can have TLS.
fn tls(has_tls: bool) -> Result<ClientConfig> {
    let missing = |error: io::Error| {
        Error::config("no certificates to trust: install ca-certificates, or set SSL_CERT_FILE to a PEM file")
            .with_source(error)
    };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal("no TLS protocol version").with_source(error))?;
    let config = if has_tls {
        config.with_native_roots().map_err(missing)?
    } else {
        config.with_root_certificates(rustls::RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}
