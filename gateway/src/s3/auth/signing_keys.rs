//! Derives the keys that sign, and caches them: a key is valid for one date and region.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::RwLock;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::access::Key;

/// The dates and regions that are cached for each access key: the last days around midnight, or two regions.
const SCOPES_PER_KEY: usize = 2;

/// A signing key for each secret of an access key, in their order.
pub(super) type DerivedKeys = Arc<[[u8; 32]]>;

/// The signing keys of all access keys in use. Entries of removed keys go when the next key is added.
#[derive(Default)]
pub(super) struct SigningKeys {
    entries: RwLock<HashMap<String, Entry>>,
}

/// The signing keys of one access key.
struct Entry {
    /// Which key this is: one with the same name can have other secrets after a reload.
    key: Weak<Key>,
    scopes: Vec<CachedScope>,
}

struct CachedScope {
    date: String,
    region: String,
    signing_keys: DerivedKeys,
}

/// HMAC-SHA256.
#[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
pub(super) fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

impl SigningKeys {
    /// The signing keys of `key` for a date and a region.
    pub(super) fn get(&self, key: &Arc<Key>, date: &str, region: &str) -> DerivedKeys {
        if let Some(found) = self.cached(key, date, region) {
            return found;
        }
        let signing_keys: DerivedKeys = key
            .secrets()
            .iter()
            .map(|secret| derive(secret.as_bytes(), date, region))
            .collect();
        self.insert(
            key,
            CachedScope {
                date: date.to_owned(),
                region: region.to_owned(),
                signing_keys: Arc::clone(&signing_keys),
            },
        );
        signing_keys
    }

    fn cached(&self, key: &Arc<Key>, date: &str, region: &str) -> Option<DerivedKeys> {
        let entries = self.entries.read();
        let entry = entries
            .get(key.access_key())
            .filter(|entry| entry.belongs_to(key))?;
        let scope = entry.scopes.iter().find(|scope| scope.is_for(date, region))?;
        Some(Arc::clone(&scope.signing_keys))
    }

    fn insert(&self, key: &Arc<Key>, scope: CachedScope) {
        let mut entries = self.entries.write();
        let is_known = entries
            .get(key.access_key())
            .is_some_and(|entry| entry.belongs_to(key));
        if !is_known {
            entries.retain(|_, entry| entry.key.strong_count() > 0);
            let entry = Entry {
                key: Arc::downgrade(key),
                scopes: Vec::with_capacity(SCOPES_PER_KEY),
            };
            entries.insert(key.access_key().to_owned(), entry);
        }
        if let Some(entry) = entries.get_mut(key.access_key()) {
            // Another thread can have added the same scope.
            entry
                .scopes
                .retain(|other| !other.is_for(&scope.date, &scope.region));
            entry.scopes.truncate(SCOPES_PER_KEY - 1);
            entry.scopes.insert(0, scope);
        }
    }
}

impl Entry {
    /// Whether this is the entry of exactly this key. The weak reference keeps the address from being reused.
    fn belongs_to(&self, key: &Arc<Key>) -> bool {
        std::ptr::eq(self.key.as_ptr(), Arc::as_ptr(key))
    }
}

impl CachedScope {
    fn is_for(&self, date: &str, region: &str) -> bool {
        self.date == date && self.region == region
    }
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKeys").finish_non_exhaustive()
    }
}

fn derive(secret: &[u8], date: &str, region: &str) -> [u8; 32] {
    let secret = Zeroizing::new([&b"AWS4"[..], secret].concat());
    let date_key = hmac(&secret, date.as_bytes());
    let region_key = hmac(&date_key, region.as_bytes());
    let service_key = hmac(&region_key, b"s3");
    hmac(&service_key, b"aws4_request")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Keys;

    fn key(secret: &str) -> Arc<Key> {
        Keys::for_test(&[("AK", secret)]).get("AK").unwrap()
    }

    fn cached_dates(cache: &SigningKeys) -> Vec<String> {
        let entries = cache.entries.read();
        let scopes = entries.values().flat_map(|entry| &entry.scopes);
        scopes.map(|scope| scope.date.clone()).collect()
    }

    #[test]
    fn the_last_two_scopes_of_a_key_are_cached() {
        let (cache, key) = (SigningKeys::default(), key("secret"));
        for date in ["20130524", "20130525", "20130524", "20130526"] {
            let found = cache.get(&key, date, "us-east-1");
            assert_eq!(found[..], [derive(b"secret", date, "us-east-1")]);
        }
        assert_eq!(cached_dates(&cache), ["20130526", "20130525"]);
    }

    #[test]
    fn a_replaced_key_has_no_cached_signing_keys() {
        let cache = SigningKeys::default();
        let old = key("old secret");
        let old_keys = cache.get(&old, "20130524", "us-east-1");
        let new = key("new secret");
        assert_ne!(cache.get(&new, "20130524", "us-east-1"), old_keys);
        assert_eq!(cache.get(&old, "20130524", "us-east-1"), old_keys);
        drop(old);
        drop(cache.get(&key("newest secret"), "20130525", "us-east-1"));
        assert_eq!(cached_dates(&cache), ["20130525"]);
    }
}
