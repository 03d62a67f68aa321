//! Resolves the names of stores.

use std::{io, net::IpAddr, str::FromStr as _};

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use pushdown_s3::loopback_addresses;
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
        if let Some(addresses) = loopback_addresses(name) {
            return Box::pin(async move { Ok(addresses.to_vec()) });
        }
        let (mut resolver, name) = (self.0.clone(), Name::from_str(name));
        Box::pin(async move {
            let name = name.map_err(io::Error::other)?;
            let addresses = resolver.call(name).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
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
}
