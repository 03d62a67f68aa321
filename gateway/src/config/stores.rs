//! Configuration of the stores that requests may state.

mod allowed;

use std::path::PathBuf;

use serde::Serialize;

use super::{Faults, Network, Settings, list, path, values::Text};
pub use allowed::{AllowedStore, StoreMatch};

/// What requests may state as the store that their paths are signed for. The gateway's own store is always among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stores {
    /// The stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<AllowedStore>,
    /// The only buckets whose objects may be read there. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<String>,
    /// Networks that are not public, in which hosts that match a `*` may have addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<Network>,
    /// Certificate authorities to trust instead of the system's, for all but the gateway's own store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

impl Stores {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn validate(settings: &Settings, faults: &mut Faults) -> Self {
        let stores = Self {
            allowed: parse_all("allow-store", settings.allow_store.as_deref(), faults),
            buckets: parse_all("allow-bucket", settings.allow_bucket.as_deref(), faults),
            networks: parse_all(
                "allow-store-network",
                settings.allow_store_network.as_deref(),
                faults,
            ),
            ca: settings.store_ca.as_ref().map(path),
        };
        let has_host = |is_match: fn(&AllowedStore) -> bool| stores.allowed.iter().any(is_match);
        if settings.allow_store.is_some() {
            if stores.ca.is_some() && !has_host(AllowedStore::is_tls) {
                faults.add("store-ca: requires an https URL in allow-store");
            }
            if !stores.networks.is_empty() && !has_host(AllowedStore::is_wildcard) {
                faults.add(
                    "allow-store-network: requires a `*` in allow-store; a host that is named exactly may have any address",
                );
            }
        } else {
            for (name, is_set) in [
                ("store-ca", settings.store_ca.is_some()),
                ("allow-store-network", settings.allow_store_network.is_some()),
            ] {
                if is_set {
                    faults.add(format!("{name}: requires allow-store"));
                }
            }
        }
        if settings.resign.keys.is_some() {
            for (name, is_set) in [
                ("allow-store", settings.allow_store.is_some()),
                ("allow-bucket", settings.allow_bucket.is_some()),
            ] {
                if is_set {
                    faults.add(format!(
                        "{name}: expected no resign-keys: a gateway with a keys file reads its upstream only"
                    ));
                }
            }
        }
        stores
    }
}

/// Parses the items of a list that is given in parts.
fn parse_all<T>(name: &str, setting: Option<&[Text]>, faults: &mut Faults) -> Vec<T>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    let mut parsed = Vec::new();
    let is_empty = |Text(text): &Text| list(text).next().is_none();
    if setting.is_some_and(|parts| parts.iter().all(is_empty)) {
        // An empty list of buckets would allow all of them.
        faults.add(format!("{name}: expected at least one item, found none"));
    }
    for item in setting.into_iter().flatten().flat_map(|Text(text)| list(text)) {
        match item.parse() {
            Ok(value) => parsed.push(value),
            Err(fault) => faults.add(format!("{name}: {fault}")),
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ResignSettings};

    fn settings(stores: &[&str]) -> Settings {
        Settings {
            allow_store: Some(stores.iter().map(|text| Text::from(*text)).collect()),
            ..Settings::default()
        }
    }

    fn faults(settings: &Settings) -> String {
        Config::validate(settings).unwrap_err().to_string()
    }

    #[test]
    fn lists_are_repeated_or_separated_by_commas() {
        let typed = Settings {
            allow_bucket: Some(vec!["photos".into(), "audio, video".into()]),
            allow_store_network: Some(vec!["10.0.0.0/8".into()]),
            ..settings(&["https://s3.example:443/, http://*.hall", "http://127.0.0.1:8333"])
        };
        let stores = Config::validate(&typed).unwrap().stores;
        let shown = serde_json::json!(stores).to_string();
        assert_eq!(
            shown,
            r#"{"allowed":["https://s3.example","http://*.hall","http://127.0.0.1:8333"],"buckets":["photos","audio","video"],"networks":["10.0.0.0/8"]}"#
        );
    }

    #[test]
    fn a_file_has_texts_or_arrays() {
        let read = |text: &str| toml::from_str::<Settings>(text).unwrap().allow_store;
        assert_eq!(
            read("allow-store = [\"http://a\", \"http://b\"]"),
            Some(vec!["http://a".into(), "http://b".into()])
        );
        assert_eq!(
            read("allow-store = \"http://a,http://b\""),
            Some(vec!["http://a,http://b".into()])
        );
        assert_eq!(read(""), None);
        assert!(toml::from_str::<Settings>("allow-store = {a = 1}").is_err());
    }

    #[test]
    fn settings_that_would_have_no_effect_are_faults() {
        let network = || Some(vec!["10.0.0.0/8".into()]);
        let with_upstream = || Settings {
            upstream: Some("http://store".into()),
            ..Settings::default()
        };
        for (typed, expected) in [
            (
                Settings {
                    store_ca: Some("ca.pem".into()),
                    allow_store_network: network(),
                    ..with_upstream()
                },
                "store-ca: requires allow-store\n  - allow-store-network: requires allow-store",
            ),
            (
                Settings {
                    store_ca: Some("ca.pem".into()),
                    ..settings(&["http://store"])
                },
                "store-ca: requires an https URL in allow-store",
            ),
            (
                Settings {
                    allow_store_network: network(),
                    ..settings(&["http://store"])
                },
                "allow-store-network: requires a `*` in allow-store",
            ),
            (
                Settings {
                    resign: ResignSettings {
                        keys: Some("keys.toml".into()),
                        ..ResignSettings::default()
                    },
                    allow_store: settings(&["http://other"]).allow_store,
                    ..with_upstream()
                },
                "allow-store: expected no resign-keys",
            ),
            (
                Settings {
                    allow_bucket: Some(vec!["".into(), " , ".into()]),
                    ..settings(&["http://store"])
                },
                "allow-bucket: expected at least one item, found none",
            ),
            (
                settings(&[""]),
                "allow-store: expected at least one item, found none",
            ),
            (
                settings(&["store"]),
                "allow-store: invalid store: expected a URL that begins with",
            ),
            (
                settings(&["http://s3*.example"]),
                "allow-store: invalid store: expected",
            ),
        ] {
            let found = faults(&typed);
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_gateway_needs_a_store_of_its_own_or_stores_that_it_allows() {
        assert!(
            Config::validate(&settings(&["http://store"]))
                .unwrap()
                .store
                .is_none()
        );
        let none = faults(&Settings::default());
        assert!(none.contains("no store: set upstream"), "{none}");
    }
}
