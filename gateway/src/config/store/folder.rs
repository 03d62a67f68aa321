//! Configuration of the embedded store.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::{
    Faults, Settings, path,
    values::{Secret, Text},
};

/// The folder of the embedded store, and its credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreFolder {
    /// The folder; created if it is missing.
    pub directory: PathBuf,
    /// The only access key.
    pub access_key: String,
    /// The secret of that key.
    pub secret_key: Secret,
}

impl StoreFolder {
    /// `None` with faults.
    pub(super) fn validate(directory: &Text, settings: &Settings, faults: &mut Faults) -> Option<Self> {
        if settings.upstream_ca.is_some() {
            faults.add("upstream-ca: requires upstream; the embedded store has no TLS");
        }
        match (&settings.access_key, &settings.secret_key) {
            (Some(Text(access)), Some(Text(secret))) if !access.is_empty() && !secret.is_empty() => {
                Some(Self {
                    directory: path(directory),
                    access_key: access.clone(),
                    secret_key: Secret::new(secret.clone()),
                })
            }
            _ => {
                faults.add("store: requires access-key and secret-key, both not empty");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Settings};

    #[test]
    fn the_embedded_store_requires_keys() {
        let keyless = Config::validate(&Settings {
            store: Some("data".into()),
            ..Settings::default()
        })
        .unwrap_err();
        assert!(keyless.to_string().contains("requires access-key"), "{keyless}");
    }
}
