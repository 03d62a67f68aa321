//! HTTP to one address of a gateway: each replica has its own pool of connections.

use std::{net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use pushdown::wire::header::MAX_COUNT;

use super::{Answer, Connectors, Endpoint, HttpClient, Outgoing, Timeouts, Transport};
use crate::{
    error::{Error, ErrorKind, Result},
    stats::Traffic,
};

/// Makes connections to the addresses of a gateway.
#[derive(Debug, Clone)]
pub(crate) struct GatewayConnector {
    connectors: Connectors,
    is_beside_store: bool,
}

/// A pool of connections to one address of a gateway. Host header, SNI and certificate are those of its endpoint.
#[derive(Debug)]
pub(crate) struct ReplicaTransport {
    endpoint: Endpoint,
    client: HttpClient,
    timeouts: Timeouts,
    traffic: Arc<Traffic>,
}

/// Sends requests to one address of a gateway, each on a new connection, so that none waits for what is in flight.
#[derive(Debug)]
pub(crate) struct Prober {
    client: HttpClient,
    endpoint: Endpoint,
}

impl Transport {
    /// Makes connections to a gateway. If it is beside the store, its traffic is also counted alone.
    pub(crate) fn gateway_connector(&self, is_beside_store: bool) -> GatewayConnector {
        GatewayConnector {
            connectors: self.connectors.clone(),
            is_beside_store,
        }
    }
}

impl GatewayConnector {
    /// The addresses of an endpoint's host, sorted and each once.
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`] if it has none, or if the look-up fails.
    pub(crate) async fn addresses(&self, endpoint: &Endpoint) -> Result<Vec<IpAddr>> {
        let unknown = |why: &str| {
            let text = format!("cannot look up the host of {endpoint}: {why}");
            Error::new(ErrorKind::Unreachable, text)
        };
        let found = self.connectors.resolver.addresses(endpoint.host_name()).await;
        let found = found.map_err(|error| unknown(&error.to_string()).with_source(error))?;
        if found.is_empty() {
            return Err(unknown("it has no address"));
        }
        Ok(found)
    }

    /// A pool of connections to this address of an endpoint's host; to any of them without one.
    pub(crate) fn transport(&self, endpoint: Endpoint, address: Option<IpAddr>) -> ReplicaTransport {
        let connectors = &self.connectors;
        let traffic = Arc::<Traffic>::default();
        let of_gateway = self
            .is_beside_store
            .then(|| Arc::clone(&connectors.gateway_traffic));
        let meters = [Arc::clone(&connectors.traffic), Arc::clone(&traffic)];
        ReplicaTransport {
            client: connectors.pool(address, meters.into_iter().chain(of_gateway)),
            timeouts: connectors.timeouts,
            endpoint,
            traffic,
        }
    }

    /// A prober of this address. What it sends and receives is part of all traffic, and not of that with the gateway: the handshake of a
    /// probe is no sign that an answer arrives.
    pub(crate) fn prober(&self, endpoint: Endpoint, address: Option<IpAddr>) -> Prober {
        let traffic = Arc::clone(&self.connectors.traffic);
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .http1_max_headers(MAX_COUNT)
            .build(self.connectors.connector(address, [traffic]));
        Prober { client, endpoint }
    }
}

impl ReplicaTransport {
    /// Sends a request, and waits for the head of its answer, with any status.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer> {
        let outgoing = Outgoing {
            endpoint: &self.endpoint,
            method,
            target,
            headers,
            body,
            first_byte: self.timeouts.first_byte,
            idle: self.timeouts.idle,
        };
        outgoing.send(&self.client).await
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What was exchanged with this address, without probes.
    pub(crate) const fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
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
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::{
        super::{DnsResolver, Timeouts},
        *,
    };

    /// The bytes of a probe, a handshake of TLS among them, must not look like those of an answer.
    #[tokio::test]
    async fn a_probe_is_no_traffic_with_the_gateway() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = Endpoint::parse("gateway", &format!("http://{address}")).unwrap();
        let transport = Transport::new(false, Timeouts::default(), DnsResolver::new()).unwrap();
        let connector = transport.gateway_connector(true);
        let answer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let read = stream.read(&mut [0; 1024]).await.unwrap();
            assert!(read > 0);
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head).await.unwrap();
        };
        let prober = connector.prober(gateway, None);
        let (answer, ()) = tokio::join!(prober.head("/", Duration::from_mins(1)), answer);
        assert!(answer.unwrap().status.is_success());
        assert_eq!(transport.gateway_traffic().received_bytes(), 0);
        assert!(transport.traffic().received_bytes() > 0);
    }
}
