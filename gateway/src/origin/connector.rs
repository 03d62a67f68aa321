//! Connects to stores. The addresses of a host are looked up once and checked, and the connection is to these alone.
//!
//! A caller who may state a store would otherwise reach what only the gateway can: its own ports, its network, the metadata of its machine.

mod connection;

use std::{
    future, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
    vec,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::{
    client::legacy::connect::{Connection, HttpConnector, dns::Name},
    rt::TokioIo,
};
use pushdown::wire::{StoreHost, StoreUrl};
use tokio::net::TcpStream;
use tower_service::Service;

use super::{
    allowed_stores::AllowedStores,
    lookups::{LookupError, Lookups, MAX_LOOKUPS},
    open_hosts::{MAX_OPEN_HOSTS, OpenHosts},
    resolver::{DnsResolver, Resolver},
};
use crate::{
    body::BoxError,
    telemetry::{Metrics, StoreRefusal},
};
pub(super) use connection::StoreConnection;

/// Connects to the store of a URL.
#[derive(Debug, Clone)]
pub(super) struct StoreConnector<R = DnsResolver, D = TcpDial> {
    resolver: R,
    dial: D,
    /// For stores that callers state. `None` for the gateway's own store, which its operator chose.
    check: Option<HostCheck>,
}

/// What is checked before a connection to a host that a caller chose.
#[derive(Debug, Clone)]
pub(super) struct HostCheck {
    allowed: Arc<AllowedStores>,
    lookups: Lookups,
    open_hosts: OpenHosts,
    metrics: Metrics,
}

/// Why no connection was tried to a host that a caller chose. It does not say what its name was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostRefusal {
    /// It has no address that the operator allows.
    #[error(
        "the host `{0}` is not allowed: expected a public address, or one in allow-store-network, or exactly this host in allow-store"
    )]
    Address(StoreHost),
    /// Too many others have open connections.
    #[error(
        "too many hosts of stores: expected at most {MAX_OPEN_HOSTS} with open connections; try again later"
    )]
    TooMany,
    /// Too many others are being looked up.
    #[error(
        "too many hosts of stores: expected at most {MAX_LOOKUPS} that are looked up at a time for the first time; try again later"
    )]
    TooManyLookups,
}

/// Opens a connection to one of some addresses.
pub(super) trait Dial: Clone + Send + 'static {
    /// The connection.
    type Connection: Connection + Read + Write + Unpin + Send + 'static;

    /// Connects to the first of `addresses` that answers. The port is that of the URL.
    fn dial(
        &self,
        url: Uri,
        addresses: Vec<IpAddr>,
    ) -> BoxFuture<'static, Result<Self::Connection, BoxError>>;
}

/// TCP.
#[derive(Debug, Clone)]
pub(super) struct TcpDial {
    connect_timeout: Duration,
}

/// The addresses that were checked, in place of a look-up.
#[derive(Debug, Clone)]
struct CheckedAddresses(Vec<IpAddr>);

impl HostCheck {
    /// The check of hosts that the operator allows. A look-up may take as long as `lookup_limit`.
    pub(super) fn new(allowed: Arc<AllowedStores>, lookup_limit: Duration, metrics: &Metrics) -> Self {
        Self {
            allowed,
            lookups: Lookups::new(lookup_limit),
            open_hosts: OpenHosts::new(metrics.clone()),
            metrics: metrics.clone(),
        }
    }

    fn refuse(&self, refusal: HostRefusal) -> BoxError {
        self.metrics.count_refused_store(match refusal {
            HostRefusal::Address(_) => StoreRefusal::Address,
            HostRefusal::TooMany | HostRefusal::TooManyLookups => StoreRefusal::Hosts,
        });
        refusal.into()
    }
}

impl StoreConnector {
    /// A connector by TCP with the system's resolver.
    pub(super) fn new(connect_timeout: Duration, check: Option<HostCheck>) -> Self {
        Self {
            resolver: DnsResolver::new(),
            dial: TcpDial { connect_timeout },
            check,
        }
    }
}

impl<R: Resolver, D: Dial> StoreConnector<R, D> {
    async fn connect(self, url: Uri) -> Result<StoreConnection<D::Connection>, BoxError> {
        let name = url.host().unwrap_or_default();
        let literal = name.trim_start_matches('[').trim_end_matches(']').parse().ok();
        let Some(check) = &self.check else {
            let addresses = match literal {
                Some(address) => vec![address],
                None => self.resolver.resolve(name).await?,
            };
            return Ok(StoreConnection::new(self.dial.dial(url, addresses).await?, None));
        };
        // The form in which the operator's hosts are compared. Nothing else comes from a stated store.
        let host = url.to_string().parse::<StoreUrl>()?.host().clone();
        if check.open_hosts.is_full_for(&host) {
            return Err(check.refuse(HostRefusal::TooMany));
        }
        let mut addresses = if let Some(address) = literal {
            vec![address]
        } else {
            let is_named = check.allowed.is_named(&host);
            let found = check.lookups.find(&self.resolver, &host, name, is_named).await;
            found.map_err(|error| match error {
                LookupError::TooMany => check.refuse(HostRefusal::TooManyLookups),
                LookupError::Failed(error) => error.into(),
            })?
        };
        addresses.retain(|address| check.allowed.is_allowed_address(&host, *address));
        if addresses.is_empty() {
            return Err(check.refuse(HostRefusal::Address(host)));
        }
        // Not before: a name that does not exist takes no place of a host.
        let open_host = check.open_hosts.open(&host);
        let open_host = open_host.ok_or_else(|| check.refuse(HostRefusal::TooMany))?;
        let connection = self.dial.dial(url, addresses).await?;
        Ok(StoreConnection::new(connection, Some(open_host)))
    }
}

impl<R, D> Service<Uri> for StoreConnector<R, D>
where
    R: Resolver + Sync,
    D: Dial + Sync,
{
    type Response = StoreConnection<D::Connection>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        Box::pin(self.clone().connect(url))
    }
}

impl Dial for TcpDial {
    type Connection = TokioIo<TcpStream>;

    fn dial(
        &self,
        url: Uri,
        addresses: Vec<IpAddr>,
    ) -> BoxFuture<'static, Result<Self::Connection, BoxError>> {
        let mut tcp = HttpConnector::new_with_resolver(CheckedAddresses(addresses));
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.connect_timeout));
        tcp.set_keepalive(Some(Duration::from_mins(1)));
        tcp.enforce_http(false);
        Box::pin(async move { Ok(tcp.call(url).await?) })
    }
}

impl Service<Name> for CheckedAddresses {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _name: Name) -> Self::Future {
        let addresses = self.0.iter().map(|address| SocketAddr::new(*address, 0));
        future::ready(Ok(addresses.collect::<Vec<_>>().into_iter()))
    }
}

#[cfg(test)]
mod tests;
