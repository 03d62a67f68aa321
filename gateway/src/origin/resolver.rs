//! Resolves the names of stores: those below `.localhost` are the loopback addresses (RFC 6761, section 6.3), whatever the
//! resolver of the system makes of them. A local store with virtual hosts needs no DNS.

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

/// The system's resolver, with loopback addresses for `*.localhost`.
#[derive(Debug, Clone)]
pub(super) struct DnsResolver(GaiResolver);

impl DnsResolver {
    pub(super) fn new() -> Self {
        Self(GaiResolver::new())
    }
}

impl Service<Name> for DnsResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        if is_loopback(name.as_str()) {
            let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            let addresses = addresses.map(|address| SocketAddr::new(address, 0)).to_vec();
            return Box::pin(async move { Ok(addresses.into_iter()) });
        }
        let addresses = self.0.call(name);
        Box::pin(async move { Ok(addresses.await?.collect::<Vec<_>>().into_iter()) })
    }
}

fn is_loopback(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::*;

    #[tokio::test]
    async fn names_below_localhost_are_loopback_addresses() {
        let name = Name::from_str("photos.s3.eu-central-1.LocalHost").unwrap();
        let addresses: Vec<_> = DnsResolver::new().call(name).await.unwrap().collect();
        assert!(addresses.iter().all(|address| address.ip().is_loopback()));
        assert_eq!(addresses.len(), 2);
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "localhost",
            "localhost.example",
            "xlocalhost",
            "s3.eu-central-1.amazonaws.com",
        ] {
            assert!(!is_loopback(name), "{name}");
        }
    }
}
