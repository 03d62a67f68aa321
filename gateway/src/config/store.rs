//! Configuration of the object store.

#[cfg_attr(not(feature = "embedded-store"), path = "store/no_folder.rs")]
mod folder;

use std::path::PathBuf;

use http::Uri;
use serde::{Serialize, Serializer};

use super::{Faults, Settings, path, values::Text};
pub use folder::StoreFolder;

/// The object store of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// An S3 store, accessed path style.
    Upstream {
        /// Scheme and authority. Never a path: it would break every signature.
        #[serde(serialize_with = "uri")]
        url: Uri,
        /// Certificate authorities to trust instead of the system's.
        ca: Option<PathBuf>,
    },
    /// The embedded store on a local folder.
    Embedded(StoreFolder),
}

impl Store {
    /// The store, if one is configured without faults. Without one, requests state theirs.
    pub(super) fn validate(settings: &Settings, faults: &mut Faults) -> Option<Self> {
        match (&settings.upstream, &settings.store) {
            (Some(_), Some(_)) => {
                faults.add("upstream and store: expected one of them, found both");
                None
            }
            (None, None) => {
                for (name, is_set) in [
                    ("upstream-ca", settings.upstream_ca.is_some()),
                    ("access-key", settings.access_key.is_some()),
                    ("secret-key", settings.secret_key.is_some()),
                    ("resign-keys", settings.resign.keys.is_some()),
                ] {
                    if is_set && settings.allow_store.is_some() {
                        faults.add(format!("{name}: requires upstream or store"));
                    }
                }
                if settings.allow_store.is_none() {
                    faults.add(
                        "no store: set upstream to a URL, store to a folder, or allow-store to the stores of readers with two addresses",
                    );
                }
                None
            }
            (Some(Text(url)), None) => {
                if settings.access_key.is_some() || settings.secret_key.is_some() {
                    faults.add(
                        "access-key and secret-key require store: an upstream authorizes its callers itself",
                    );
                }
                let ca = settings.upstream_ca.as_ref().map(path);
                match upstream(url) {
                    Ok(url) => {
                        if ca.is_some() && url.scheme_str() != Some("https") {
                            faults.add("upstream-ca: requires an https upstream");
                        }
                        Some(Self::Upstream { url, ca })
                    }
                    Err(fault) => {
                        faults.add(format!("upstream: {fault}"));
                        None
                    }
                }
            }
            (None, Some(directory)) => StoreFolder::validate(directory, settings, faults).map(Self::Embedded),
        }
    }
}

fn upstream(text: &str) -> Result<Uri, String> {
    let fault = |expected: &str| format!("expected {expected}, found `{text}`");
    let url: Uri = text.parse().map_err(|_| fault("a URL"))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err(fault("a URL that begins with http:// or https://"));
    }
    if url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err("expected a URL without a user name: callers sign with their own keys".to_owned());
    }
    if url.path() != "/" || url.query().is_some() {
        return Err(fault("a URL without a path (a path would break every signature)"));
    }
    Ok(url)
}

fn uri<S: Serializer>(uri: &Uri, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(uri)
}
