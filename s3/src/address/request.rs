//! What a request addresses, by its path or by a virtual host.

use serde::Serialize;

use super::Address;
use crate::escapes;

/// Where a request names its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressStyle {
    /// In the path: `/bucket/key`.
    Path,
    /// In the host: `bucket.domain`.
    #[serde(rename = "virtual")]
    VirtualHost,
}

/// The bucket and the key of a request, read once from the host and the decoded path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestAddress {
    style: AddressStyle,
    address: Address<'static>,
}

impl RequestAddress {
    /// Reads the address from a `Host` header, with or without a port, and a path. `None` if the path does not begin with a
    /// slash, or has an incomplete escape.
    ///
    /// A host `bucket.domain` of one of the `domains` names the bucket; all other hosts are path-style. An escaped slash
    /// separates like any other: a key with `%2F` and one with `/` are the same S3 key.
    pub fn new(host: &[u8], path: &str, domains: &[String]) -> Option<Self> {
        Self::from_decoded(host, &escapes::decode(path.as_bytes())?, domains)
    }

    /// Reads the address from a `Host` header and a decoded path. `None` if the path does not begin with a slash.
    pub fn from_decoded(host: &[u8], path: &[u8], domains: &[String]) -> Option<Self> {
        let (style, address) = match virtual_bucket(host, domains) {
            Some(bucket) => (
                AddressStyle::VirtualHost,
                Address {
                    bucket: bucket.into_bytes().into(),
                    key: path.strip_prefix(b"/")?.to_vec().into(),
                },
            ),
            None => (AddressStyle::Path, Address::from_decoded_path(path)?.into_owned()),
        };
        Some(Self { style, address })
    }

    /// Where the request named its bucket. Only path-style requests can address routes of the gateway.
    pub fn style(&self) -> AddressStyle {
        self.style
    }

    /// Bucket and key. The key is empty for a bucket, and both are empty for the list of buckets.
    pub fn address(&self) -> &Address<'static> {
        &self.address
    }

    /// Name of the bucket; empty for the list of buckets.
    pub fn bucket(&self) -> &[u8] {
        &self.address.bucket
    }

    /// The key; empty for a bucket.
    pub fn key(&self) -> &[u8] {
        &self.address.key
    }

    /// The bucket as it is in the [canonical path](Self::path_style). `None` for the list of buckets.
    pub fn canonical_bucket(&self) -> Option<String> {
        let bucket = self.bucket();
        (!bucket.is_empty()).then(|| escapes::encode_path(bucket))
    }

    /// The canonical path of a path-style request to the same address.
    pub fn path_style(&self) -> String {
        let mut path = vec![b'/'];
        path.extend_from_slice(self.bucket());
        if !self.key().is_empty() {
            path.push(b'/');
            path.extend_from_slice(self.key());
        }
        escapes::encode_path(&path)
    }
}

/// The bucket of a host `bucket.domain`, in lower case. The longest domain that matches decides, and a domain without a
/// bucket before it is path-style.
fn virtual_bucket(host: &[u8], domains: &[String]) -> Option<String> {
    let host = std::str::from_utf8(host).ok()?.trim().to_ascii_lowercase();
    let name = without_port(&host);
    if domains.iter().any(|domain| domain.eq_ignore_ascii_case(name)) {
        return None;
    }
    let bucket = domains
        .iter()
        .filter_map(|domain| {
            let bucket = name.strip_suffix(domain.to_ascii_lowercase().as_str())?;
            bucket.strip_suffix('.')
        })
        .min_by_key(|bucket| bucket.len())?;
    (!bucket.is_empty()).then(|| bucket.to_owned())
}

/// A host without its port. IPv6 addresses in brackets keep their colons.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains() -> Vec<String> {
        ["lab.example", "S3.lab.example"].map(str::to_owned).to_vec()
    }

    fn read(host: &str, path: &str) -> Option<(AddressStyle, String, String)> {
        let found = RequestAddress::new(host.as_bytes(), path, &domains())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((found.style(), text(found.bucket()), text(found.key())))
    }

    fn path(bucket: &str, key: &str) -> (AddressStyle, String, String) {
        (AddressStyle::Path, bucket.to_owned(), key.to_owned())
    }

    fn virtual_host(bucket: &str, key: &str) -> (AddressStyle, String, String) {
        (AddressStyle::VirtualHost, bucket.to_owned(), key.to_owned())
    }

    #[test]
    fn paths_are_decoded_before_they_are_split() {
        assert_eq!(read("gateway:9000", "/b/k"), Some(path("b", "k")));
        assert_eq!(read("gateway", "/b%2Fc/a%20b+c"), Some(path("b", "c/a b+c")));
        assert_eq!(read("[::1]:9000", "/b//k/../"), Some(path("b", "/k/../")));
        for bucket in ["/b", "/b/"] {
            assert_eq!(read("gateway", bucket), Some(path("b", "")));
        }
        assert_eq!(read("gateway", "/"), Some(path("", "")));
        for malformed in ["", "b/k", "*", "/b/%zz"] {
            assert_eq!(read("gateway", malformed), None, "{malformed}");
        }
    }

    #[test]
    fn the_longest_domain_names_the_bucket() {
        assert_eq!(
            read("Photos.S3.Lab.example:443", "/a/b"),
            Some(virtual_host("photos", "a/b"))
        );
        assert_eq!(
            read("my.bucket.s3.lab.example", "/"),
            Some(virtual_host("my.bucket", ""))
        );
        assert_eq!(
            read("photos.lab.example", "/k"),
            Some(virtual_host("photos", "k"))
        );
        for host in [
            "s3.lab.example:80",
            "lab.example",
            ".s3.lab.example",
            "xlab.example",
            "127.0.0.1:9000",
        ] {
            assert_eq!(read(host, "/b/k"), Some(path("b", "k")), "{host}");
        }
        assert_eq!(
            RequestAddress::new(b"\xff.lab.example", "/b/k", &domains())
                .unwrap()
                .bucket(),
            b"b"
        );
    }

    #[test]
    fn an_address_has_a_canonical_path() {
        let path = |host: &str, path: &str| {
            let found = RequestAddress::new(host.as_bytes(), path, &domains()).unwrap();
            found.path_style()
        };
        assert_eq!(path("gateway", "/b/a+b%2f=/c"), "/b/a%2Bb/%3D/c");
        assert_eq!(path("b.lab.example", "/k"), "/b/k");
        assert_eq!(path("gateway", "/b/"), "/b");
        assert_eq!(path("gateway", "/"), "/");
        let bucket = |path: &str| {
            RequestAddress::new(b"gateway", path, &[])
                .unwrap()
                .canonical_bucket()
        };
        assert_eq!(bucket("/a%20b/k").as_deref(), Some("a%20b"));
        assert_eq!((bucket("/b").as_deref(), bucket("/")), (Some("b"), None));
    }
}
