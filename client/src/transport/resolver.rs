//! Resolves host names.

use std::{
    io,
    net::SocketAddr,
    str::FromStr as _,
    task::{Context, Poll},
    vec,
};

use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use pushdown_s3::loopback_addresses;
use tower_service::Service;

/// The system's resolver, with loopback addresses for `*.localhost`.
#[derive(Debug, Clone)]
pub(crate) struct DnsResolver(GaiResolver);

impl DnsResolver {
    pub(crate) fn new() -> Self {
        Self(GaiResolver::new())
    }
}

impl Service<Name> for DnsResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        if let Some(addresses) = loopback_addresses(name.as_str()) {
            let addresses = addresses.map(|address| SocketAddr::new(address, 0)).to_vec();
            return Box::pin(async move { Ok(addresses.into_iter()) });
        }
        let addresses = self.0.call(name);
        Box::pin(async move { Ok(addresses.await?.collect::<Vec<_>>().into_iter()) })
    }
}

/// For the requests that the SDK sends.
impl ResolveDns for DnsResolver {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        let mut resolver = self.clone();
        DnsFuture::new(async move {
            let name = Name::from_str(name).map_err(ResolveDnsError::new)?;
            let addresses = resolver.call(name).await.map_err(ResolveDnsError::new)?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[tokio::test]
    async fn names_below_localhost_are_loopback_addresses() {
        let resolver = DnsResolver::new();
        for name in ["photos.s3.eu-central-1.LocalHost", "a.localhost."] {
            let found = resolver.resolve_dns(name).await.unwrap();
            assert_eq!(found.len(), 2, "{name}");
            assert!(found.iter().all(IpAddr::is_loopback), "{name}");
        }
    }
}
