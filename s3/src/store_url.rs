//! The URL of a store: scheme, host and port, in one form.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use crate::{Escaped, address};

/// Longest host name, without a trailing dot.
const MAX_HOST_BYTES: usize = 253;
/// Longest text of a URL: scheme, host, port, and a few characters more.
const MAX_URL_BYTES: usize = MAX_HOST_BYTES + 32;

/// Scheme, host and port of a store. URLs that differ in case, in a trailing dot or in a default port are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreUrl {
    is_tls: bool,
    host: StoreHost,
    port: u16,
}

/// The host of a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreHost {
    /// A name in lower case, without a trailing dot. No resolver can take it for an address.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Why a text is no URL of a store, or a store cannot have a bucket. It shows no part of a URL in which a secret can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidStore(String);

impl InvalidStore {
    /// Why: what was expected, without a secret that a text may have.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for InvalidStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid store: {}", self.0)
    }
}

impl std::error::Error for InvalidStore {}

impl StoreUrl {
    /// Whether connections have TLS: `https`.
    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// `http` or `https`.
    pub const fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// The host.
    pub const fn host(&self) -> &StoreHost {
        &self.host
    }

    /// The port, also if it is the scheme's default.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The `Host` header of requests to the store: the host, and the port unless it is the scheme's default. Signatures cover it.
    pub fn authority(&self) -> String {
        if self.port == default_port(self.is_tls) {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl StoreHost {
    /// The name, if it is one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }

    /// The first label of a name, and the rest. `None` for an address, and for a name of one label.
    pub fn split_first_label(&self) -> Option<(&str, &str)> {
        self.name()?.split_once('.')
    }
}

/// As in a URL: an IPv6 address has brackets.
impl fmt::Display for StoreHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority())
    }
}

impl FromStr for StoreUrl {
    type Err = InvalidStore;

    /// Reads `http://HOST`, `https://HOST` or either with `:PORT`; a final `/` is ignored.
    ///
    /// Hosts have one notation: names of ASCII letters, digits, `-` and `_` (an internationalized name in its `xn--` form), IPv4 addresses
    /// of four decimal numbers, IPv6 addresses in brackets without a zone.
    fn from_str(text: &str) -> Result<Self, InvalidStore> {
        if text.len() > MAX_URL_BYTES {
            return Err(InvalidStore::new(format!(
                "expected a URL of at most {MAX_URL_BYTES} bytes, found {}",
                text.len()
            )));
        }
        let (is_tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => {
                return Err(InvalidStore::new(
                    "expected a URL that begins with http:// or https://",
                ));
            }
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains('@') {
            return Err(InvalidStore::new("expected a URL without a user name"));
        }
        if authority.contains(['/', '\\', '?', '#']) {
            return Err(InvalidStore::new(
                "expected scheme, host and port alone, found a path or a query",
            ));
        }
        let (host, port) = split_port(authority);
        Ok(Self {
            is_tls,
            host: parse_host(host)?,
            port: port.map_or_else(|| Ok(default_port(is_tls)), parse_port)?,
        })
    }
}

const fn default_port(is_tls: bool) -> u16 {
    if is_tls { 443 } else { 80 }
}

/// Host and port of an authority. The colons of an IPv6 address are in brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn parse_port(text: &str) -> Result<u16, InvalidStore> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let port = text.parse().ok().filter(|_| is_number);
    // A text that is no number can be a password.
    port.ok_or_else(|| InvalidStore::new("expected a port from 1 to 65535"))
}

