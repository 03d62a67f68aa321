//! A store that requests may state, or all hosts of buckets below a domain.

use std::{fmt, str::FromStr};

use pushdown::wire::{InvalidStore, StoreEndpoint, StoreHost, StoreUrl};
use serde::{Serialize, Serializer};

/// Stands for one label: the bucket.
const WILDCARD: &str = "*.";

/// A URL of `--allow-store`: `https://s3.example`, or `https://*.s3.example` for the hosts of all buckets at that store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedStore {
    /// Scheme, host and port; of a wildcard, the host after the first label.
    url: StoreUrl,
    is_wildcard: bool,
}

/// What an allowed store says about a stated one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreMatch {
    /// It is this store.
    Allowed,
    /// The `*` stands for the first label of its host, which the request does not state as the bucket.
    BucketMissing,
    /// It is another store.
    Other,
}

impl AllowedStore {
    /// The store at this URL alone.
    pub const fn exactly(url: StoreUrl) -> Self {
        Self {
            url,
            is_wildcard: false,
        }
    }

    /// Whether a stated store is this one: with this scheme, this port and this host, or with one label in place of the `*`, which is then
    /// the bucket.
    pub fn matches(&self, store: &StoreEndpoint) -> StoreMatch {
        let stated = store.url();
        if (stated.is_tls(), stated.port()) != (self.url.is_tls(), self.url.port()) {
            return StoreMatch::Other;
        }
        if !self.is_wildcard {
            let is_same = stated.host() == self.url.host();
            return if is_same {
                StoreMatch::Allowed
            } else {
                StoreMatch::Other
            };
        }
        match stated.host().split_first_label() {
            Some((label, domain)) if self.url.host().name() == Some(domain) => {
                if store.bucket() == Some(label) {
                    StoreMatch::Allowed
                } else {
                    StoreMatch::BucketMissing
                }
            }
            _ => StoreMatch::Other,
        }
    }

    /// Whether this host is named, without a `*`.
    pub fn is_exactly(&self, host: &StoreHost) -> bool {
        !self.is_wildcard && self.url.host() == host
    }

    /// Whether its host has a `*`.
    pub const fn is_wildcard(&self) -> bool {
        self.is_wildcard
    }

    /// Whether connections have TLS.
    pub const fn is_tls(&self) -> bool {
        self.url.is_tls()
    }
}

impl FromStr for AllowedStore {
    type Err = InvalidStore;

    fn from_str(text: &str) -> Result<Self, InvalidStore> {
        let wildcard = text
            .split_once("://")
            .and_then(|(scheme, rest)| Some(format!("{scheme}://{}", rest.strip_prefix(WILDCARD)?)));
        let url: StoreUrl = wildcard.as_deref().unwrap_or(text).parse()?;
        if wildcard.is_some() && url.host().name().is_none() {
            return Err(InvalidStore::new(
                "expected a host name after `*.`, found an address",
            ));
        }
        Ok(Self {
            url,
            is_wildcard: wildcard.is_some(),
        })
    }
}

impl fmt::Display for AllowedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wildcard = if self.is_wildcard { WILDCARD } else { "" };
        write!(f, "{}://{wildcard}{}", self.url.scheme(), self.url.authority())
    }
}

impl Serialize for AllowedStore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(allowed: &str, stated: &str) -> StoreMatch {
        let allowed: AllowedStore = allowed.parse().unwrap();
        assert_eq!(allowed.to_string().parse().as_ref(), Ok(&allowed));
        allowed.matches(&stated.parse().unwrap())
    }

    #[test]
    fn scheme_host_and_port_are_equal() {
        for (allowed, stated) in [
            ("https://S3.example.:443", "https://s3.EXAMPLE"),
            ("http://127.0.0.1:8333", "http://127.0.0.1:8333"),
            ("http://[::1]:8333", "http://[0:0::1]:8333"),
            (
                "https://photos.s3.example",
                "https://photos.s3.example; bucket=photos",
            ),
            ("https://photos.s3.example", "https://photos.s3.example"),
        ] {
            assert_eq!(
                matches(allowed, stated),
                StoreMatch::Allowed,
                "{allowed} {stated}"
            );
        }
        for (allowed, stated) in [
            ("https://s3.example", "http://s3.example:443"),
            ("https://s3.example", "https://s3.example:8443"),
            ("https://s3.example", "https://photos.s3.example; bucket=photos"),
            ("https://s3.example", "https://s3.example.org"),
            ("http://127.0.0.1", "http://[::ffff:127.0.0.1]"),
        ] {
            assert_eq!(matches(allowed, stated), StoreMatch::Other, "{allowed} {stated}");
        }
    }

    #[test]
    fn a_star_stands_for_one_label_which_is_the_bucket() {
        let allowed = "https://*.s3.example";
        let photos = "https://Photos.s3.example.; bucket=photos";
        assert_eq!(matches(allowed, photos), StoreMatch::Allowed);
        assert_eq!(
            matches(allowed, "https://photos.s3.example"),
            StoreMatch::BucketMissing
        );
        for stated in [
            "https://s3.example",
            "https://s3.example; bucket=s3",
            "https://a.photos.s3.example; bucket=a",
            "https://photoss3.example",
            "https://photos.s3.example.org; bucket=photos",
            "http://photos.s3.example:443; bucket=photos",
        ] {
            assert_eq!(matches(allowed, stated), StoreMatch::Other, "{stated}");
        }
        assert_eq!(
            matches("http://*.localhost:8333", "http://b.localhost:8333; bucket=b"),
            StoreMatch::Allowed
        );
    }

    #[test]
    fn a_star_is_the_whole_first_label() {
        for wrong in [
            "http://*",
            "http://*.",
            "http://*.*.example",
            "http://a.*.example",
            "http://s3*.example",
            "http://*.10.0.0.1",
            "http://*.[::1]",
            "*.example",
            "http://user@*.example",
        ] {
            assert!(wrong.parse::<AllowedStore>().is_err(), "{wrong}");
        }
    }
}
