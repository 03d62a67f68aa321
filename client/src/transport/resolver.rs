//! Resolves host names.

use std::{
    collections::BTreeSet,
    future::ready,
    io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr as _,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use pushdown_s3::loopback_addresses;
use tower_service::Service;

/// Looks up host names: in a hosts file, if there is one, and then by the system, with loopback addresses for `*.localhost`.
#[derive(Debug, Clone)]
pub(crate) struct DnsResolver {
    system: GaiResolver,
    hosts_file: Option<Arc<Path>>,
    /// The only address of all names, without a look-up.
    pinned: Option<IpAddr>,
}

impl DnsResolver {
    pub(crate) fn new() -> Self {
        Self::with_hosts_file(None)
    }

    /// Names in this file have its addresses. It is read at each look-up.
    pub(crate) fn with_hosts_file(hosts_file: Option<PathBuf>) -> Self {
        Self {
            system: GaiResolver::new(),
            hosts_file: hosts_file.map(Arc::from),
            pinned: None,
        }
    }

    /// The same for connections to one address of a name.
    pub(super) fn pinned(&self, address: IpAddr) -> Self {
        Self {
            pinned: Some(address),
            ..self.clone()
        }
    }

    /// The addresses of a host, sorted and each once.
    ///
    /// # Errors
    /// If the hosts file cannot be read, or the look-up fails.
    pub(crate) async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if let Ok(address) = inner.unwrap_or(host).parse() {
            return Ok(vec![address]);
        }
        let name = Name::from_str(host).map_err(io::Error::other)?;
        let found = self.clone().call(name).await?;
        Ok(found
            .map(|address| address.ip())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect())
    }
}

/// The addresses of a name in a file like `/etc/hosts`.
async fn addresses_in(file: &Path, name: &str) -> io::Result<Vec<SocketAddr>> {
    let text = tokio::fs::read_to_string(file).await.map_err(|error| {
        let text = format!("cannot read the hosts file {}: {error}", file.display());
        io::Error::new(error.kind(), text)
    })?;
    let name = name.strip_suffix('.').unwrap_or(name);
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let addresses = lines.filter_map(|line| {
        let mut fields = line.split_whitespace();
        let address: IpAddr = fields.next()?.parse().ok()?;
        let is_named = fields.any(|field| field.eq_ignore_ascii_case(name));
        is_named.then(|| SocketAddr::new(address, 0))
    });
    Ok(addresses.collect())
}

impl Service<Name> for DnsResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        if let Some(address) = self.pinned {
            return Box::pin(ready(Ok(vec![SocketAddr::new(address, 0)].into_iter())));
        }
        let (mut system, hosts_file) = (self.system.clone(), self.hosts_file.clone());
        Box::pin(async move {
            if let Some(file) = hosts_file {
                let found = addresses_in(&file, name.as_str()).await?;
                if !found.is_empty() {
                    return Ok(found.into_iter());
                }
            }
            if let Some(addresses) = loopback_addresses(name.as_str()) {
                let addresses = addresses.map(|address| SocketAddr::new(address, 0));
                return Ok(Vec::from(addresses).into_iter());
            }
            Ok(system.call(name).await?.collect::<Vec<_>>().into_iter())
        })
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

    #[tokio::test]
    async fn names_in_the_hosts_file_have_its_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        let resolver = DnsResolver::with_hosts_file(Some(file.clone()));
        assert!(resolver.addresses("gw.internal").await.is_err(), "no file");
        let text = "# 127.0.0.9 gw.internal\n127.0.0.3 gw.internal # third\n127.0.0.2 other GW.Internal\n127.0.0.3 gw.internal\nx gw.internal\n";
        std::fs::write(&file, text).unwrap();
        let addresses =
            |ends: &[u8]| -> Vec<IpAddr> { ends.iter().map(|end| [127, 0, 0, *end].into()).collect() };
        for (host, ends) in [
            ("gw.internal", &[2, 3][..]),
            ("gw.internal.", &[2, 3]),
            ("other", &[2]),
            ("127.0.0.7", &[7]),
        ] {
            assert_eq!(resolver.addresses(host).await.unwrap(), addresses(ends), "{host}");
        }
        // What it does not name is looked up by the system.
        assert!(
            resolver
                .addresses("a.localhost")
                .await
                .unwrap()
                .iter()
                .all(IpAddr::is_loopback)
        );
        let pinned = resolver.pinned([127, 0, 0, 5].into());
        assert_eq!(pinned.addresses("gw.internal").await.unwrap(), addresses(&[5]));
    }
}