fn parse_host(text: &str) -> Result<StoreHost, InvalidStore> {
    let fault = |expected: &str| {
        InvalidStore::new(format!(
            "expected {expected}, found the host `{}`",
            Escaped(&text)
        ))
    };
    if let Some(address) = text.strip_prefix('[') {
        let address = address.strip_suffix(']').and_then(|address| address.parse().ok());
        let address: Ipv6Addr =
            address.ok_or_else(|| fault("an IPv6 address in brackets, without a zone"))?;
        return Ok(StoreHost::Address(address.into()));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(StoreHost::Address(address.into()));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.len() > MAX_HOST_BYTES || !name.split('.').all(is_label) {
        return Err(fault(
            "labels of 1 to 63 ASCII letters, digits, `-` and `_` (xn-- for other letters)",
        ));
    }
    // Resolvers take names that end in a number for addresses: `127.1`, `0x7f000001`, `017700000001`, `2130706433`.
    if is_number(name.rsplit('.').next().unwrap_or_default()) {
        return Err(fault("an IPv4 address as four decimal numbers"));
    }
    Ok(StoreHost::Name(name))
}

/// Whether a text is a label of a host name in lower case. Names in container networks also have `_`.
fn is_label(text: &str) -> bool {
    address::is_label(&text.replace('_', "x"))
}

/// Whether a label is a number in a notation of C.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, InvalidStore> {
        text.parse().map(|url: StoreUrl| url.to_string())
    }

    #[test]
    fn urls_of_one_store_are_equal() {
        for (text, canonical) in [
            (
                "https://s3.eu-central-1.amazonaws.com",
                "https://s3.eu-central-1.amazonaws.com",
            ),
            ("https://S3.Example.:443/", "https://s3.example"),
            ("https://s3.example:80", "https://s3.example:80"),
            ("http://store:80", "http://store"),
            ("http://my_store:8333/", "http://my_store:8333"),
            ("http://127.0.0.1:8333", "http://127.0.0.1:8333"),
            ("http://[::1]:8333", "http://[::1]:8333"),
            ("http://[::FFFF:127.0.0.1]", "http://[::ffff:127.0.0.1]"),
            ("http://xn--bcher-kva.example", "http://xn--bcher-kva.example"),
            ("http://3store", "http://3store"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(canonical), "{text}");
            assert_eq!(parse(canonical).as_deref(), Ok(canonical));
        }
        let url: StoreUrl = "https://Store.:443".parse().unwrap();
        assert_eq!(
            (url.is_tls(), url.port(), &*url.authority()),
            (true, 443, "store")
        );
        assert_eq!(url.host().split_first_label(), None);
        let url: StoreUrl = "http://b.store:1".parse().unwrap();
        assert_eq!((url.is_tls(), &*url.authority()), (false, "b.store:1"));
        assert_eq!(url.host().split_first_label(), Some(("b", "store")));
        let url: StoreUrl = "http://10.0.0.1".parse().unwrap();
        assert_eq!(url.host().split_first_label(), None);
    }

    #[test]
    fn everything_but_scheme_host_and_port_is_refused() {
        for (wrong, expected) in [
            ("", "begins with http:// or https://"),
            ("store:8333", "begins with http:// or https://"),
            ("//store", "begins with http:// or https://"),
            ("HTTP://store", "begins with http:// or https://"),
            ("file:///etc/passwd", "begins with http:// or https://"),
            ("ftp://store", "begins with http:// or https://"),
            (" http://store", "begins with http:// or https://"),
            ("http://user@store", "without a user name"),
            ("http://user:secret@store", "without a user name"),
            ("http://store@169.254.169.254", "without a user name"),
            ("http://store/bucket", "found a path or a query"),
            ("http://store//", "found a path or a query"),
            (
                "http://store?X-Amz-Security-Token=secret",
                "found a path or a query",
            ),
            ("http://store#fragment", "found a path or a query"),
            ("http://store\\.example", "found a path or a query"),
            ("http://", "labels of 1 to 63"),
            ("http://.", "labels of 1 to 63"),
            ("http://.store", "labels of 1 to 63"),
            ("http://store..", "labels of 1 to 63"),
            ("http://a..b", "labels of 1 to 63"),
            ("http://-a.b", "labels of 1 to 63"),
            ("http://*.store", "labels of 1 to 63"),
            ("http://a b", "labels of 1 to 63"),
            ("http://a%2eb", "labels of 1 to 63"),
            ("http://b\u{fc}cher.example", "labels of 1 to 63"),
            ("http://\u{ff11}27.0.0.1", "labels of 1 to 63"),
            ("http://store\r\nHost: x", "labels of 1 to 63"),
            ("http://::1", "expected"),
            ("http://[::1", "IPv6 address in brackets"),
            ("http://[::1%25eth0]", "IPv6 address in brackets"),
            ("http://[127.0.0.1]", "IPv6 address in brackets"),
            ("http://[::1]x:1", "IPv6 address in brackets"),
            ("http://2130706433", "four decimal numbers"),
            ("http://127.1", "four decimal numbers"),
            ("http://127.0.0.1.", "four decimal numbers"),
            ("http://0177.0.0.1", "four decimal numbers"),
            ("http://127.0.0.01", "four decimal numbers"),
            ("http://0x7f000001", "four decimal numbers"),
            ("http://0x7F.1", "four decimal numbers"),
            ("http://0X7f000001", "four decimal numbers"),
            ("http://127.0.0.0x1", "four decimal numbers"),
            ("http://256.0.0.1", "four decimal numbers"),
            ("http://1.2.3.4.5", "four decimal numbers"),
            ("http://store.0x", "four decimal numbers"),
            ("http://store:", "a port from 1 to 65535"),
            ("http://store:0", "a port from 1 to 65535"),
            ("http://store:65536", "a port from 1 to 65535"),
            ("http://store:+80", "a port from 1 to 65535"),
            ("http://store:080", "a port from 1 to 65535"),
            ("http://store:80:80", "labels of 1 to 63"),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{wrong}: {error}");
            assert!(!error.contains("secret") && !error.contains('\r'), "{error}");
        }
        let long = format!("http://{}", vec!["a".repeat(63); 4].join("."));
        assert!(parse(&long).unwrap_err().to_string().contains("labels"), "{long}");
        let long = format!("http://{}", "a".repeat(MAX_URL_BYTES));
        assert!(
            parse(&long)
                .unwrap_err()
                .to_string()
                .contains("at most 285 bytes")
        );
    }
}
