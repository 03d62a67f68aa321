//! Scheme, host and port of an address: of a store, of a bucket, or of a gateway.

use std::net::IpAddr;

use http::{
    Uri,
    uri::{Authority, InvalidUri, PathAndQuery, Scheme},
};

use pushdown_s3::{StoreUrl, authority_in_region};

use crate::error::{Error, Result};

/// Scheme, host and port of an S3 endpoint or a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    /// The Host header; it is signed.
    host: String,
}

impl Endpoint {
    /// Parses `http://host:port` or `https://host`. `name` is what an error calls it.
    pub(crate) fn parse(name: &str, url: &str) -> Result<Self> {
        // Before any error that shows the URL. An address has no path, so there is no other place for the character.
        if url.contains('@') {
            return Err(Error::config(format!(
                "invalid {name}: expected scheme, host and port, found a user name or password"
            )));
        }
        let invalid = |found: &str| {
            Error::config(format!(
                "invalid {name} `{url}`: expected a URL such as http://127.0.0.1:9900, found {found}"
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

    /// The name or the address of the host, without a port.
    pub(crate) fn host_name(&self) -> &str {
        self.authority.host()
    }

    /// The port that connections go to.
    pub(crate) fn port(&self) -> u16 {
        let own = if self.is_tls() { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(own)
    }

    /// Whether the host is an IP address, which names no bucket.
    pub(crate) fn is_ip_address(&self) -> bool {
        let host = self.authority.host();
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inner.unwrap_or(host).parse::<IpAddr>().is_ok()
    }

    /// Whether both are one address: they may differ in case, in a trailing dot or in a default port. No name is looked up.
    pub(crate) fn is_same_address(&self, other: &Self) -> bool {
        let url = |endpoint: &Self| endpoint.to_string().parse::<StoreUrl>().ok();
        // A host that no gateway accepts has one notation.
        self == other || url(self).is_some_and(|own| url(other) == Some(own))
    }

    /// Whether connections have TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The same endpoint in another region, if its host names its region as those of AWS do.
    pub(crate) fn in_region(&self, configured: &str, region: &str) -> Option<Self> {
        let authority = authority_in_region(self.authority.as_str(), configured, region)?;
        Self::parse("endpoint", &format!("{}://{authority}", self.scheme)).ok()
    }

    pub(super) fn uri(&self, target: &str) -> Result<Uri> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_header_leaves_out_the_default_port() {
        for (url, host) in [
            ("http://127.0.0.1:9900", "127.0.0.1:9900"),
            ("http://store:80/", "store"),
            ("https://store:443", "store"),
            ("https://store:80", "store:80"),
            ("http://[::1]:9000", "[::1]:9000"),
        ] {
            let endpoint = Endpoint::parse("endpoint", url).unwrap();
            assert_eq!(endpoint.host(), host, "{url}");
        }
    }

    #[test]
    fn no_error_shows_a_password() {
        for url in [
            "user:secret@gw:9900",
            "http://user:secret@gw:9900",
            "ftp://user:secret@gw",
            "http://user:secret@gw/path",
            "http://user:sec/ret@gw",
            "http//user:secret@gw:9900",
            "http://user:secret @gw",
        ] {
            let error = Endpoint::parse("gateway", url).unwrap_err().to_string();
            let expected = "invalid gateway: expected scheme, host and port, found a user name or password";
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn ip_addresses_are_told_from_names() {
        for (url, is_ip) in [
            ("http://127.0.0.1:9900", true),
            ("https://[::1]:9000", true),
            ("http://localhost:9900", false),
            ("http://10.example", false),
        ] {
            let endpoint = Endpoint::parse("endpoint", url).unwrap();
            assert_eq!(endpoint.is_ip_address(), is_ip, "{url}");
        }
    }

    #[test]
    fn an_address_has_several_notations() {
        for (one, other, is_same) in [
            ("http://gw:9900", "http://GW:9900/", true),
            ("http://gw:9900", "http://gw.:9900", true),
            ("http://gw", "http://gw:80", true),
            ("https://gw.example", "https://gw.example.:443", true),
            ("http://[::1]:9900", "http://[0:0:0:0:0:0:0:1]:9900", true),
            // No gateway accepts such a host.
            ("http://127.1:9900", "http://127.1:9900", true),
            ("http://127.1:9900", "http://127.0.0.1:9900", false),
            ("http://gw:9900", "https://gw:9900", false),
            ("http://gw:443", "https://gw", false),
            ("http://gw:9900", "http://gw:9901", false),
            ("http://gw:9900", "http://gw2:9900", false),
            ("http://localhost:9900", "http://127.0.0.1:9900", false),
        ] {
            let [one, other] = [one, other].map(|url| Endpoint::parse("endpoint", url).unwrap());
            assert_eq!(one.is_same_address(&other), is_same, "{one} {other}");
            assert_eq!(other.is_same_address(&one), is_same, "{other} {one}");
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
        .map(|url| Endpoint::parse("endpoint", url).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }
}
