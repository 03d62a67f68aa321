//! Resolves the names of stores: those below `.localhost` are the loopback addresses (RFC 6761, section 6.3), whatever the
//! resolver of the system makes of them. A local store with virtual hosts needs no DNS.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr as _,
};

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service as _;

/// Looks up the addresses of a host name.
pub(super) trait Resolver: Clone + Send + 'static {
    /// The addresses of a name, in the order in which they are to be tried.
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver, with loopback addresses for `*.localhost`.
#[derive(Debug, Clone)]
pub(super) struct DnsResolver(GaiResolver);

impl DnsResolver {
    pub(super) fn new() -> Self {
        Self(GaiResolver::new())
    }
}

impl Resolver for DnsResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        if is_loopback(name) {
            let addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            return Box::pin(async { Ok(addresses) });
        }
        let (mut resolver, name) = (self.0.clone(), Name::from_str(name));
        Box::pin(async move {
            let name = name.map_err(io::Error::other)?;
            let addresses = resolver.call(name).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

fn is_loopback(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_below_localhost_are_loopback_addresses() {
        let name = "photos.s3.eu-central-1.LocalHost";
        let addresses = DnsResolver::new().resolve(name).await.unwrap();
        assert!(addresses.iter().all(IpAddr::is_loopback));
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
