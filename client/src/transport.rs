//! HTTP to a store and its gateway: connections, timeouts and byte counters.

mod answer;
mod endpoint;
mod metered;
mod resolver;

use std::{error::Error as StdError, io, sync::Arc, time::Duration};

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
use metered::MeteredConnector;
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

/// Pools of connections to the hosts of a store and to its gateway.
#[derive(Debug)]
pub(crate) struct Transport {
    client: HttpClient,
    /// Counts no traffic as that with the gateway.
    probe_connector: Connector,
    timeouts: Timeouts,
    traffic: Arc<Traffic>,
    /// The part of it that is with a gateway beside the store.
    gateway_traffic: Arc<Traffic>,
}

/// Sends requests to one endpoint, each on a new connection, so that none waits for what is in flight.
#[derive(Debug)]
pub(crate) struct Prober {
    client: HttpClient,
    endpoint: Endpoint,
}

type Connector = HttpsConnector<MeteredConnector>;
type HttpClient = Client<Connector, Full<Bytes>>;

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

/// What connections go to.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// Whether one of them has TLS. Otherwise certificates are not loaded.
    pub(crate) has_tls: bool,
    /// The gateway, if its traffic is also counted alone.
    pub(crate) gateway: Option<Endpoint>,
}

impl Transport {
    pub(crate) fn new(addresses: Addresses, timeouts: Timeouts) -> Result<Self> {
        let (traffic, gateway_traffic) = (Arc::<Traffic>::default(), Arc::<Traffic>::default());
        let Addresses { has_tls, gateway } = addresses;
        let gateway = gateway.map(|gateway| (gateway.authority().clone(), Arc::clone(&gateway_traffic)));
        let mut tcp = HttpConnector::new_with_resolver(DnsResolver::new());
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(timeouts.connect));
        let tls = tls(has_tls)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(MeteredConnector::new(tcp.clone(), Arc::clone(&traffic), gateway));
        let probe_connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(MeteredConnector::new(tcp, Arc::clone(&traffic), None));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .http1_max_headers(MAX_COUNT)
            .build(connector);
        Ok(Self {
            client,
            probe_connector,
            timeouts,
            traffic,
            gateway_traffic,
        })
    }

    /// All traffic.
    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// The part of it that is with a gateway beside the store.
    pub(crate) const fn gateway_traffic(&self) -> &Arc<Traffic> {
        &self.gateway_traffic
    }

    /// A prober of an endpoint. What it sends and receives is part of all traffic, and not of that with the gateway: the handshake of a
    /// probe is no sign that an answer arrives.
    pub(crate) fn prober(&self, endpoint: Endpoint) -> Prober {
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .http1_max_headers(MAX_COUNT)
            .build(self.probe_connector.clone());
        Prober { client, endpoint }
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
        let outgoing = Outgoing {
            endpoint,
            method,
            target,
            headers,
            body,
            first_byte: self.timeouts.first_byte,
            idle: self.timeouts.idle,
        };
        outgoing.send(&self.client).await
    }
}

impl Prober {
    /// Sends a HEAD request, and waits for its answer within `limit`, including connecting.
    pub(crate) async fn head(&self, target: &str, limit: Duration) -> Result<Answer> {
        let outgoing = Outgoing {
            endpoint: &self.endpoint,
            method: Method::HEAD,
            target,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            first_byte: limit,
            idle: limit,
        };
        outgoing.send(&self.client).await
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// The bytes of a probe, a handshake of TLS among them, must not look like those of an answer.
    #[tokio::test]
    async fn a_probe_is_no_traffic_with_the_gateway() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = Endpoint::parse("gateway", &format!("http://{address}")).unwrap();
        let addresses = Addresses {
            has_tls: false,
            gateway: Some(gateway.clone()),
        };
        let transport = Transport::new(addresses, Timeouts::default()).unwrap();
        let answer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let read = stream.read(&mut [0; 1024]).await.unwrap();
            assert!(read > 0);
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head).await.unwrap();
        };
        let prober = transport.prober(gateway);
        let (answer, ()) = tokio::join!(prober.head("/", Duration::from_mins(1)), answer);
        assert!(answer.unwrap().status.is_success());
        assert_eq!(transport.gateway_traffic().received_bytes(), 0);
        assert!(transport.traffic().received_bytes() > 0);
    }
}
