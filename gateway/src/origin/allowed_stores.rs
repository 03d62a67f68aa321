//! The stores that requests may state, and the addresses that their hosts may have.

use std::{net::IpAddr, sync::Arc};

use http::HeaderValue;
use pushdown::wire::{StoreEndpoint, StoreHost};

use super::public_address::is_public;
use crate::{
    config::{AllowedStore, Network, StoreMatch, Stores},
    error::{Error, ErrorKind, Result},
};

/// What an operator allows.
#[derive(Debug, Clone, Default)]
pub struct AllowedStores {
    stores: Vec<AllowedStore>,
    /// The only buckets; empty for all.
    buckets: Vec<String>,
    networks: Vec<Network>,
}

/// A store that a request states, and that the operator allows. Only [`AllowedStores::admit`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedStore {
    endpoint: Arc<StoreEndpoint>,
    /// The `Host` header that requests to it have.
    host: HeaderValue,
}

impl StatedStore {
    /// Where it is, and where it names buckets.
    pub fn endpoint(&self) -> &StoreEndpoint {
        &self.endpoint
    }

    /// The `Host` header that requests to it have, which their signatures cover.
    pub fn host(&self) -> HeaderValue {
        self.host.clone()
    }

    /// The store at this endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for a host that no header can have: a bug.
    fn new(endpoint: StoreEndpoint) -> Result<Self> {
        let host = HeaderValue::try_from(endpoint.url().authority())
            .map_err(|error| Error::new(ErrorKind::Internal, "invalid host of a store").with_source(error))?;
        Ok(Self {
            endpoint: Arc::new(endpoint),
            host,
        })
    }
}

impl AllowedStores {
    /// The stores of the configuration, and the gateway's `own`.
    pub fn new(config: &Stores, own: Option<AllowedStore>) -> Self {
        Self {
            stores: config.allowed.iter().cloned().chain(own).collect(),
            buckets: config.buckets.clone(),
            networks: config.networks.clone(),
        }
    }

    /// The store that a request states.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotAllowed`] for a store that the operator did not allow, and for a host of a bucket without the bucket.
    pub fn admit(&self, store: StoreEndpoint) -> Result<StatedStore> {
        let (mut is_named, mut is_below_wildcard) = (false, false);
        for allowed in &self.stores {
            match allowed.matches(&store) {
                StoreMatch::Allowed if allowed.is_wildcard() => is_below_wildcard = true,
                StoreMatch::Allowed => is_named = true,
                // Also if the host is named: its paths are keys.
                StoreMatch::BucketMissing => {
                    return Err(refused(
                        &store,
                        "the bucket, because a `*` of allow-store stands for the first label of this host",
                    ));
                }
                StoreMatch::Other => {}
            }
        }
        if !is_named && !is_below_wildcard {
            return Err(refused(
                &store,
                "one of allow-store, with the same scheme, host and port",
            ));
        }
        // Nothing says whether paths at a host that is named begin with a bucket: the caller must not choose which bucket is checked.
        if !is_below_wildcard && store.bucket().is_some() && !self.buckets.is_empty() {
            return Err(refused(
                &store,
                "a `*` for the bucket's label in allow-store, because allow-bucket is set",
            ));
        }
        StatedStore::new(store)
    }

    /// Checks the bucket of an object at a stated store.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotAllowed`] for a bucket that the operator did not allow.
    pub fn check_bucket(&self, bucket: &[u8]) -> Result<()> {
        let is_allowed =
            self.buckets.is_empty() || self.buckets.iter().any(|allowed| allowed.as_bytes() == bucket);
        if is_allowed {
            return Ok(());
        }
        Err(not_allowed(format!(
            "the bucket `{}` is not allowed: expected one of allow-bucket",
            String::from_utf8_lossy(bucket)
        )))
    }

    /// Whether a host may have this address: a public one, one in a network that the operator allows, or any if the operator named
    /// exactly this host.
    pub(super) fn is_allowed_address(&self, host: &StoreHost, address: IpAddr) -> bool {
        is_public(address)
            || self.networks.iter().any(|network| network.contains(address))
            || self.is_named(host)
    }

    /// Whether the operator named exactly this host.
    pub(super) fn is_named(&self, host: &StoreHost) -> bool {
        self.stores.iter().any(|allowed| allowed.is_exactly(host))
    }
}

fn refused(store: &StoreEndpoint, expected: &str) -> Error {
    not_allowed(format!(
        "the store `{}` is not allowed: expected {expected}",
        store.url()
    ))
}

fn not_allowed(message: String) -> Error {
    Error::new(ErrorKind::StoreNotAllowed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> AllowedStores {
        let config = Stores {
            allowed: [
                "https://*.s3.example",
                "https://s3.example",
                "https://named.s3.example",
                "https://data.example.com",
                "http://10.0.0.7:8333",
            ]
            .map(|text| text.parse().unwrap())
            .to_vec(),
            buckets: vec!["photos".to_owned()],
            networks: vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()],
            ca: None,
        };
        AllowedStores::new(&config, Some("http://127.0.0.1:9000".parse().unwrap()))
    }

    #[test]
    fn stores_that_are_not_allowed_are_refused_by_name() {
        for stated in [
            "https://s3.example",
            "https://photos.s3.example; bucket=photos",
            "http://10.0.0.7:8333",
            "http://127.0.0.1:9000",
        ] {
            let stated: StoreEndpoint = stated.parse().unwrap();
            assert_eq!(allowed().admit(stated.clone()).unwrap().endpoint(), &stated);
        }
        for (stated, expected) in [
            (
                "http://s3.example",
                "the store `http://s3.example` is not allowed: expected one of allow-store",
            ),
            ("https://photos.s3.example", "expected the bucket"),
            // A host that is named is no exception from a `*`.
            ("https://named.s3.example", "expected the bucket"),
            (
                "https://data.example.com; bucket=data",
                "expected a `*` for the bucket's label in allow-store",
            ),
            ("https://a.b.s3.example; bucket=a", "expected one of allow-store"),
        ] {
            let error = allowed().admit(stated.parse().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreNotAllowed);
            assert!(error.message().contains(expected), "{error}");
        }
    }

    #[test]
    fn buckets_narrow_what_is_allowed() {
        allowed().check_bucket(b"photos").unwrap();
        AllowedStores::default().check_bucket(b"any").unwrap();
        for bucket in [&b"photo"[..], b"Photos", b"", b"\xff"] {
            let error = allowed().check_bucket(bucket).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreNotAllowed);
        }
    }

    #[test]
    fn a_host_that_is_named_may_have_any_address() {
        let is_allowed = |url: &str, address: &str| {
            let stated: StoreEndpoint = format!("http://{url}").parse().unwrap();
            allowed().is_allowed_address(stated.url().host(), address.parse().unwrap())
        };
        for (host, address) in [
            ("s3.example", "10.0.0.1"),
            ("s3.example", "::1"),
            ("127.0.0.1", "127.0.0.1"),
            ("10.0.0.7", "10.0.0.7"),
            ("photos.s3.example", "52.219.0.1"),
            ("photos.s3.example", "10.1.2.3"),
            ("photos.s3.example", "::ffff:10.1.2.3"),
            ("photos.s3.example", "fd00::1"),
        ] {
            assert!(is_allowed(host, address), "{host} {address}");
        }
        for (host, address) in [
            ("photos.s3.example", "10.0.0.7"),
            ("photos.s3.example", "127.0.0.1"),
            ("photos.s3.example", "169.254.169.254"),
            ("s3.example.org", "10.0.0.1"),
        ] {
            assert!(!is_allowed(host, address), "{host} {address}");
        }
    }
}
